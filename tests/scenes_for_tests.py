"""Small scenes, and states to start them from."""

import numpy as np
from reference import face_shape

from taichi_fluid.scene import Scene
from taichi_fluid.simulation import Simulation


def scene(shape, dx=0.1, fluid=None, solver=None, sources=(), boundaries="free-slip") -> Scene:
    """A closed box of ``shape`` cells."""
    return Scene.from_dict(
        {
            "name": "test",
            "domain": {"size": [n * dx for n in shape], "resolution": max(shape), "boundaries": boundaries},
            "fluid": fluid or {},
            "solver": solver or {},
            "sources": list(sources),
        }
    )


def burner(dim, **values) -> dict:
    """A hot source near the bottom of a box of edge 1."""
    return {
        "shape": "sphere", "center": [0.5, 0.25, 0.45][:dim], "radius": 0.15,
        "smoke": 5.0, "temperature": 400.0, **values,
    }  # fmt: skip


def plume(dim, cells, **solver) -> Scene:
    """A plume with every term of the step but diffusion switched on."""
    fluid = {"confinement": 0.01, "cooling": 0.3, "smoke_weight": 0.05}
    return scene((cells,) * dim, 1.0 / cells, fluid=fluid, solver=solver, sources=[burner(dim)])


def everything(dim) -> Scene:
    """Every term of the step, two solids and an open side; few cells."""
    shape = (10, 12, 8)[:dim]
    rates = dict.fromkeys(("smoke_fade", "velocity_fade", "smoke_dissipation", "cooling", "smoke_weight"), 0.1)
    fluid = {**rates, "viscosity": 1e-3, "smoke_diffusion": 1e-3, "confinement": 0.01, "radiation": 1.0}
    fluid["body_force"] = [0.1] * dim
    source = burner(dim, dye=[1.0, 0.5, 0.0], velocity=[0.3, 0.5, 0.1][:dim], mottle=0.5, fuel=2.0, blast=1.0)
    sides = [("free-slip", "no-slip"), ("no-slip", "open"), ("free-slip", "free-slip")][:dim]
    solids = [
        {"shape": "sphere", "center": [0.6, 0.7, 0.4][:dim], "radius": 0.2, "swing": [0.1, 0.05, 0.02][:dim]},
        {"shape": "box", "center": [0.2, 0.9, 0.4][:dim], "size": [0.15] * dim, "slip": True},
    ]
    combustion = {"combustion.burn_rate": 1.0, "combustion.expansion": 0.5}
    return scene(shape, 0.1, fluid, {"dt": 0.03}, [source], sides).with_values({"solids": solids, **combustion})


def smooth_velocity(shape, size=0.3):
    """A velocity of a few wide vortices, neither at rest nor free of divergence, 0 on the walls."""
    faces = []
    for axis in range(len(shape)):
        component = np.full(face_shape(shape, axis), size)
        for a, n in enumerate(shape):
            x = np.arange(n + 1) / n if a == axis else (np.arange(n) + 0.5) / n
            wave = np.sin(np.pi * x) if a == axis else np.cos((1 + (a + axis) % 2) * np.pi * x + 0.3 * axis)
            component = component * wave.reshape([-1 if d == a else 1 for d in range(len(shape))])
        faces.append(component)
    return faces


def smooth_scalar(shape, size=1.0):
    """A wide blob, off the centre."""
    x = [(np.arange(n) + 0.5) / n - 0.4 - 0.07 * a for a, n in enumerate(shape)]
    square = sum(v.reshape([-1 if d == a else 1 for d in range(len(shape))]) ** 2 for a, v in enumerate(x))
    return size * np.exp(-6 * square)


def set_state(simulation: Simulation, faces=None, **carried) -> None:
    """Give a simulation NumPy values, ghosts filled."""
    grid, walls, state = simulation.grid, simulation.walls, simulation.state
    if faces is not None:
        grid.face_velocity_from_numpy(state.velocity.current, [np.asarray(f, np.float32) for f in faces])
        walls.fill_velocity(state.velocity.current)
    for name, values in carried.items():
        grid.from_numpy(state.carried[name].current, np.asarray(values, np.float32))
        walls.fill(state.carried[name].current)
