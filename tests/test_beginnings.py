"""What a flow begins with: expressions, functions, arrays and files, each component where it lies."""

import math

import numpy as np
import pytest
from reference import face_shape
from scenes_for_tests import scene
from test_scene import refusal

from taichi_fluid.scene import Scene, SceneError
from taichi_fluid.scene.beginnings import BeginningError
from taichi_fluid.simulation import Simulation

SHAPES = {2: (7, 5), 3: (5, 4, 6)}
WAVES = ["sin(2*x + y)", "cos(3*x) - y*y", "x*y*z"]
QUIET = {"sources": [], "fluid": {"gravity": [0.0, 0.0]}}


def box(shape, boundaries="open", **tables):
    made = scene(shape, 0.1, boundaries=boundaries)
    return made.with_values(tables) if tables else made


def faces_at(shape, axis, dx=0.1):
    """Coordinates of all faces along an axis."""
    steps = [np.arange(n + 1) if a == axis else np.arange(n) + 0.5 for a, n in enumerate(shape)]
    return np.meshgrid(*(dx * each for each in steps), indexing="ij")


def centres_of(shape, dx=0.1):
    return np.meshgrid(*(dx * (np.arange(n) + 0.5) for n in shape), indexing="ij")


def wave(axis, x, y, z=0.0):
    return (np.sin(2 * x + y), np.cos(3 * x) - y * y, x * y * z)[axis]


def faces_of(simulation):
    return simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)


def test_each_component_of_an_expression_is_taken_at_its_own_faces(dim):
    shape = SHAPES[dim]
    simulation = Simulation(box(shape, **{"initial.velocity": WAVES[:dim], "initial.smoke": "exp(-x) + y"}))
    for axis, found in enumerate(faces_of(simulation)):
        np.testing.assert_array_equal(found, np.float32(wave(axis, *faces_at(shape, axis))))
    x, y, *_ = centres_of(shape)
    np.testing.assert_array_equal(simulation.to_numpy("smoke"), np.float32(np.exp(-x) + y))


def test_on_the_collocated_grid_all_lie_at_the_centres(dim):
    shape = SHAPES[dim]
    simulation = Simulation(box(shape, **{"initial.velocity": WAVES[:dim], "domain.grid": "collocated"}))
    expected = np.float32([wave(axis, *centres_of(shape)) for axis in range(dim)])
    np.testing.assert_array_equal(simulation.to_numpy("velocity"), expected)


def test_an_expression_a_function_arrays_and_a_file_say_the_same(dim, tmp_path):
    shape = SHAPES[dim]
    first = Simulation(box(shape, **{"initial.velocity": WAVES[:dim], "initial.dye": ["x", 0.25, "y"]}))
    velocity, dye = first.to_numpy("velocity"), first.to_numpy("dye")
    np.save(tmp_path / "u.npy", velocity)
    np.save(tmp_path / "dye.npy", dye.astype(np.float64))
    files = {"initial.velocity": {"file": str(tmp_path / "u.npy")}, "initial.dye": {"file": str(tmp_path / "dye.npy")}}
    others = [Simulation(box(shape, **files)), *(Simulation(box(shape)) for _ in range(3))]
    others[1].set(velocity=lambda *x: [wave(axis, *x) for axis in range(dim)], dye=lambda x, y, *z: (x, 0.25, y))
    others[2].set(velocity=list(faces_of(first)), dye=["x", lambda x, *others: 0.25, dye[2]])
    others[3].set(velocity=velocity, dye=dye)
    for other in others:
        np.testing.assert_array_equal(other.to_numpy("velocity"), velocity)
        np.testing.assert_array_equal(other.to_numpy("dye"), dye)
    # What lies on upper sides is only known where it is asked for there.
    for found, expected in zip(faces_of(others[1]), faces_of(first), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_walls_and_solids_hold_whatever_is_given():
    sides = [("no-slip", "free-slip"), ({"kind": "moving-wall", "velocity": [2.0, 0.0]}, "open")]
    ball = {"shape": "sphere", "center": [0.35, 0.25], "radius": 0.12, "velocity": [0.0, 0.5]}
    simulation = Simulation(box((7, 5), sides, solids=[ball]))
    simulation.set(velocity=[1.0, 1.0], smoke=1.0)
    u, v = faces_of(simulation)
    assert not u[0].any()
    assert not u[-1].any()
    assert not v[:, 0].any()
    assert (v[:, -1] == 1).all()
    assert (simulation.to_numpy("smoke") == simulation.to_numpy("fluid")).all()
    assert v[3, 2] == v[3, 3] == 0.5
    below = simulation.grid.to_numpy_padded(simulation.state.velocity.current)[0, 2:-1, 0]
    assert (below == 2 * 2 - 1).all(), "the moving wall's ghost"


@pytest.mark.parametrize("boundaries", ["periodic", "free-slip", "open"])
def test_projected_it_is_free_of_divergence(dim, boundaries):
    shape = (8, 7, 6)[:dim]
    given = {"initial.velocity": WAVES[:dim], "initial.projected": True, "fluid.gravity": [0.0] * dim}
    simulation = Simulation(box(shape, boundaries, **given))
    plain = Simulation(box(shape, boundaries, **{**given, "initial.projected": False}))
    assert simulation.divergence().max < 1e-4 * plain.divergence().max
    assert not simulation.to_numpy("pressure").any()
    assert np.abs(simulation.to_numpy("velocity")).max() > 0.1


def test_a_vortex_of_taylor_and_green_needs_no_projection():
    """Sine times cosine at the faces is free of divergence on the grid itself."""
    velocity = ["sin(2*pi*x)*cos(2*pi*y)", "-cos(2*pi*x)*sin(2*pi*y)"]
    made = scene((16, 16), 1 / 16, boundaries="periodic").with_values({"initial.velocity": velocity})
    simulation = Simulation(made)
    assert simulation.divergence().max < 1e-5  # rounding of f32 over dx
    assert np.abs(simulation.to_numpy("velocity")).max() == pytest.approx(math.cos(math.pi / 16))


def test_reset_begins_again_and_another_beginning_waits_for_it():
    simulation = Simulation(box((6, 5), **{"initial.smoke": "x", "initial.velocity": ["0.1", 0]}))
    before = simulation.to_numpy("smoke")
    assert before.max() == pytest.approx(0.55)
    simulation.step()
    assert (simulation.to_numpy("smoke") != before).any()
    simulation.scene = simulation.scene.with_values({"initial.smoke": "2*x"})
    assert simulation.to_numpy("smoke").max() < 0.6
    simulation.reset()
    np.testing.assert_array_equal(simulation.to_numpy("smoke"), 2 * before)
    assert (simulation.to_numpy("velocity")[0] == np.float32(0.1)).all()


def test_time_is_known_to_an_expression():
    simulation = Simulation(box((4, 4)))
    simulation.set(smoke="2 + t")
    assert (simulation.to_numpy("smoke") == 2).all()
    simulation.step(0.25)
    simulation.set(smoke="2 + t")
    assert (simulation.to_numpy("smoke") == 2.25).all()


@pytest.mark.parametrize("cells", [(12, 8), (3, 2), (6, 4)])
def test_an_array_of_other_cells_is_interpolated(cells, tmp_path):
    """A linear function between the outermost values comes out as itself."""
    shape, size = (6, 4), (0.6, 0.4)
    x, y = np.meshgrid(*((np.arange(n) + 0.5) * edge / n for n, edge in zip(cells, size, strict=True)), indexing="ij")
    np.save(tmp_path / "smoke.npy", 1 + 2 * x - 3 * y)
    simulation = Simulation(box(shape, **{"initial.smoke": {"file": str(tmp_path / "smoke.npy")}}))
    there = [np.clip(c, own.min(), own.max()) for c, own in zip(centres_of(shape), (x, y), strict=True)]
    np.testing.assert_allclose(simulation.to_numpy("smoke"), 1 + 2 * there[0] - 3 * there[1], atol=1e-6)
    lower = [np.arange(n) * edge / n for n, edge in zip(cells, size, strict=True)]
    u = np.stack([np.broadcast_to(lower[0][:, None], cells), np.broadcast_to(lower[1], cells)])
    simulation.set(velocity=u)
    for axis, found in enumerate(faces_of(simulation)):
        expected = np.minimum(faces_at(shape, axis)[axis], lower[axis][-1])
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_large_grid_is_computed_a_part_at_a_time(monkeypatch):
    from taichi_fluid.scene import beginnings

    seen = []
    monkeypatch.setattr(beginnings, "SLAB", 10)
    simulation = Simulation(box((7, 5)))
    simulation.set(smoke=lambda x, y: seen.append(x.shape) or x + 10 * y)
    assert len(seen) > 2
    x, y = centres_of((7, 5))
    np.testing.assert_array_equal(simulation.to_numpy("smoke"), np.float32(x + 10 * y))


# Scenes


def test_a_scene_comes_back_from_toml_and_carries_what_it_begins_with(tmp_path):
    np.save(tmp_path / "heat.npy", np.zeros((3, 3)))
    text = """
        name = "vortex"
        [domain]
        size = [1.0, 1.0]
        resolution = 8
        [initial]
        velocity = ["sin(pi*x)", 0]
        dye = ["x", "y", 0.5]
        temperature = { file = "heat.npy" }
        projected = true
    """
    made = Scene.loads(text, folder=tmp_path)
    assert made.carried == {"temperature": 1, "dye": 3}
    assert made.files == {"initial.temperature.file": str(tmp_path / "heat.npy")}
    assert Scene.loads(made.dumps(), folder="elsewhere") == made
    assert made.initial.projected


def test_without_a_beginning_a_scene_says_nothing_of_one():
    assert not scene((4, 4)).initial.given
    assert scene((4, 4)).carried == {"smoke": 1}


def write_files(folder):
    np.save(folder / "flat.npy", np.zeros(4))
    np.save(folder / "words.npy", np.array(["a", "b"]))
    np.save(folder / "objects.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    np.save(folder / "empty.npy", np.zeros((0, 4)))
    np.save(folder / "large.npy", np.zeros((9000, 1)))
    np.savez(folder / "many.npz", a=np.zeros((2, 2)))
    (folder / "text.npy").write_text("no array")
    (folder / "cut.npy").write_bytes((folder / "flat.npy").read_bytes()[:-8])


REFUSED = {
    "velocity": {
        "[1.0]": (["initial.velocity", "as many as the box has axes"],),
        '["1", "2", "3"]': (["initial.velocity has 3 components", "2 axes"],),
        '["x", "z"]': (["initial.velocity.1", "'z'", "x, y, t"],),
        '"x"': (["initial.velocity", "'x'", "list"],),
        '{ file = "flat.npy" }': (["initial.velocity.file", "shape (4,)", "(2, n, n)"],),
    },
    "smoke": {
        '"sin(x"': (["initial.smoke: 'sin(x' cannot be read at character 4"],),
        '"x + wind"': (["initial.smoke: 'x + wind' has the name 'wind'", "character 5"],),
        "true": (["initial.smoke is True", "number"],),
        "inf": (["initial.smoke is inf", "finite number"],),
        "[1, 2]": (["initial.smoke is [1, 2]", "{ file = ... }"],),
        '{ path = "x" }': (["initial.smoke", "{ file = ... }"],),
        '{ file = "none.npy" }': (["initial.smoke.file", "there is no such file"],),
        '{ file = "." }': (["initial.smoke.file", "it must be a file"],),
        '{ file = "flat.npy" }': (["shape (4,)", "(n, n)"],),
        '{ file = "words.npy" }': (["<U1", "real numbers"],),
        '{ file = "objects.npy" }': (["no NumPy array", "Python objects"],),
        '{ file = "empty.npy" }': (["shape (0, 4)", "1 to 8192"],),
        '{ file = "large.npy" }': (["shape (9000, 1)", "1 to 8192"],),
        '{ file = "many.npz" }': (["no NumPy array"],),
        '{ file = "text.npy" }': (["no NumPy array"],),
        '{ file = "cut.npy" }': (["no NumPy array"],),
    },
    "dye": {"[1, 2]": (["initial.dye", "a list of 3"],), '"x"': (["initial.dye", "a list of 3"],)},
    "smok": {"1": (["unknown key 'initial.smok'", "did you mean 'smoke'"],)},
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values])
def test_what_no_flow_can_begin_with_is_refused_in_a_sentence(name, value, tmp_path):
    write_files(tmp_path)
    text = f'name = "x"\n[domain]\nsize = [1.0, 1.0]\n[initial]\n{name} = {value}\n'
    message = refusal(lambda: Scene.loads(text, folder=tmp_path))
    for part in REFUSED[name][value][0]:
        assert part in message


def tank(cells=32, dim=2, **tables):
    domain = {"size": [1.0] * dim, "resolution": cells}
    return Scene.from_dict({"name": "tank", "domain": domain, "liquid": {}, **tables})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e29])
@pytest.mark.parametrize(("dim", "cells"), [(2, 32), (3, 20)])
def test_a_liquid_lies_where_its_level_set_is_negative_whatever_its_scale(dim, cells, scale):
    """A ball, to a fiftieth; also of one that is no distance, flat in the middle and steeper outside."""
    square = " + ".join(f"({x} - 0.5)**2" for x in "xyz"[:dim])
    made = tank(cells, dim, initial={"level_set": f"{scale}*({square} - 0.09)"})
    simulation = Simulation(made.with_values({"fluid.gravity": [0.0] * dim}))
    volume = math.pi * 0.09 if dim == 2 else 4 / 3 * math.pi * 0.027
    assert simulation.liquid.volume == pytest.approx(volume, rel=0.02)
    position = simulation.liquid.particles.to_numpy()["position"]
    assert np.linalg.norm(position - 0.5, axis=1).max() < 0.3 + 0.25 / cells
    first = simulation.to_numpy("level set")
    simulation.step()
    simulation.reset()
    np.testing.assert_array_equal(simulation.to_numpy("level set"), first)


def test_a_level_set_lies_beside_bodies_at_first_and_is_all_there_is_when_it_is_set(tmp_path):
    drop = {"shape": "sphere", "center": [0.5, 0.8], "radius": 0.1, "velocity": [0.0, -2.0]}
    pool = {"level_set": "y - 0.5 - 0.1*cos(pi*x)"}
    simulation = Simulation(tank(liquid={"bodies": [drop]}, initial=pool))
    assert simulation.liquid.volume == pytest.approx(0.5 + math.pi * 0.01, rel=0.005)
    assert simulation.liquid.particles.to_numpy()["velocity"][:, 1].min() == pytest.approx(-2.0)
    assert not simulation.remarks
    # What a flow says of its surface, another one begins with: as high in every column, to a tenth of a cell.
    level = simulation.to_numpy("level set")
    np.save(tmp_path / "level.npy", level)
    read = Simulation(tank(initial={"level_set": {"file": str(tmp_path / "level.npy")}}))
    again = Simulation(tank())
    again.set(level_set=level, velocity=["0.25", 0])
    along = again.liquid.particles.to_numpy()["velocity"][:, 0]
    assert along.max() == pytest.approx(0.25) and np.mean(along > 0.2499) > 0.9, "but at walls"
    wet, *others = (
        np.clip(0.5 - 32 * each.to_numpy("level set"), 0, 1).sum(axis=1) for each in (simulation, read, again)
    )
    assert all(np.abs(wet - other).max() < 0.1 * 2 for other in others)
    again.set(level_set=lambda x, y: x - 0.25)
    assert again.liquid.volume == pytest.approx(0.25, rel=1e-3)
    again.set(level_set=1.0)
    assert again.liquid.particles.count == 0
    nothing = Simulation(tank(initial={"level_set": "0.5 + x"}))
    assert nothing.remarks[0].startswith("initial.level_set brings in no liquid")


def test_what_only_a_liquid_or_only_a_gas_begins_with_is_refused_of_the_other():
    for tables, words in (
        ({"smoke": "x"}, ["initial.smoke", "[liquid]", "no gas"]),
        ({"projected": True, "velocity": ["x", 0]}, ["initial.projected is True", "first step"]),
        ({"level_set": "x + z"}, ["initial.level_set", "'z'"]),
        ({"level_set": [1, 2]}, ["initial.level_set is [1, 2]"]),
    ):
        message = refusal(lambda tables=tables: tank(initial=tables))
        assert all(word in message for word in words), message
    gas = refusal(lambda: box((4, 4), **{"initial.level_set": "x"}))
    assert "initial.level_set" in gas and "no [liquid]" in gas
    with pytest.raises(BeginningError, match="level_set is nothing that a flow carries"):
        Simulation(box((4, 4))).set(level_set="x")


def test_what_is_not_finite_is_named_with_its_place():
    with pytest.raises(BeginningError) as caught:
        Simulation(box((4, 4), **{"initial.smoke": "log(x - 0.2)"}))
    assert str(caught.value) == (
        "initial.smoke is 'log(x - 0.2)', which is nan at x = 0.05, y = 0.05 m; it must be a number of at most 1e+30 "
        "everywhere"
    )


@pytest.mark.filterwarnings("error")
def test_what_a_file_holds_that_no_float_can_is_named_and_nothing_warned_of(tmp_path):
    np.save(tmp_path / "a.npy", np.full((5, 5), 1e300))
    made = box((4, 4), **{"initial.smoke": {"file": str(tmp_path / "a.npy")}})
    with pytest.raises(BeginningError, match=r"initial\.smoke is .* at x = 0\.05, y = 0\.05 m; it must be a number"):
        Simulation(made)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"wind": 1.0}, "wind is nothing that a flow carries"),
        ({"smoke": math.nan}, "smoke is nan at x = 0.05"),
        ({"smoke": object()}, "smoke is of type object"),
        ({"smoke": [1, 2]}, r"smoke has shape \(2,\)"),
        ({"smoke": np.zeros(4)}, r"smoke has shape \(4,\)"),
        ({"smoke": lambda x, y: np.zeros(3)}, r"shape \(3,\); at these places it is \(4, 4\)"),
        ({"velocity": "x"}, "velocity is 'x'; it has 2 components"),
        ({"velocity": 1.0}, "velocity is 1.0; it has 2 components"),
        ({"velocity": ["x", "y", "0"]}, "velocity has 3 components"),
        ({"velocity": lambda x, y: x}, "velocity is a function that must give 2 arrays"),
        ({"velocity": ["x", "1/0"]}, r"velocity\[1\] is '1/0', which is inf"),
        ({"smoke": 2.0, "dye": ["x", "y", "w"]}, r"dye\[2\]: 'w' has the name 'w'"),
    ],
)
def test_set_refuses_what_it_cannot_and_changes_nothing(given, named):
    simulation = Simulation(box((4, 4)))
    with pytest.raises(ValueError, match=named):
        simulation.set(**given)
    assert not simulation.to_numpy("smoke").any()
    assert not simulation.to_numpy("velocity").any()
    assert "dye" not in simulation.state.carried


def test_a_file_that_has_gone_is_named_at_the_start(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 4)))
    made = box((4, 4), **{"initial.smoke": {"file": str(tmp_path / "a.npy")}})
    (tmp_path / "a.npy").unlink()
    with pytest.raises(BeginningError, match=r"initial\.smoke\.file is .* there is no such file"):
        Simulation(made)


def test_a_quantity_of_ones_own_can_be_set():
    simulation = Simulation(box((4, 4)))
    simulation.state.add({"age": 1})
    simulation.set(age="x")
    assert simulation.to_numpy("age")[1, 0] == np.float32(0.15)
    assert face_shape((4, 4), 0) == faces_of(simulation)[0].shape
    with pytest.raises(SceneError):
        box((4, 4), **{"initial.age": "x"})
