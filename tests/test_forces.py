"""Buoyancy, uniform acceleration, vorticity confinement."""

import numpy as np
import pytest
from reference import SHAPES, closed_box, face_shape, mirrored_velocity, norm, random_scalar, random_velocity, take

from taichi_fluid.physics import forces
from taichi_fluid.scene import Scene, SceneError
from taichi_fluid.simulation import Simulation
from taichi_fluid.simulation.diagnostics import Diagnostics
from taichi_fluid.validation.water import water
from taichi_fluid.viewer.parameters import Kind, sections


@pytest.mark.vulkan_too
def test_buoyancy_is_gravity_times_the_scalar_at_the_face(dim):
    gravity, coefficient, dt = (0.5, -9.81, 2.0)[:dim], -1 / 300, 0.04
    for shape in SHAPES[dim]:
        grid, walls, arrays = closed_box(shape)
        heat, faces = random_scalar(shape), random_velocity(shape)
        velocity = arrays.velocity(faces)
        forces.add_buoyancy(grid, velocity, arrays.scalar(heat), gravity, coefficient, dt)
        walls.fill_velocity(velocity)
        for axis, found in enumerate(arrays.faces(velocity)):
            here = take(heat, axis, slice(1, None)), take(heat, axis, slice(None, -1))
            expected = faces[axis].copy()
            take(expected, axis, slice(1, -1))[...] += dt * gravity[axis] * coefficient * 0.5 * (here[0] + here[1])
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_hot_air_rises_against_gravity(dim):
    """And heavy smoke sinks, whichever way gravity points."""
    grid, _, arrays = closed_box((5, 5, 5)[:dim])
    blob = np.zeros(grid.shape)
    blob[(2,) * dim] = 100.0
    for axis in range(dim):
        for sign in (-1, 1):
            gravity = [sign * 9.81 * (a == axis) for a in range(dim)]
            for coefficient, direction in ((-1 / 300, -sign), (0.1, sign)):
                velocity = grid.velocity()
                forces.add_buoyancy(grid, velocity, arrays.scalar(blob), gravity, coefficient, 0.1)
                faces = arrays.faces(velocity)
                assert np.sign(faces[axis].sum()) == direction
                assert all(not faces[a].any() for a in range(dim) if a != axis)


def test_acceleration_is_the_same_everywhere(dim):
    for shape in SHAPES[dim]:
        grid, _, arrays = closed_box(shape)
        faces, a = random_velocity(shape), (1.0, -2.0, 0.5)[:dim]
        velocity = arrays.velocity(faces)
        forces.accelerate(grid, velocity, a, 0.25)
        for axis, component in enumerate(arrays.get(velocity)):
            lower = take(faces[axis], axis, slice(None, -1))
            np.testing.assert_allclose(component, lower + 0.25 * a[axis], rtol=0, atol=5e-7)


# Confinement


def vortex(shape, dx, width, axis=2):
    """A round vortex around the middle of the box, in the plane across ``axis``."""
    dim = len(shape)
    a, b = [d for d in range(3) if d != axis]
    faces = [np.zeros(face_shape(shape, d)) for d in range(dim)]
    for along, across, sign in ((a, b, -1), (b, a, 1)):
        places = np.indices(faces[along].shape) + 0.5
        places[along] -= 0.5
        offset = [dx * (places[d] - 0.5 * shape[d]) for d in range(dim)]
        faces[along] = sign * offset[across] * np.exp(-(offset[a] ** 2 + offset[b] ** 2) / width**2)
    return faces


def confined(faces, length, dt=1.0, dx=1.0):
    """What confinement adds to every face."""
    shape = tuple(n - (axis == 0) for axis, n in enumerate(faces[0].shape))
    grid, walls, arrays = closed_box(shape, dx)
    velocity = arrays.velocity(faces)
    before = arrays.faces(velocity)
    scratch = (grid.velocity(), grid.velocity(), grid.array())
    forces.add_confinement(grid, walls, velocity, length, dt, scratch)
    walls.fill_velocity(velocity)
    return grid, velocity, [a - b for a, b in zip(arrays.faces(velocity), before, strict=True)]


@pytest.mark.vulkan_too
@pytest.mark.parametrize("what", ["reflection", "splitting", "liquid"])
def test_a_body_force_that_is_an_expression_in_time_is_of_second_order(what):
    """A periodic box, and a liquid that falls in one, gain its integral: of the fluid's speed the error falls with dt²."""
    told = {"body_force": ["3*cos(5*t)", -1.0], "gravity": [0.0, 0.0]}
    errors = []
    for steps in (8, 16):
        if what == "liquid":
            scene = water([1.0, 1.0], 16, [([0.3, 0.3], [0.6, 0.6])], fluid=told)
        else:
            scene = Scene.from_dict(
                {
                    "name": "pushed",
                    "domain": {"size": [1.0, 1.0], "resolution": 16, "boundaries": "periodic"},
                    "fluid": told,
                    "solver": {"scheme": what},
                }
            )
        simulation = Simulation(scene)
        for _ in range(steps):
            simulation.step(0.4 / steps)
        speed = simulation.to_numpy("velocity")
        middle, t = tuple(float(u[7, 7]) for u in speed), 0.4
        assert middle[1] == pytest.approx(-t, rel=1e-4)
        errors.append(abs(middle[0] - 0.6 * np.sin(5.0 * t)))
    assert errors[0] < 5e-3 and errors[1] < 0.27 * errors[0]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("cos(2*pi*x)", r"fluid\.body_force\.0: 'cos\(2\*pi\*x\)'.*x"),
        ("log(t)", r"fluid\.body_force\.0: 'log\(t\)' is -inf at t = 0; it must be within 1e\+06"),
        ("2e6", r"is 2e\+06 at t = 0"),
        ("", "is empty"),
        (2e6, r"fluid\.body_force\.0 is 2000000"),
    ],
)
def test_a_body_force_that_cannot_be_is_refused_in_one_sentence(part, words):
    with pytest.raises(SceneError, match=words) as refused:
        Scene.from_dict(
            {
                "name": "pushed",
                "domain": {"size": [1.0, 1.0], "resolution": 8},
                "fluid": {"body_force": [part, 0.0]},
            }
        )
    assert "\n" not in str(refused.value)


def test_steps_of_a_liquid_are_as_short_for_a_body_force_as_for_gravity():
    """Longer ones let short waves grow: in 100 m/s² a tank that sloshed at 3.6 m/s got to 6.4."""

    def longest(gravity, force):
        fluid = {"gravity": gravity} if force is None else {"gravity": gravity, "body_force": force}
        return Simulation(water([1.0, 1.0], 32, [([0, 0], [1.0, 0.5])], fluid=fluid)).stable_dt(0.0)

    falls = longest([0.0, -40.0], None)
    assert longest([0.0, 0.0], [0.0, -40.0]) == falls
    assert longest([0.0, -9.0], [0.0, "-31*cos(t)"]) == falls
    assert longest([0.0, -9.0], [0.0, "9*cos(t)"]) > 2 * falls


def test_a_slider_moves_the_numbers_of_a_body_force_and_leaves_its_expressions():
    values = {"name": "p", "domain": {"size": [1.0, 1.0], "resolution": 8}, "fluid": {"body_force": ["t", 0.5]}}
    found = [p for section in sections(Scene.from_dict(values)) for p in section.parameters if "body_force" in p.key]
    (slider,) = [p for p in found if p.kind is Kind.FLOAT]
    assert slider.value == 0.5
    assert slider.changed(2.0) == {"fluid.body_force": ["t", 2.0]}


def test_confinement_adds_no_net_force_to_a_symmetric_vortex(dim):
    shape, dx = (16, 16, 5)[:dim], 1 / 16
    _, _, added = confined(vortex(shape, dx, 0.2), 0.5 * dx, dx=dx)
    for component in added:
        # The two halves are rounded differently.
        assert abs(component.sum()) < 1e-6 * np.abs(component).sum() + 1e-9
    assert norm(added) > 1e-3


def test_confinement_pushes_along_the_flow_of_a_vortex(dim):
    """Where the vorticity falls outwards N points inwards, and N × w with the flow."""
    shape, dx = (16, 16, 5)[:dim], 1 / 16
    faces = vortex(shape, dx, 0.2)
    _, _, added = confined(faces, 0.5 * dx, dx=dx)
    assert sum((a * f).sum() for a, f in zip(added, faces, strict=True)) > 0


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_confinement_raises_the_enstrophy_of_a_vortex_around_any_axis(axis):
    shape, dx = tuple(4 if d == axis else 17 for d in range(3)), 1 / 17
    for case in [shape, shape[:2]] if axis == 2 else [shape]:
        faces = vortex(case, dx, 0.2, axis)
        enstrophies = []
        for length in (0.0, 0.2 * dx):
            grid, velocity, _ = confined(faces, length, dx=dx)
            out = grid.array()
            Diagnostics(grid).compute_vorticity(velocity, out)
            enstrophies.append((grid.to_numpy(out).astype(np.float64) ** 2).sum())
        assert enstrophies[1] > 1.01 * enstrophies[0]


def test_confinement_leaves_what_does_not_turn_alone(dim):
    """A strain has no vorticity; neither has a fluid at rest. The direction 0 / 0 must not become a NaN."""
    shape = (8, 8, 4)[:dim]
    strain = [np.zeros(face_shape(shape, axis)) for axis in range(dim)]
    x = np.arange(9.0) - 4
    strain[0][...] = x.reshape(-1, *(1,) * (dim - 1))
    strain[1][...] = -x.reshape(1, -1, *(1,) * (dim - 2))
    for faces in (strain, [0 * f for f in strain]):
        _, _, added = confined(faces, 10.0)
        assert all(not component.any() for component in added)


def test_confinement_is_seen_in_a_mirror(dim):
    shape = SHAPES[dim][0]
    faces = random_velocity(shape)
    _, _, added = confined(faces, 0.1)
    for axis in range(dim):
        _, _, seen = confined(mirrored_velocity(faces, axis), 0.1)
        for found, expected in zip(mirrored_velocity(seen, axis), added, strict=True):
            # The direction of growth is a quotient: where the vorticity hardly grows it turns on rounding.
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_confinement_does_not_see_what_others_left_in_its_scratch(dim):
    """The gradient of the vorticity reaches into the ghosts, where advection has been before."""
    shape = SHAPES[dim][0]
    grid, walls, arrays = closed_box(shape)
    found = []
    for left in (0.0, 1e3, -7.0):
        velocity = arrays.velocity(random_velocity(shape))
        scratch = (grid.velocity(), grid.velocity(), grid.array())
        for array in scratch:
            array.fill(left)
        forces.add_confinement(grid, walls, velocity, 0.3, 1.0, scratch)
        found.append(arrays.get(velocity))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_confinement_beside_a_wall_is_that_of_a_mirrored_vortex(dim):
    """A free-slip wall is a mirror: the force below it is the lower half of that on vortex and image together."""
    half, dx = (12, 8, 5)[:dim], 0.1
    whole = tuple(2 * n if axis == 1 else n for axis, n in enumerate(half))
    faces = random_velocity(half)
    image = mirrored_velocity(faces, 1)
    both = [
        np.concatenate([f, g[:, 1:] if a == 1 else g], axis=1)
        for a, (f, g) in enumerate(zip(faces, image, strict=True))
    ]
    _, _, alone = confined(faces, 0.05, dx=dx)
    _, _, doubled = confined(both, 0.05, dx=dx)
    assert doubled[0].shape[1] == whole[1]
    for axis in range(dim):
        n = alone[axis].shape[1] - (axis == 1)
        np.testing.assert_allclose(alone[axis][:, :n], doubled[axis][:, :n], rtol=0, atol=1e-4)


def test_confinement_scales_with_its_length_not_with_the_grid():
    """Twice the cells, the same force on the same vortex within the truncation error of its derivatives."""
    pushes = []
    for cells in (32, 64):
        dx = 1 / cells
        faces = vortex((cells, cells), dx, 0.2)
        _, _, added = confined(faces, 0.01, dx=dx)
        pushes.append(sum((a * f).sum() for a, f in zip(added, faces, strict=True)) * dx**2)
    assert pushes[1] == pytest.approx(pushes[0], rel=0.04)  # measured 3.1 %
