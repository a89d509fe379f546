"""A grid fluid engine in Taichi: every operation once for 2D and 3D, on CUDA, Vulkan, Metal and CPU.

Importing the package starts no backend and prints nothing. The caller runs ``ti.init``, or has
``taichi_fluid.backend.start`` choose what runs best here, as the command line does.

    import taichi_fluid as tf
    from taichi_fluid import backend

    backend.start()
    simulation = tf.Simulation(tf.preset("plume"))
    simulation.advance(1.0)
    smoke = simulation.to_numpy("smoke")
"""

TYPE_CHECKING = False  # but for who reads types; to import `typing` takes longer than all else here

if TYPE_CHECKING:
    from .boundaries.sides import Boundary, Kind, Part, Profile, Side
    from .boundaries.solids import Motion, SampledDistance, Solid
    from .carried import CARRIED, Carried
    from .grid import Grid
    from .io.checkpoint import load, save
    from .io.series import SeriesFile
    from .io.stored import CheckpointError
    from .io.surfaces import surface_mesh, write_ply
    from .io.volumes import write_volume
    from .physics.loads import Load
    from .render.renderer import Renderer
    from .scene import Probe, Scene, SceneError, preset, preset_names
    from .simulation import FORCES, Force, NotFinite, Simulation, Stage, Step
    from .simulation.flow import TooManySteps
    from .simulation.points import velocity_at
    from .simulation.probes import Probes
    from .simulation.resampling import resample
    from .viewer.window import show

__version__ = "0.1.0"

_HOME = {
    "CARRIED": ".carried",
    "FORCES": ".simulation",
    "Boundary": ".boundaries.sides",
    "Carried": ".carried",
    "CheckpointError": ".io.stored",
    "Force": ".simulation",
    "Grid": ".grid",
    "Kind": ".boundaries.sides",
    "Load": ".physics.loads",
    "Motion": ".boundaries.solids",
    "NotFinite": ".simulation",
    "Part": ".boundaries.sides",
    "Profile": ".boundaries.sides",
    "Probe": ".scene",
    "Probes": ".simulation.probes",
    "Renderer": ".render.renderer",
    "SampledDistance": ".boundaries.solids",
    "Scene": ".scene",
    "SceneError": ".scene",
    "SeriesFile": ".io.series",
    "Side": ".boundaries.sides",
    "Simulation": ".simulation",
    "Solid": ".boundaries.solids",
    "Stage": ".simulation",
    "Step": ".simulation",
    "TooManySteps": ".simulation.flow",
    "load": ".io.checkpoint",
    "preset": ".scene",
    "preset_names": ".scene",
    "resample": ".simulation.resampling",
    "save": ".io.checkpoint",
    "surface_mesh": ".io.surfaces",
    "velocity_at": ".simulation.points",
    "write_ply": ".io.surfaces",
    "write_volume": ".io.volumes",
    "show": ".viewer.window",
}

__all__ = [
    "CARRIED",
    "FORCES",
    "Boundary",
    "Carried",
    "CheckpointError",
    "Force",
    "Grid",
    "Kind",
    "Load",
    "Motion",
    "NotFinite",
    "Part",
    "Probe",
    "Probes",
    "Profile",
    "Renderer",
    "SampledDistance",
    "Scene",
    "SceneError",
    "SeriesFile",
    "Side",
    "Simulation",
    "Solid",
    "Stage",
    "Step",
    "TooManySteps",
    "load",
    "preset",
    "preset_names",
    "resample",
    "save",
    "show",
    "surface_mesh",
    "velocity_at",
    "write_ply",
    "write_volume",
]


def __getattr__(name: str):
    # Names are imported when they are used, so that checking a scene never waits for Taichi.
    if name not in _HOME:
        raise AttributeError(f"module 'taichi_fluid' has no attribute {name!r}")
    import importlib

    from .limits import without_collecting

    with without_collecting():
        return getattr(importlib.import_module(_HOME[name], __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
