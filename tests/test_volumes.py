"""What cells hold, as files for other programs: OpenVDB as OpenVDB itself reads it, VTK's by its own description."""

import os
import struct
import subprocess
import zlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import trimesh
from command_line import PICTURE, run_here

import taichi_fluid as tf
from taichi_fluid.io.upright import UPS
from taichi_fluid.io.vdb import Volume, write_vdb
from taichi_fluid.io.volumes import HALF_WIDTH, sparse_volumes
from taichi_fluid.io.vti import write_vti
from taichi_fluid.scene import preset
from taichi_fluid.validation.water import water

READER = """
import sys
import numpy as np, pyopenvdb
read = {}
for grid in pyopenvdb.readAll(sys.argv[1])[0]:
    shape = tuple(map(int, sys.argv[3:6])) + ((3,) if grid.valueTypeName == "vec3s" else ())
    values = np.zeros(shape, np.float32)
    grid.copyToArray(values)
    read[grid.name] = values
    read[grid.name + " active"] = grid.activeVoxelCount()
    read[grid.name + " background"] = grid.background
    read[grid.name + " class"] = str(grid.gridClass)
    read[grid.name + " first"] = grid.transform.indexToWorld((0, 0, 0))
    read[grid.name + " second"] = grid.transform.indexToWorld((1, 1, 1))
    if grid.gridClass == "level set":
        points, quads = grid.convertToQuads()
        read[grid.name + " bounds"] = [points.min(0), points.max(0)] if len(points) else []
        edges = np.sort(np.stack([quads, np.roll(quads, -1, axis=1)], -1).reshape(-1, 2), axis=1)
        read[grid.name + " faces at edges"] = np.unique(edges, axis=0, return_counts=True)[1]
        corners = points[quads].astype(float)
        across = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
        read[grid.name + " volume"] = abs((corners.mean(1) * across).sum()) / 6
np.savez(sys.argv[2], **read)
"""
SYSTEM = "/usr/bin/python3"


@pytest.fixture(scope="module")
def read_by_openvdb(tmp_path_factory):
    """Reads a file by Debian's python3-openvdb, in a process of the system's Python."""

    def read(path: Path, shape) -> dict:
        out = tmp_path_factory.mktemp("read") / "read.npz"
        command = [SYSTEM, "-c", READER, str(path), str(out), *map(str, shape)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return dict(np.load(out))

    found = subprocess.run([SYSTEM, "-c", "import pyopenvdb"], capture_output=True) if os.path.exists(SYSTEM) else None
    if found is None or found.returncode != 0:
        pytest.skip("OpenVDB is not there: apt-get install python3-openvdb")
    return read


def of_all_kinds(shape):
    """Smoke that fills a part, a level set with tiles on both sides, a vector everywhere, and nothing."""
    rng = np.random.default_rng(3)
    x, y, z = np.meshgrid(*(np.arange(n) - 0.4 * n for n in shape), indexing="ij")
    away = np.sqrt(x * x + y * y + z * z)
    smoke = np.where(away < min(shape) / 4, rng.random(shape), 0.0).astype(np.float32)
    level = np.clip(away - min(shape) / 2.5, -1.0, 1.0).astype(np.float32)
    noise = rng.standard_normal((*shape, 3)).astype(np.float32)
    where = (1.0, -2.0, 0.5)
    return [
        Volume("smoke", smoke, smoke > 0, where),
        Volume("surface", level, np.abs(level) < 1.0, where, "level set", 1.0),
        Volume("noise", noise, np.ones(shape, bool), where, "unknown", (0.0,) * 3),
        Volume("salt", np.full(shape, 35.0, np.float32), np.zeros(shape, bool), where, background=35.0),
    ]


# Within one block; up to the end of blocks; over a seam of the nodes of 128 voxels; and over one of the uppermost, of 4096.
@pytest.mark.parametrize("shape", [(5, 3, 4), (8, 16, 24), (140, 20, 37), (4099, 3, 2)])
def test_openvdb_reads_what_was_written(shape, tmp_path, read_by_openvdb):
    written = of_all_kinds(shape)
    write_vdb(tmp_path / "all.vdb", written, 0.25)
    read = read_by_openvdb(tmp_path / "all.vdb", shape)
    for volume in written:
        np.testing.assert_array_equal(read[volume.name], volume.values)
        assert read[f"{volume.name} active"] == volume.active.sum()
        assert read[f"{volume.name} class"] == volume.kind
        np.testing.assert_array_equal(read[f"{volume.name} background"], volume.background)
        np.testing.assert_allclose(read[f"{volume.name} first"], volume.origin)
        np.testing.assert_allclose(read[f"{volume.name} second"], np.add(volume.origin, 0.25))


def test_the_same_volumes_are_the_same_file_and_empty_ones_are_small(tmp_path):
    """Blocks without anything cost nothing: a thousand times as many voxels of nothing, and as many bytes."""
    sizes = []
    for edge in (16, 160):
        values = np.zeros((edge,) * 3, np.float32)
        values[:8, :8, :8] = 1.0
        for name in ("one.vdb", "two.vdb"):
            write_vdb(tmp_path / name, [Volume("smoke", values, values > 0, (0.0,) * 3)], 0.1)
        assert (tmp_path / "one.vdb").read_bytes() == (tmp_path / "two.vdb").read_bytes()
        sizes.append((tmp_path / "one.vdb").stat().st_size)
    assert sizes[0] == sizes[1]


def read_vti(path: Path):
    """Values of a .vti file by name, as VTK has them: (z, y, x, components); its spacing, origin and time."""
    head, _, raw = path.read_bytes().partition(b'<AppendedData encoding="raw">\n_')
    root = ElementTree.fromstring(head + b"</VTKFile>")
    assert (root.get("header_type"), root.get("byte_order")) == ("UInt64", "LittleEndian")
    image = root.find("ImageData")
    extent = [int(n) for n in image.get("WholeExtent").split()]
    cells = extent[5] - extent[4], extent[3] - extent[2], extent[1] - extent[0]
    values = {}
    for array in image.find("Piece/CellData"):
        at = int(array.get("offset"))
        count, size, last = struct.unpack_from("<3Q", raw, at)
        packed = struct.unpack_from(f"<{count}Q", raw, at + 24)
        at, data = at + 24 + 8 * count, b""
        for i, length in enumerate(packed):
            part = zlib.decompress(raw[at : at + length])
            assert len(part) == (last if last and i == count - 1 else size)
            data, at = data + part, at + length
        components = int(array.get("NumberOfComponents"))
        values[array.get("Name")] = np.frombuffer(data, "<f4").reshape(*cells, components)
    numbers = [[float(x) for x in image.get(name).split()] for name in ("Spacing", "Origin")]
    return values, *numbers, float(image.find("FieldData/DataArray").text)


@pytest.mark.parametrize("shape", [(4, 3, 5), (70, 40, 50), (6, 7)])
def test_a_vtk_file_has_what_was_written(shape, tmp_path):
    """The second is of more than one block."""
    rng, dim = np.random.default_rng(5), len(shape)
    written = {"a & b": rng.random(shape).astype(np.float32), "u": rng.random((dim, *shape)).astype(np.float32)}
    write_vti(tmp_path / "all.vti", written, 0.5, (1.0, 2.0, 3.0)[:dim], 0.1)
    values, spacing, origin, time = read_vti(tmp_path / "all.vti")
    in_3d = [array.reshape(*array.shape, *([1] * (3 - dim))) for array in written.values()]
    np.testing.assert_array_equal(values["a & b"][..., 0].T, in_3d[0])
    np.testing.assert_array_equal(values["u"].T[:dim], in_3d[1])
    assert values["u"].shape[-1] == 3 and not values["u"][..., dim:].any()
    assert (spacing, origin, time) == ([0.5] * 3, [1.0, 2.0, 3.0 if dim == 3 else 0.0], 0.1)


def flow(name, **values):
    simulation = tf.Simulation(preset(name).with_values({"domain.resolution": 12, **values}))
    for _ in range(3):
        simulation.step()
    return simulation


def test_a_gas_is_written_where_there_is_any(tmp_path, read_by_openvdb):
    simulation = flow("fire")
    tf.write_volume(simulation, tmp_path / "fire.vdb")
    grid = simulation.grid
    read = read_by_openvdb(tmp_path / "fire.vdb", grid.shape)
    for ours, theirs in (("smoke", "density"), ("temperature", "temperature"), ("fuel", "fuel")):
        values = simulation.to_numpy(ours)
        np.testing.assert_allclose(read[theirs], values, rtol=0, atol=1e-5 * values.max())
        assert 0 < read[f"{theirs} active"] < values.size
    velocity = tf.velocity_at(simulation, np.stack(np.broadcast_arrays(*grid.cell_centres()), -1).reshape(-1, 3))
    there = np.any(read["velocity"] != 0, axis=-1)
    assert there[simulation.to_numpy("smoke") > 1e-3].all()
    np.testing.assert_allclose(read["velocity"][there], velocity.reshape(*grid.shape, 3)[there], atol=1e-5)
    np.testing.assert_allclose(read["density first"], [centres.min() for centres in grid.cell_centres()])


def test_a_liquid_is_a_level_set_that_ends_at_sides_and_solids(tmp_path, read_by_openvdb):
    sphere = {"shape": "sphere", "center": [0.5, 0.25, 0.5], "radius": 0.2}
    simulation = tf.Simulation(water([1.0, 1.0, 1.0], 24, [([0.0] * 3, [1.0, 0.5, 1.0])], solids=[sphere]))
    tf.write_volume(simulation, tmp_path / "pool.vdb")
    read = read_by_openvdb(tmp_path / "pool.vdb", [n + 2 * HALF_WIDTH for n in simulation.grid.shape])
    low, high = read["surface bounds"]
    np.testing.assert_allclose(low, 0.0, atol=1e-3)
    np.testing.assert_allclose(high, [1.0, 0.5, 1.0], atol=0.2 / 24)
    # In the middle of the ball, outside; between ball and side, inside; above, outside.
    assert [read["surface"][i, 9, 15] > 0 for i in (15, 6)] == [True, False] and read["surface"][6, 22, 15] > 0


def test_openvdb_finds_a_closed_surface_and_distances_as_far_as_its_tools_count_on(tmp_path, read_by_openvdb):
    """Deep along a side or a solid there was no voxel that counts, and a hole in the mesh that is made of them."""
    sphere = {"shape": "sphere", "center": [0.7, 0.2, 0.5], "radius": 0.15}
    bodies = [([0.0] * 3, [0.5, 0.6, 1.0]), ([0.0] * 3, [1.0, 0.4, 1.0])]
    simulation = tf.Simulation(water([1.0, 1.0, 1.0], 32, bodies, solids=[sphere]))
    tf.write_volume(simulation, tmp_path / "dam.vdb")
    dx = simulation.grid.dx
    read = read_by_openvdb(tmp_path / "dam.vdb", [n + 2 * HALF_WIDTH for n in simulation.grid.shape])
    assert (read["surface faces at edges"] == 2).all()
    volume = trimesh.Trimesh(*tf.surface_mesh(simulation)).volume
    # Corners of one mesh are the crossings of edges, of the other what lies between these in a cell.
    assert abs(read["surface volume"] / volume - 1) < 0.01
    assert read["surface background"] == np.float32(3 * dx)
    # Above the lower half, beside its side: how far up, and below it, how far down.
    column = read["surface"][28, HALF_WIDTH:-HALF_WIDTH, 30]
    height = (np.arange(32) + 0.5) * dx - 0.4
    # By a fifth of a cell, as particles show where a surface is.
    np.testing.assert_allclose(column[9:17], np.clip(height[9:17], -3 * dx, 3 * dx), atol=0.2 * dx)
    to_side = read["surface"][HALF_WIDTH : HALF_WIDTH + 4, 8, 16]
    np.testing.assert_allclose(to_side / dx, [-0.5, -1.5, -2.5, -3.0], atol=1e-3)
    beyond = read["surface"][:HALF_WIDTH, 8, 16]
    np.testing.assert_allclose(beyond / dx, [2.5, 1.5, 0.5], atol=1e-3)


def test_z_points_up_in_a_file_for_blender(tmp_path, read_by_openvdb):
    """What is at (x, y, z) is at (x, -z, y), arrows too; colours are not arrows."""
    simulation = flow("ash3d")
    shape = simulation.grid.shape
    for up in UPS:
        tf.write_volume(simulation, tmp_path / f"{up}.vdb", up=up)
    as_is = read_by_openvdb(tmp_path / "y.vdb", shape)
    turned = read_by_openvdb(tmp_path / "z.vdb", (shape[0], shape[2], shape[1]))
    names = [volume.name for volume in sparse_volumes(simulation)]
    assert {"dye", "velocity"} <= set(names)
    for name in names:
        there = np.flip(np.moveaxis(as_is[name], 1, 2), axis=1)
        if name == "velocity":
            there = np.stack([there[..., 0], -there[..., 2], there[..., 1]], axis=-1)
        np.testing.assert_array_equal(turned[name], there)
        assert turned[f"{name} active"] == as_is[f"{name} active"]
        x, y, z = as_is[f"{name} first"]
        np.testing.assert_allclose(turned[f"{name} first"], (x, -z - (shape[2] - 1) * simulation.grid.dx, y))


def test_what_is_not_zero_outside_and_has_two_components_is_written_so():
    row = tf.Carried("ions", 2, outside=(35.0, 1.0))
    tf.CARRIED.add(row)
    try:
        scene = preset("plume").with_values({"domain.resolution": 8})
        simulation = tf.Simulation(scene)
        simulation.state.add([row])
        volumes = {volume.name: volume for volume in sparse_volumes(simulation)}
    finally:
        tf.CARRIED.remove("ions")
    for name, outside in (("ions_0", 35.0), ("ions_1", 1.0)):
        assert volumes[name].background == outside and not volumes[name].active.any()


def test_a_flow_in_which_there_is_nothing_is_its_velocity():
    volumes = {
        volume.name: volume
        for volume in sparse_volumes(tf.Simulation(preset("plume").with_values({"domain.resolution": 8})))
    }
    assert not volumes["density"].active.any() and volumes["velocity"].active.all()


@pytest.mark.parametrize("name", ["dam2d", "plume2d", "obstacles", "stable_fluids"])
def test_every_cell_is_in_a_vtk_file(name, tmp_path):
    simulation = flow(name)
    tf.write_volume(simulation, tmp_path / "all.vti")
    values, _, _, time = read_vti(tmp_path / "all.vti")
    dim = simulation.grid.dim
    assert time == simulation.time
    has = set(simulation.state.carried) | {"pressure", "velocity"}
    has |= {"level set"} if simulation.liquid else set()
    has |= {"fluid"} if simulation.solids else set()
    assert set(values) == has
    for each in has - {"velocity"}:
        array = simulation.to_numpy(each)
        np.testing.assert_array_equal(values[each].T.reshape(array.shape), array)
    points = np.stack(np.broadcast_arrays(*simulation.grid.cell_centres()), -1).reshape(-1, dim)
    velocity = tf.velocity_at(simulation, points)
    np.testing.assert_allclose(values["velocity"].T[:dim].reshape(dim, -1), velocity.T, atol=1e-5)


def test_other_files_of_volumes_are_refused(tmp_path):
    simulation = tf.Simulation(preset("plume2d").with_values({"domain.resolution": 8}))
    with pytest.raises(ValueError, match=r"its suffix must be \.vdb or \.vti"):
        tf.write_volume(simulation, tmp_path / "a.vtk")
    with pytest.raises(ValueError, match="OpenVDB is of 3D"):
        tf.write_volume(simulation, tmp_path / "a.vdb")
    with pytest.raises(ValueError, match="in a file of VTK y points up"):
        tf.write_volume(simulation, tmp_path / "a.vti", up="z")
    with pytest.raises(ValueError, match="up is 'x'; it must be one of y, z"):
        tf.write_volume(simulation, tmp_path / "a.vti", up="x")
    assert os.listdir(tmp_path) == []


def run(folder, *arguments):
    return run_here(["demo", *arguments, "--arch", "cpu", "--resolution", "8", "--frames", "2", *PICTURE], folder)


def test_a_recording_writes_a_volume_for_each_frame(tmp_path):
    done = run(tmp_path, "plume2d", "--out", "film.mp4", "--volumes", "cells", "--volume-format", "vti")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["film.mp4", "film.png", "cells"]
    assert sorted(os.listdir(tmp_path / "cells")) == ["volume_00000.vti", "volume_00001.vti"]
    times = [read_vti(tmp_path / "cells" / name)[3] for name in ("volume_00000.vti", "volume_00001.vti")]
    np.testing.assert_allclose(times, np.array([1, 2]) / preset("plume2d").output.fps)
    again = run(tmp_path, "plume2d", "--out", "other.mp4", "--volumes", "cells", "--volume-format", "vti")
    assert again.returncode == 2
    assert "'cells' holds those of another run" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--volumes", "cells"),
            "--volumes is given and the scene is in 2D, where OpenVDB is of 3D: give --volume-format vti too.",
        ),
        (
            ("--volume-format", "vti"),
            "--volume-format is given and --volumes is not: give --volumes FOLDER too, or leave that out.",
        ),
        (
            ("--up", "z"),
            "--up z is given, which is of meshes and OpenVDB: give --surfaces or --volumes too, and no --volume-format vti, "
            "or leave that out.",
        ),
        (
            ("--up", "z", "--volumes", "cells", "--volume-format", "vti"),
            "--up z is given, which is of meshes and OpenVDB: give --surfaces or --volumes too, and no --volume-format vti, "
            "or leave that out.",
        ),
        (
            ("--out", "cells.vdb"),
            "the output 'cells.vdb' has a suffix that is not written: give FILE.mp4, or a folder for PNG files. "
            "--volumes FOLDER writes volumes.",
        ),
        (
            ("--volumes", ".", "--volume-format", "vti", "--json", "volume_00001.vti"),
            "the JSON file 'volume_00001.vti' is also a volume of this run: give another name.",
        ),
    ],
)
def test_volumes_that_cannot_be_are_refused(refuse, tmp_path, arguments, sentence):
    done = refuse("demo", "plume2d", *arguments)
    assert (done.returncode, os.listdir(tmp_path)) == (2, [])
    assert done.stderr.splitlines() == [f"taichi-fluid: {sentence}"]
