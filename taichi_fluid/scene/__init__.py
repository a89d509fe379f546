"""A scene as data: a frozen, validated value tree that can be loaded from TOML and dumped again.

Nothing here needs Taichi, so bad input is refused before a backend starts. Every number carries its unit, its meaning
and its range in the field's metadata, from which a panel of sliders can be made.
"""

from . import rows as rows
from .bodies import (
    SOLIDS,
    SOURCES,
    AnySolid,
    BoxSolid,
    BoxSource,
    CapsuleSolid,
    CapsuleSource,
    CylinderSolid,
    CylinderSource,
    MeshSolid,
    Picture,
    Source,
    SphereSolid,
    SphereSource,
)
from .fields import (
    ArrayFile,
    Camera,
    Colour,
    Combustion,
    Config,
    Domain,
    Fluid,
    Initial,
    Live,
    Look,
    Output,
    SideOfBox,
    Solver,
    Vector,
    choices,
)
from .liquid import Body, Liquid
from .memory import bytes_needed, bytes_of_state
from .presets import preset, preset_names
from .probes import PROBES, Probe
from .rules import Scene, require_installed
from .text import SceneError, parse_toml

__all__ = [
    "PROBES",
    "SOLIDS",
    "SOURCES",
    "AnySolid",
    "ArrayFile",
    "Body",
    "BoxSolid",
    "BoxSource",
    "Camera",
    "CapsuleSolid",
    "CapsuleSource",
    "Colour",
    "Combustion",
    "Config",
    "CylinderSolid",
    "CylinderSource",
    "Domain",
    "Fluid",
    "Initial",
    "Liquid",
    "Live",
    "Look",
    "MeshSolid",
    "Output",
    "Picture",
    "Probe",
    "Scene",
    "SceneError",
    "SideOfBox",
    "Solver",
    "Source",
    "SphereSolid",
    "SphereSource",
    "Vector",
    "bytes_needed",
    "bytes_of_state",
    "choices",
    "parse_toml",
    "preset",
    "preset_names",
    "require_installed",
]
