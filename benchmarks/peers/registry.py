"""Who is compared with whom. Imports none of them."""

import importlib
import importlib.util
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

REQUIREMENTS = "benchmarks/peers/requirements.txt"


class Program(Protocol):
    """What a module of this package offers as ``Program``; the module may import what it likes, it has a process."""

    iterations: float | None
    """Of the pressure solver in the last step; None where there is nothing to count."""

    def __init__(self, n: int, dim: int, **options: Any): ...

    def step(self) -> None:
        """Make one step, and return when it is done."""
        ...

    def divergence(self) -> float:
        """Divergence left, rms after over before one projection; of the last step or of one more."""
        ...


class Entry(NamedTuple):
    """One program.

    Attributes:
        module: In this package; has a class ``Program``.
        solves: What it computes, and what it does otherwise than ours; one sentence.
        dims: Dimensions that it has.
        packages: What it imports beside NumPy, and the name of each at PyPI.
        beside: Which of ``OURS`` it takes turns with.
        options: For ``Program``.
    """

    module: str
    solves: str
    dims: tuple[int, ...]
    packages: Mapping[str, str] = {}
    beside: str = "step"
    options: Mapping[str, Any] = {}


OURS = {
    "step": Entry(
        "ours", "A plume in a closed box: MacCormack, buoyancy, confinement, projection to a tolerance.", (2, 3)
    ),
    "pressure": Entry("ours_pressure", "The pressure alone, in a closed box, to a tolerance.", (2, 3)),
}

_JAX = {"jax": "jax", "jaxlib": "jaxlib"}
_EXAMPLE = "Its own 2D flow, a jet of dye that weighs: semi-Lagrangian with RK3 traces, velocity in the centres of cells, {} Jacobi sweeps."

PEERS = {
    "numba": Entry(
        "naive_numba",
        "The plume as one writes it first: semi-Lagrangian with Euler traces, no confinement, 20 red-black Gauss-Seidel sweeps.",
        (3,),
        {"numba": "numba"},
    ),
    "taichi-example-40": Entry(
        "taichi_example", _EXAMPLE.format(40), (2,), {"taichi": "taichi"}, options={"sweeps": 40}
    ),
    "taichi-example-500": Entry(
        "taichi_example", _EXAMPLE.format("500 (its default)"), (2,), {"taichi": "taichi"}, options={"sweeps": 500}
    ),
    "warp-example": Entry(
        "warp_example",
        "Its own 2D flow, a jet of smoke that weighs, one of its two substeps: semi-Lagrangian, velocity and pressure at the same points, 100 Jacobi sweeps, one thread.",
        (2,),
        {"warp": "warp-lang"},
    ),
    "scipy-dct": Entry(
        "scipy_dct",
        "The pressure alone, directly, by a cosine transform in f32: only for a box with nothing in it.",
        (2, 3),
        {"scipy": "scipy"},
        beside="pressure",
    ),
    "jax-cfd": Entry(
        "jax_cfd_periodic",
        "Another problem: periodic turbulence without smoke, van Leer advection, pressure by FFT, exact but for rounding.",
        (2, 3),
        {**_JAX, "jax_cfd": "jax-cfd"},
    ),
    "phiflow": Entry(
        "phiflow_plume",
        "The plume: MacCormack, buoyancy, no confinement, CG without preconditioner to 1e-3, compiled by JAX.",
        (2, 3),
        {**_JAX, "phi": "phiflow", "phiml": "phiml"},
    ),
}


def missing(names: Iterable[str]) -> list[str]:
    """Packages, as PyPI names them, that these peers need and that are not installed."""
    needed = {package: at_pypi for name in names for package, at_pypi in PEERS[name].packages.items()}
    return sorted(at_pypi for package, at_pypi in needed.items() if importlib.util.find_spec(package) is None)


def load(entry: Entry, n: int, dim: int, **more: Any) -> Program:
    """Build a program; imports what it needs."""
    module = importlib.import_module(f".{entry.module}", __package__)
    return module.Program(n, dim, **entry.options, **more)
