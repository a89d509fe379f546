"""Triangle meshes as solids: the distance of their lattice, and scenes that name a file."""

import numpy as np
import pytest

from taichi_fluid.boundaries.mesh import MeshError, read_triangles, sample_mesh
from taichi_fluid.scene import Scene, SceneError
from taichi_fluid.simulation import Simulation

trimesh = pytest.importorskip("trimesh")


def lattice(sampled):
    """Places of the lattice points, one array per axis."""
    axes = [low + sampled.spacing * np.arange(n) for low, n in zip(sampled.origin, sampled.values.shape, strict=True)]
    return np.meshgrid(*axes, indexing="ij")


def test_the_distance_to_a_box_is_exact():
    """Faces, edges and corners, inside and outside; rounding of a few f32 operations on numbers of size 1."""
    triangles = np.asarray(trimesh.creation.box((2.0, 1.0, 0.5)).triangles)
    sampled = sample_mesh(triangles, 1.0, 16)
    beyond = np.abs(lattice(sampled)) - np.array([0.5, 0.25, 0.125]).reshape(3, 1, 1, 1)
    outside = np.sqrt((np.maximum(beyond, 0) ** 2).sum(axis=0))
    np.testing.assert_allclose(sampled.values, outside + np.minimum(beyond.max(axis=0), 0), atol=2e-6)


def test_the_distance_to_a_torus_has_its_hole():
    sampled = sample_mesh(np.asarray(trimesh.creation.torus(0.35, 0.15).triangles), 1.0, 24)
    x, y, z = lattice(sampled)
    exact = np.hypot(np.hypot(x, y) - 0.35, z) - 0.15
    # The mesh is made of flat pieces: 32 around each circle, so it lies up to r (1 - cos(pi/32)) = 0.5 % inside.
    assert np.abs(sampled.values - exact).max() < 0.004
    assert ((sampled.values < 0) == (exact < 0)).mean() > 0.97


def test_what_is_inside_is_known_although_a_triangle_is_missing():
    triangles = np.asarray(trimesh.creation.icosphere(2).triangles)
    whole, holed = sample_mesh(triangles, 1.0, 12).values, sample_mesh(triangles[1:], 1.0, 12).values
    assert ((whole < 0) == (holed < 0)).mean() > 0.995


@pytest.mark.parametrize(
    ("suffix", "radius", "size"), [("obj", 1.0, "size = 0.5\n"), ("stl", 0.25, "")], ids=["obj", "stl"]
)
def test_a_scene_names_a_file_beside_it(tmp_path, suffix, radius, size):
    """And the solid it becomes holds the fluid off like the sphere that it is, of the size that is given or its own."""
    trimesh.creation.icosphere(3, radius=radius).export(tmp_path / f"ball.{suffix}")
    text = (
        'name = "mesh"\n[domain]\nresolution = 16\n[[solids]]\nshape = "mesh"\n'
        f'file = "ball.{suffix}"\ncenter = [0.5, 0.45, 0.5]\n{size}points = 24\nvelocity = [0.0, 0.5, 0.0]\n'
    )
    (tmp_path / "scene.toml").write_text(text, encoding="utf-8")
    simulation = Simulation(Scene.load(tmp_path / "scene.toml"))
    ball = {"shape": "sphere", "center": [0.5, 0.45, 0.5], "radius": 0.25, "velocity": [0.0, 0.5, 0.0]}
    exact = Simulation(Scene.from_dict({"name": "ball", "domain": {"resolution": 16}, "solids": [ball]}))
    for _ in range(2):
        simulation.step(0.02)
        exact.step(0.02)
    # The mesh is a polyhedron inside the ball, whose distance is interpolated: a few percent of a cell at the surface,
    # and a face there may count as a sliver, and be closed, on one side only.
    mesh, sphere = (s.grid.to_numpy(s.solids.open) for s in (simulation, exact))
    assert np.abs(mesh - sphere).mean() < 0.003
    wide = np.minimum(mesh, sphere) > 0.2  # through slivers the fluid may do what it likes
    mesh, sphere = (np.where(wide, s.to_numpy("velocity"), 0) for s in (simulation, exact))
    assert np.linalg.norm(mesh - sphere) < 0.06 * np.linalg.norm(sphere)
    assert np.abs(sphere).max() > 0.3


def test_a_mesh_turns_about_its_pivot_as_a_box_does(tmp_path):
    """It stood at its pivot, wherever its center was."""
    trimesh.creation.box((0.4, 0.2, 0.3)).export(tmp_path / "box.stl")
    turn = {"center": [0.5, 0.5, 0.5], "pivot": [0.3, 0.5, 0.4], "angular_velocity": [0.0, 0.0, 2.0]}
    shapes = ({"shape": "mesh", "file": str(tmp_path / "box.stl")}, {"shape": "box", "size": [0.4, 0.2, 0.3]})
    mesh, box = (
        Simulation(Scene.from_dict({"name": "turns", "domain": {"resolution": 16}, "solids": [{**shape, **turn}]}))
        for shape in shapes
    )
    for time in (0.0, 0.4):
        distances = []
        for simulation in (mesh, box):
            simulation.place_solids(time)
            distances.append(simulation.grid.to_numpy(simulation.solids.distance))
        # Between lattice points 0.4 / 64 m apart an edge is off by a part of that; beyond the lattice distances are longer.
        near = np.abs(distances[1]) < 0.05
        assert near.sum() > 100
        assert np.abs(distances[0] - distances[1])[near].max() < 0.004


def test_what_cannot_be_read_is_said(tmp_path):
    (tmp_path / "broken.obj").write_text("f 1 2 3\n", encoding="utf-8")
    with pytest.raises(MeshError, match=r"broken\.obj"):
        read_triangles(tmp_path / "broken.obj")
    with pytest.raises(MeshError, match="shape"):
        sample_mesh(np.zeros((3, 3)), 1.0)
    with pytest.raises(MeshError, match="size"):
        sample_mesh(np.zeros((1, 3, 3)), -1.0)
    solid = {"shape": "mesh", "file": "nowhere.obj", "center": [0.5, 0.5, 0.5], "size": 0.5}
    with pytest.raises(SceneError, match=r"solids\[0\]\.file.*nowhere\.obj"):
        Scene.from_dict({"name": "x", "solids": [solid]})
    flat = {"name": "x", "domain": {"size": [1, 1]}, "solids": [{**solid, "center": [0.5, 0.5]}]}
    with pytest.raises(SceneError, match="mesh"):
        Scene.from_dict(flat)
