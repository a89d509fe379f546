"""A liquid with a surface: particles, their way through a grid's velocity and back, and the pressure below a surface."""
