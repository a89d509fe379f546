"""Elliptic solvers: the pressure, and implicit diffusion through the same machinery."""
