"""Published figures, and where they were published."""

GHIA_U = {
    100: (
        (0.9766, 0.84123),
        (0.9688, 0.78871),
        (0.9609, 0.73722),
        (0.9531, 0.68717),
        (0.8516, 0.23151),
        (0.7344, 0.00332),
        (0.6172, -0.13641),
        (0.5, -0.20581),
        (0.4531, -0.2109),
        (0.2813, -0.15662),
        (0.1719, -0.1015),
        (0.1016, -0.06434),
        (0.0703, -0.04775),
        (0.0625, -0.04192),
        (0.0547, -0.03717),
    ),
    400: (
        (0.9766, 0.75837),
        (0.9688, 0.68439),
        (0.9609, 0.61756),
        (0.9531, 0.55892),
        (0.8516, 0.29093),
        (0.7344, 0.16256),
        (0.6172, 0.02135),
        (0.5, -0.11477),
        (0.4531, -0.17119),
        (0.2813, -0.32726),
        (0.1719, -0.24299),
        (0.1016, -0.14612),
        (0.0703, -0.10338),
        (0.0625, -0.09266),
        (0.0547, -0.08186),
    ),
    1000: (
        (0.9766, 0.65928),
        (0.9688, 0.57492),
        (0.9609, 0.51117),
        (0.9531, 0.46604),
        (0.8516, 0.33304),
        (0.7344, 0.18719),
        (0.6172, 0.05702),
        (0.5, -0.0608),
        (0.4531, -0.10648),
        (0.2813, -0.27805),
        (0.1719, -0.38289),
        (0.1016, -0.2973),
        (0.0703, -0.2222),
        (0.0625, -0.20196),
        (0.0547, -0.18109),
    ),
}
"""(y, u) on the vertical centreline. U. Ghia, K. N. Ghia and C. T. Shin, J. Comput. Phys. 48 (1982), 387, table I."""

GHIA_V = {
    100: (
        (0.9688, -0.05906),
        (0.9609, -0.07391),
        (0.9531, -0.08864),
        (0.9453, -0.10313),
        (0.9063, -0.16914),
        (0.8594, -0.22445),
        (0.8047, -0.24533),
        (0.5, 0.05454),
        (0.2344, 0.17527),
        (0.2266, 0.17507),
        (0.1563, 0.16077),
        (0.0938, 0.12317),
        (0.0781, 0.1089),
        (0.0703, 0.10091),
        (0.0625, 0.09233),
    ),
    400: (
        (0.9688, -0.12146),
        (0.9609, -0.15663),
        (0.9531, -0.19254),
        (0.9453, -0.22847),
        (0.8594, -0.44993),
        (0.8047, -0.38598),
        (0.5, 0.05188),
        (0.2344, 0.30174),
        (0.2266, 0.30203),
        (0.1563, 0.28124),
        (0.0938, 0.22965),
        (0.0781, 0.2092),
        (0.0703, 0.19713),
        (0.0625, 0.1836),
    ),
    1000: (
        (0.9688, -0.21388),
        (0.9609, -0.27669),
        (0.9531, -0.33714),
        (0.9453, -0.39188),
        (0.9063, -0.5155),
        (0.8594, -0.42665),
        (0.8047, -0.31966),
        (0.5, 0.02526),
        (0.2344, 0.32235),
        (0.2266, 0.33075),
        (0.1563, 0.37095),
        (0.0938, 0.32627),
        (0.0781, 0.30353),
        (0.0703, 0.29012),
        (0.0625, 0.27485),
    ),
}
"""(x, v) on the horizontal one, table II, without its misprint at x = 0.9063 for Re = 400. Near the extremes for Re = 1000 it is
off by 0.0185 itself."""

MARCHI = {
    "least u on x = 1/2": -0.2140424,
    "largest v on y = 1/2": 0.1795728,
    "least v on y = 1/2": -0.253803,
}
"""Lid-driven cavity, Re = 100, as found on finer and finer grids. C. H. Marchi, R. Suero and L. K. Araki, J. Braz. Soc.
Mech. Sci. Eng. 31 (2009), 186, for the first."""
BOTELLA_PEYRET = {
    "least u on x = 1/2": -0.3885698,
    "largest v on y = 1/2": 0.3769447,
    "least v on y = 1/2": -0.5270771,
}
"""The same, Re = 1000. O. Botella and R. Peyret, Computers & Fluids 27 (1998), 421."""
BOTELLA_PEYRET_U = (
    (0.0547, -0.1812881),
    (0.0625, -0.2023300),
    (0.0703, -0.2228955),
    (0.1016, -0.3004561),
    (0.1719, -0.3885691),
    (0.2813, -0.2803696),
    (0.4531, -0.1081999),
    (0.5000, -0.0620561),
    (0.6172, 0.0570178),
    (0.7344, 0.1886747),
    (0.8516, 0.3372212),
    (0.9531, 0.4723329),
    (0.9609, 0.5169277),
    (0.9688, 0.5808359),
    (0.9766, 0.6644227),
)
"""(y, u) on the vertical centreline, Re = 1000, by Chebyshev polynomials with the corners' singularity taken out."""
BOTELLA_PEYRET_V = (
    (0.0625, 0.2807056),
    (0.0703, 0.2962703),
    (0.0781, 0.3099097),
    (0.0938, 0.3330442),
    (0.1563, 0.3769189),
    (0.2266, 0.3339924),
    (0.2344, 0.3253592),
    (0.5000, 0.0257995),
    (0.8047, -0.3202137),
    (0.8594, -0.4264545),
    (0.9063, -0.5264392),
    (0.9453, -0.4103754),
    (0.9531, -0.3553213),
    (0.9609, -0.2936869),
    (0.9688, -0.2279225),
)
"""(x, v) on the horizontal one."""
DE_VAHL_DAVIS = {
    1_000: {"Nu": 1.118, "u": 3.649, "v": 3.697},
    10_000: {"Nu": 2.243, "u": 16.178, "v": 19.617},
    100_000: {"Nu": 4.519, "u": 34.73, "v": 68.59},
}
"""Mean Nusselt number, largest u on x = 1/2 and largest v on y = 1/2, in κ/L. G. de Vahl Davis, Int. J. Numer. Meth. Fluids
3 (1983), 249, table I."""
CLEVER_BUSSE = {5_000: 2.116, 10_000: 2.661}
"""Nusselt number of steady rolls by Rayleigh number, Pr = 0.71, wave number 3.117. R. M. Clever and F. H. Busse, J. Fluid
Mech. 65 (1974), 625."""
CLAMPED_MACCORMACK = {
    "zalesak": {32: 0.924263, 64: 0.858958, 128: 0.584582},
    "vortex": {32: 0.509941, 64: 0.345647, 128: 0.23517},
}
"""Error of a disk that was carried there and back over its area, by cells along an edge: not published, but computed with
a program of its own in float64, clamped MacCormack along paths of the midpoint rule."""
SCHAEFER_TUREK_STEADY = {
    "drag": (5.57, 5.59),
    "lift": (0.0104, 0.0110),
    "pressure": (0.1172, 0.1176),
    "wake": (0.0842, 0.0852),
}
"""Cylinder in a channel, 2D-1, Re = 20: coefficients, difference of pressure front to back in Pa, length of the wake in m.
M. Schäfer and S. Turek, Benchmark computations of laminar flow around a cylinder, Notes on Numerical Fluid Mechanics 52
(1996), 547, table 3 and below."""
SCHAEFER_TUREK_PERIODIC = {
    "drag": (3.22, 3.24),
    "lift": (0.99, 1.01),
    "strouhal": (0.295, 0.305),
    "pressure": (2.46, 2.50),
}
"""2D-2, Re = 100: the largest drag and lift, and the pressure half a period after the largest lift, table 4."""
DUETSCH = ((2.09, 0.03), (1.45, 0.02))
"""Cylinder that swings in a fluid at rest, Re = 100, Keulegan-Carpenter number 5: Morison's coefficients of drag and of added
mass, and by what part others are off these. H. Dütsch, F. Durst, S. Becker and H. Lienhart, J. Fluid Mech. 360 (1998), 249."""

SHU = {1_000: 1.082, 10_000: 1.979}
"""Mean equivalent conductivity between a hot cylinder and a cold one around it by Rayleigh number, Pr = 0.7, radii as 1 to
2.6. C. Shu, Int. J. Numer. Methods Fluids 30 (1999); Kuehn and Goldstein, J. Fluid Mech. 74 (1976), have 1.081 and 2.010."""

CLERCX_BRUNEAU = {
    "energy": {0.25: 1.502, 0.5: 1.013, 0.75: 0.767},
    "enstrophy": {0.3711: 933.6, 0.6479: 305.2},
}
"""A dipole that meets a wall head on, Re = 625: energy by the time, 2 at first, and the first two peaks of the enstrophy.
H. J. H. Clercx and C.-H. Bruneau, Computers and Fluids 35 (2006), 245, in units of half the square's edge."""

SANGANI_ACRIVOS = {0.1: 24.83, 0.3: 102.90}
"""Sangani and Acrivos 1982 (Int. J. Multiphase Flow 8, 193): drag on each cylinder of a square array, over viscosity and mean velocity,
by the part of the plane that they fill."""
