"""VTK files of values in the cells of a grid (ImageData, XML, zipped), as ParaView, VisIt and PyVista read them."""

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from .files import whole_file

BLOCK = 2**18
"""Bytes that are zipped together."""
FASTEST = 1
"""Of zlib's levels."""


def write_vti(
    path: Path | str, values: Mapping[str, np.ndarray], dx: float, origin: Sequence[float], time: float
) -> None:
    """Write what cells hold as VTK's ImageData, whole or not at all.

    Args:
        path: The file.
        values: By name, ``shape`` or ``(components, *shape)``, all of the same cells in two or three dimensions.
        dx: Edge of a cell, m.
        origin: The lower corner of the box, m.
        time: s; ParaView sorts and plays by it.

    Raises:
        OSError: if it cannot be written.
    """
    dim, at, arrays, parts = len(origin), 0, [], []
    for name, array in values.items():
        # VTK counts the first axis fastest, and has vectors of three components.
        components = array.shape[0] if array.ndim > dim else 1
        columns = np.asarray(array, "<f4").reshape(components, *array.shape[-dim:]).T
        if components == 2:
            columns = np.pad(columns, [(0, 0)] * dim + [(0, 1)])
        part = _zipped(columns.tobytes())
        arrays.append(
            f'<DataArray type="Float32" Name={quoteattr(name)} NumberOfComponents="{columns.shape[-1]}" format="appended"'
            f' offset="{at}"/>'
        )
        parts.append(part)
        at += len(part)
    shape = (*next(iter(values.values())).shape[-dim:], 1)[:3]
    extent = " ".join(f"0 {n}" for n in shape)
    head = (
        '<?xml version="1.0"?>\n'
        '<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64"'
        ' compressor="vtkZLibDataCompressor">\n'
        f'<ImageData WholeExtent="{extent}" Origin="{_numbers(origin)}" Spacing="{_numbers([dx] * 3)}">\n'
        '<FieldData><DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" format="ascii">'
        f"{time!r}</DataArray></FieldData>\n"
        f'<Piece Extent="{extent}">\n<CellData>\n' + "\n".join(arrays) + "\n</CellData>\n</Piece>\n</ImageData>\n"
        '<AppendedData encoding="raw">\n_'
    )
    with whole_file(Path(path)) as temporary, temporary.open("wb") as file:
        file.writelines([head.encode(), *parts, b"\n</AppendedData>\n</VTKFile>\n"])


def _numbers(values: Sequence[float]) -> str:
    """Three numbers as text; of two dimensions the third is 0."""
    return " ".join(repr(float(value)) for value in (*values, 0.0)[:3])


def _zipped(data: bytes) -> bytes:
    """Blocks that are zipped one by one, behind how many and how long they are."""
    blocks = [zlib.compress(data[start : start + BLOCK], FASTEST) for start in range(0, len(data), BLOCK)]
    sizes = (len(blocks), BLOCK, len(data) % BLOCK, *map(len, blocks))
    return struct.pack(f"<{len(sizes)}Q", *sizes) + b"".join(blocks)
