"""OpenVDB files (file format 224): sparse volumes in blocks of 8³ voxels, zipped, as Blender, Houdini and renderers read them.

A tree of three levels, ``Tree_float_5_4_3``: blocks of voxels, nodes of 16³ blocks, nodes of 32³ of these. What no block holds
is the background, or in a level set its negative inside.
"""

import hashlib
import itertools
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .files import whole_file
from .upright import turned, turned_cells

MAGIC, FORMAT, LIBRARY = 0x56444220, 224, (10, 0)
BLOCK, NODE, TOP = 8, 16, 32
"""Edges: of a block in voxels, of a node in blocks, of one of the uppermost in those."""
ZIPPED, ACTIVE_ALONE = 1, 2
BACKGROUND, INSIDE, EITHER = 0, 1, 3
"""What values that are not active are: all the background, all its negative, or as a mask says."""
FASTEST = 1
"""Of zlib's levels."""
LEVEL_SET, INVARIANT = "level set", "invariant"

Place = tuple[int, ...]


class Volume(NamedTuple):
    """Values of a box of voxels.

    Attributes:
        name: What it is called.
        values: ``(nx, ny, nz)``, or ``(nx, ny, nz, 3)`` of a vector.
        active: ``(nx, ny, nz)``, which voxels count.
        origin: The centre of the first voxel, m.
        kind: OpenVDB's class: "fog volume", "level set" or "unknown".
        background: What is everywhere else; a number, or one for each component.
        vector_type: How a vector changes where the volume is turned, by OpenVDB's names.
    """

    name: str
    values: np.ndarray
    active: np.ndarray
    origin: Sequence[float]
    kind: str = "fog volume"
    background: float | Sequence[float] = 0.0
    vector_type: str = INVARIANT

    def upright(self, dx: float) -> "Volume":
        """As it is where the third axis points up, and not the second."""
        x, y, z = self.origin
        last = z + dx * (self.values.shape[2] - 1)
        values = turned_cells(self.values)
        if self.vector_type != INVARIANT:
            values = turned(values)
        return self._replace(values=values, active=turned_cells(self.active), origin=(x, -last, y))


def write_vdb(path: Path | str, volumes: Sequence[Volume], dx: float) -> None:
    """Write volumes as one OpenVDB file, whole or not at all.

    Args:
        path: The file.
        volumes: What it holds.
        dx: Edge of a voxel, m.

    Raises:
        OSError: if it cannot be written.
    """
    start = struct.pack("<qIII?", MAGIC, FORMAT, *LIBRARY, True)
    head = _metadata({"creator": "taichi_fluid"}) + struct.pack("<I", len(volumes))
    parts, at = [], len(start) + len(str(uuid.UUID(int=0))) + len(head)
    for volume in volumes:
        parts += _grid(volume, dx, at)
        at = sum(map(len, parts[-4:]), at)
    # A file of the same volumes is the same to the last bit.
    digest = hashlib.md5(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    name = str(uuid.UUID(bytes=digest.digest())).encode()
    with whole_file(Path(path)) as temporary, temporary.open("wb") as file:
        file.writelines([start, name, head, *parts])


def _grid(volume: Volume, dx: float, at: int) -> list[bytes]:
    """One grid that begins at a place in the file: what it is called and where its parts are, its head, tree and values."""
    number = "vec3s" if volume.values.ndim == 4 else "float"
    name = _text(volume.name) + _text(f"Tree_{number}_5_4_3") + _text("")
    about = {"name": volume.name, "class": volume.kind, "file_compression": "zip + active values"}
    if number == "vec3s":
        about["vector_type"] = volume.vector_type
    # Translation, scale, edge of a voxel; of the scale its inverse, the square of that, and half of it.
    numbers = [volume.origin, *([x] * 3 for x in (dx, dx, 1 / dx, 1 / dx**2, 0.5 / dx))]
    transform = _text("UniformScaleTranslateMap") + struct.pack("<18d", *itertools.chain(*numbers))
    head = struct.pack("<I", ZIPPED | ACTIVE_ALONE) + _metadata(about) + transform
    tree, values = _tree(volume)
    places = list(itertools.accumulate((len(name) + 24, len(head) + len(tree), len(values)), initial=at))[1:]
    return [name + struct.pack("<3q", *places), head, tree, values]


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<I", len(encoded)) + encoded


def _metadata(values: Mapping[str, str]) -> bytes:
    """Names and texts."""
    return struct.pack("<I", len(values)) + b"".join(
        _text(key) + _text("string") + _text(value) for key, value in values.items()
    )


def _zipped(data: bytes) -> bytes:
    packed = zlib.compress(data, FASTEST)
    if len(packed) < len(data):
        return struct.pack("<q", len(packed)) + packed
    return struct.pack("<q", -len(data)) + data


def _mask(bits: np.ndarray) -> bytes:
    return np.packbits(bits, bitorder="little").tobytes()


def _values(values: np.ndarray, active: np.ndarray, inside: np.ndarray, unsaid: np.ndarray | None = None) -> bytes:
    """Active values zipped, and what all others are that are not ``unsaid``: the background, or ``inside`` its negative."""
    others = inside[~active if unsaid is None else ~(active | unsaid)]
    which = EITHER if others.any() and not others.all() else INSIDE if others.any() else BACKGROUND
    mask = _mask(~inside) if which == EITHER else b""
    return bytes([which]) + mask + _zipped(np.ascontiguousarray(values[active], "<f4").tobytes())


def _node(edge: int, children: Sequence[int], inside: Sequence[int]) -> bytes:
    """A node of edge³ places: which are children, and which lie inside a surface; the others are background."""
    is_child, is_inside, none = (np.zeros(edge**3, bool) for _ in range(3))
    is_child[children], is_inside[inside] = True, True
    return _mask(is_child) + _mask(none) + _values(none, none, is_inside, is_child)


def _in_blocks(array: np.ndarray, fill) -> np.ndarray:
    """Voxels by the block that holds them, ``(ax, ay, az, 512, ...)``, filled up to whole blocks."""
    missing = [(0, -n % BLOCK) for n in array.shape[:3]]
    whole = np.pad(array, missing + [(0, 0)] * (array.ndim - 3), constant_values=fill)
    counts = [n // BLOCK for n in whole.shape[:3]]
    split = whole.reshape(*itertools.chain(*((count, BLOCK) for count in counts)), *array.shape[3:])
    return split.transpose(0, 2, 4, 1, 3, 5, *range(6, split.ndim)).reshape(*counts, BLOCK**3, *array.shape[3:])


def _by_parent(places: Iterable[Place], edge: int) -> dict[Place, list[tuple[int, Place]]]:
    """Places by the node of edge³ that holds them, in order, each with its number in that."""
    parents: dict[Place, list[tuple[int, Place]]] = {}
    for place in places:
        x, y, z = (i % edge for i in place)
        parents.setdefault(tuple(i // edge for i in place), []).append(((x * edge + y) * edge + z, place))
    return {parent: sorted(children) for parent, children in sorted(parents.items())}


def _tree(volume: Volume) -> tuple[bytes, bytes]:
    """Which nodes and blocks there are, from the root on, and the values of the blocks."""
    active, values = _in_blocks(volume.active, False), _in_blocks(volume.values, 0)
    below = (values < 0) & ~active if volume.kind == LEVEL_SET else np.zeros_like(active)
    # A block without an active voxel is none: what it is, its parent says.
    held, tiles = active.any(axis=-1), below.all(axis=-1)
    nodes = _by_parent(map(tuple, np.argwhere(held | tiles).tolist()), NODE)
    tops = _by_parent(nodes, TOP)
    background = np.broadcast_to(np.asarray(volume.background, "<f4"), volume.values.shape[3:])
    tree = [struct.pack("<I", 1) + background.tobytes() + struct.pack("<2I", 0, len(tops))]
    buffers = []
    for top, below_it in tops.items():
        tree.append(struct.pack("<3i", *(i * BLOCK * NODE * TOP for i in top)))
        tree.append(_node(TOP, [number for number, _ in below_it], []))
        for _, node in below_it:
            blocks = [(number, block) for number, block in nodes[node] if held[block]]
            inside = [number for number, block in nodes[node] if tiles[block]]
            tree.append(_node(NODE, [number for number, _ in blocks], inside))
            for _, block in blocks:
                mask = _mask(active[block])
                tree.append(mask)
                buffers.append(mask + _values(values[block], active[block], below[block]))
    return b"".join(tree), b"".join(buffers)
