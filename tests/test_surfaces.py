"""The surface of a liquid as triangles, in Python and from the command line."""

import os

import numpy as np
import pytest
import trimesh
from command_line import PICTURE, run_here

import taichi_fluid as tf
from taichi_fluid.scene import preset
from taichi_fluid.validation.water import water


def ball(resolution, radius=0.3, solids=()):
    simulation = tf.Simulation(water([1.0, 1.0, 1.0], resolution, solids=list(solids)))
    away = np.sqrt(sum((x - 0.5) ** 2 for x in simulation.grid.cell_centres()))
    simulation.set(level_set=away - radius)
    return simulation


def test_a_ball_is_closed_and_has_its_volume():
    vertices, triangles = tf.surface_mesh(ball(32))
    mesh = trimesh.Trimesh(vertices, triangles)
    assert mesh.is_watertight
    # Positive, as corners run as seen from the air; 2 % are a fifteenth of a cell along the radius.
    assert mesh.volume == pytest.approx(4 / 3 * np.pi * 0.3**3, rel=0.03)
    np.testing.assert_allclose(mesh.center_mass, 0.5, atol=0.002)
    assert np.abs(np.linalg.norm(vertices - 0.5, axis=1) - 0.3).max() < 0.5 / 32


def test_a_pool_ends_at_the_sides_of_the_box_and_at_a_solid():
    sphere = {"shape": "sphere", "center": [0.5, 0.2, 0.5], "radius": 0.15}
    simulation = tf.Simulation(water([1.0, 1.0, 1.0], 24, [([0.0] * 3, [1.0, 0.5, 1.0])], solids=[sphere]))
    mesh = trimesh.Trimesh(*tf.surface_mesh(simulation))
    assert mesh.is_watertight
    low, high = mesh.bounds
    np.testing.assert_allclose(low, 0.0, atol=1e-5)
    np.testing.assert_allclose(high, [1.0, 0.5, 1.0], atol=0.2 / 24)
    # Edges of the box are cut by a cell's diagonal, and the hollow is one of chords.
    assert mesh.volume == pytest.approx(0.5 - 4 / 3 * np.pi * 0.15**3, rel=0.02)


def test_what_has_no_such_surface_says_so():
    empty = tf.Simulation(water([1.0, 1.0, 1.0], 8))
    assert [len(part) for part in tf.surface_mesh(empty)] == [0, 0]
    with pytest.raises(ValueError, match="in 2D"):
        tf.surface_mesh(tf.Simulation(water([1.0, 1.0], 8)))
    with pytest.raises(ValueError, match="is a gas"):
        tf.surface_mesh(tf.Simulation(preset("plume").with_values({"domain.resolution": 8})))


def test_every_mesh_of_a_splash_is_closed_and_within_the_box():
    """Of a cell that lies on the surface to the bit marching cubes left holes."""
    simulation = tf.Simulation(preset("dam").with_values({"domain.resolution": 24}))
    size = np.asarray(simulation.grid.size)
    on_it = 0
    for _ in range(25):
        simulation.step()
        phi = simulation.liquid.phi.to_numpy()
        near = np.abs(phi) < 0.1 * simulation.grid.dx
        on_it += near.sum()
        simulation.liquid.phi.from_numpy(np.where(near, np.float32(0), phi))
        vertices, triangles = tf.surface_mesh(simulation)
        edges = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
        _, counts = np.unique(edges, axis=0, return_counts=True)
        assert (counts % 2 == 0).all(), simulation.steps
        assert (vertices >= -1e-6).all()
        assert (vertices <= size + 1e-6).all()
    assert on_it > 100


def test_a_file_holds_the_mesh_bit_for_bit(tmp_path):
    vertices, triangles = tf.surface_mesh(ball(16))
    tf.write_ply(tmp_path / "ball.ply", vertices, triangles)
    read = trimesh.load(tmp_path / "ball.ply", process=False)
    np.testing.assert_array_equal(np.asarray(read.vertices, np.float32), vertices)
    np.testing.assert_array_equal(read.faces, triangles)
    tf.write_ply(tmp_path / "none.ply", *tf.surface_mesh(tf.Simulation(water([1.0, 1.0, 1.0], 8))))
    assert b"element face 0\n" in (tmp_path / "none.ply").read_bytes()


def test_a_file_holds_how_fast_its_corners_are(tmp_path):
    """A ball that flies straight and one that turns: a plane of velocities is what linear interpolation gives exactly."""
    simulation = ball(16)
    x, y, z = np.meshgrid(*simulation.grid.cell_centres(), indexing="ij", sparse=True)
    simulation.set(
        velocity=[0.5 - 2.0 * (z - 0.5) + 0 * (x + y), 0.25 + 0 * (x + y + z), 2.0 * (x - 0.5) + 0 * (y + z)]
    )
    vertices, triangles = tf.surface_mesh(simulation)
    velocities = tf.velocity_at(simulation, vertices)
    tf.write_ply(tmp_path / "ball.ply", vertices, triangles, velocities)
    read = trimesh.load(tmp_path / "ball.ply", process=False)
    np.testing.assert_array_equal(np.asarray(read.vertices, np.float32), vertices)
    np.testing.assert_array_equal(read.faces, triangles)
    written = read.metadata["_ply_raw"]["vertex"]["data"]
    np.testing.assert_array_equal(np.stack([written[name] for name in ("vx", "vy", "vz")], axis=1), velocities)
    tf.write_ply(tmp_path / "up.ply", vertices, triangles, velocities, up="z")
    upright = trimesh.load(tmp_path / "up.ply", process=False)
    for name, i, sign in (("x", 0, 1), ("y", 2, -1), ("z", 1, 1)):
        raw = upright.metadata["_ply_raw"]["vertex"]["data"]
        np.testing.assert_array_equal(raw[name], sign * vertices[:, i])
        np.testing.assert_array_equal(raw[f"v{name}"], sign * velocities[:, i])
    with pytest.raises(ValueError, match="up is 'Z'; it must be one of y, z"):
        tf.write_ply(tmp_path / "no.ply", vertices, triangles, up="Z")
    u = np.stack([0.5 - 2 * (vertices[:, 2] - 0.5), 0.25 + 0 * vertices[:, 0], 2 * (vertices[:, 0] - 0.5)], axis=1)
    # The projection leaves a tolerance of it, and beyond the surface it goes on as it changes up to there.
    np.testing.assert_allclose(velocities, u, atol=0.02)
    assert tf.velocity_at(simulation, vertices[:0]).shape == (0, 3)
    for points, message in (([[0.5, 1.1, 0.5]], "outside of the box"), ([[0.5, 0.5]], r"it should be \(count, 3\)")):
        with pytest.raises(ValueError, match=message):
            tf.velocity_at(simulation, points)
    with pytest.raises(ValueError, match="outside of the box"):
        tf.velocity_at(simulation, np.full((1, 3), np.nan))


def run(folder, *arguments):
    return run_here(["demo", *arguments, "--arch", "cpu", "--resolution", "12", "--frames", "2", *PICTURE], folder)


def test_a_recording_writes_a_surface_for_each_frame(tmp_path):
    done = run(tmp_path, "splash", "--out", "film.mp4", "--surfaces", "meshes", "--up", "z")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["film.mp4", "film.png", "meshes"]
    assert sorted(os.listdir(tmp_path / "meshes")) == ["surface_00000.ply", "surface_00001.ply"]
    mesh = trimesh.load(tmp_path / "meshes" / "surface_00001.ply")
    assert mesh.is_watertight and mesh.volume > 0
    # Its floor is where z is 0, and what was its depth lies behind that of y.
    (_, back, floor), (_, front, _) = mesh.bounds
    assert floor == 0 and front == 0 and back < 0
    assert b"property float vx\n" in (tmp_path / "meshes" / "surface_00001.ply").read_bytes()
    again = run(tmp_path, "splash", "--out", "other.mp4", "--surfaces", "meshes")
    assert again.returncode == 2
    assert "'meshes' holds those of another run" in again.stderr


@pytest.mark.parametrize("scene", ["plume", "dam2d"])
def test_surfaces_of_what_has_none_are_refused(tmp_path, scene):
    done = run(tmp_path, scene, "--surfaces", "meshes")
    assert (done.returncode, os.listdir(tmp_path)) == (2, [])
    assert done.stderr.splitlines() == [
        "taichi-fluid: --surfaces is given and the scene has no liquid in 3D: give it a [liquid], or leave that out."
    ]


def test_a_log_of_a_liquid_is_written_as_it_runs(tmp_path):
    done = run(tmp_path, "dam2d", "--out", "film.mp4", "--log", "log.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["log.csv", "film.mp4", "film.png"]
    header, *rows = (tmp_path / "log.csv").read_text().splitlines()
    assert header.startswith("time,steps,dt,cfl,iterations,residual,") and header.endswith(",particles")
    assert len(rows) == 2
    again = run(tmp_path, "dam2d", "--out", "other.mp4", "--log", "log.csv")
    assert again.returncode == 2 and "'log.csv' is there already" in again.stderr
