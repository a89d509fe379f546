"""Where cells and faces lie, what is refused, and what happens without Taichi or after it was started again."""

import importlib
import inspect
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reference import SHAPES, face_shape

from taichi_fluid._ti import ti
from taichi_fluid.boundaries.coefficients import BoundaryCoefficients
from taichi_fluid.boundaries.solids import Solid, Solids
from taichi_fluid.boundaries.walls import SCALAR, Walls
from taichi_fluid.grid import MAX_ARRAY_BYTES, Grid, Scratch
from taichi_fluid.physics.advection import Advection, Scheme, Trace
from taichi_fluid.physics.combustion import Flame, radiate
from taichi_fluid.physics.diffusion import Diffusion
from taichi_fluid.physics.forces import accelerate, add_buoyancy, add_confinement
from taichi_fluid.physics.sources import Emitter, decay, fade
from taichi_fluid.pressure.projection import Projection
from taichi_fluid.pressure.solver import EllipticSolver
from taichi_fluid.render.arrows import render_arrows
from taichi_fluid.render.image import Image
from taichi_fluid.render.optics import Optics
from taichi_fluid.render.ranges import Ranges, plane_of
from taichi_fluid.render.slices import render_slice
from taichi_fluid.render.tracers import Tracers
from taichi_fluid.scene import Look
from taichi_fluid.simulation.diagnostics import Diagnostics

ROOT = Path(__file__).parent.parent


def test_values_come_back_as_they_went_in_and_ghosts_stay(dim):
    for shape in SHAPES[dim]:
        grid = Grid(shape, 0.1)
        for components in (1, 3):
            array = grid.array(components)
            assert not array.to_numpy().any()
            array.fill(7.0)
            full = (components, *shape) if components > 1 else shape
            values = np.random.default_rng(0).random(full).astype(np.float32)
            grid.from_numpy(array, values)
            np.testing.assert_array_equal(grid.to_numpy(array), values)
            padded = grid.to_numpy_padded(array)
            assert padded.shape == full[: components > 1] + grid.padded
            assert (padded == 7).sum() == components * (grid.cells - math.prod(shape))


def test_faces_come_back_with_both_walls(dim):
    for shape in SHAPES[dim]:
        grid = Grid(shape, 0.1)
        velocity = grid.velocity()
        rng = np.random.default_rng(0)
        faces = [rng.random(face_shape(shape, axis)).astype(np.float32) for axis in range(dim)]
        grid.face_velocity_from_numpy(velocity, faces)
        for given, found in zip(faces, grid.face_velocity_to_numpy(velocity), strict=True):
            np.testing.assert_array_equal(found, given)
        # ``to_numpy`` hands out the lower faces of the same.
        for axis, component in enumerate(grid.to_numpy(velocity)):
            np.testing.assert_array_equal(component, np.delete(faces[axis], -1, axis=axis))


def test_what_comes_out_is_a_copy(dim):
    grid = Grid(SHAPES[dim][0], 1.0)
    array = grid.array()
    grid.to_numpy(array)[...] = 1.0
    assert not grid.to_numpy(array).any()


def test_lengths_follow_from_shape_and_dx(dim):
    shape = SHAPES[dim][0]
    grid = Grid(shape, 0.25, origin=(1.0, 2.0, 3.0)[:dim])
    assert grid.dim == dim
    assert grid.cells == math.prod(n + 2 for n in shape)
    assert grid.cell_volume == 0.25**dim
    assert grid.size == tuple(0.25 * n for n in shape)
    for axis, centres in enumerate(grid.cell_centres()):
        assert centres.shape == tuple(n if a == axis else 1 for a, n in enumerate(shape))
        assert centres.ravel()[0] == grid.origin[axis] + 0.125
        assert centres.ravel()[-1] == pytest.approx(grid.origin[axis] + grid.size[axis] - 0.125)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (dict(shape=(4,), dx=1.0), "shape"),
        (dict(shape=(4, 4, 4, 4), dx=1.0), "shape"),
        (dict(shape=(4, 0), dx=1.0), "shape"),
        (dict(shape=(4, -3, 2), dx=1.0), "shape"),
        (dict(shape=(4, 4), dx=0.0), "dx"),
        (dict(shape=(4, 4), dx=-1.0), "dx"),
        (dict(shape=(4, 4), dx=math.nan), "dx"),
        (dict(shape=(4, 4), dx=math.inf), "dx"),
        (dict(shape=(4.5, 8), dx=1.0), r"shape\[0\] is 4.5; it must be a whole number, 1 or more"),
        (dict(shape=(4, 8.0), dx=1.0), r"shape\[1\] is 8.0"),
        (dict(shape=(4, True), dx=1.0), r"shape\[1\] is True"),
        (dict(shape="44", dx=1.0), r"shape\[0\] is '4'"),
        (dict(shape=8, dx=1.0), "shape is 8"),
        (dict(shape=(4, 4), dx="1"), "dx is '1'; it must be a positive number of metres"),
        (dict(shape=(4, 4), dx=True), "dx is True"),
        (dict(shape=(4, 4), dx=1.0, origin=(0.0,)), "origin has 1 coordinates on a grid of 2 axes"),
        (dict(shape=(4, 4), dx=1.0, origin=(0.0, math.nan)), r"origin\[1\] is nan; it must be a finite number"),
        (dict(shape=(4, 4), dx=1.0, origin=(-math.inf, 0)), r"origin\[0\] is -inf"),
        (dict(shape=(4, 4), dx=1.0, origin=(0, False)), r"origin\[1\] is False"),
    ],
)
def test_what_cannot_be_is_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=named):
        Grid(**arguments)


def test_numbers_of_numpy_are_as_good():
    grid = Grid(np.array([4, 3]), np.float32(0.5), origin=np.array([1, 2]))
    assert (grid.shape, grid.dx, grid.origin) == ((4, 3), 0.5, (1.0, 2.0))
    assert [type(n) for n in grid.shape] == [int, int]


def test_an_array_beyond_the_limit_is_refused_before_it_is_allocated():
    side = math.isqrt(MAX_ARRAY_BYTES // 4)
    with pytest.raises(ValueError, match="2 GiB"):
        Grid((side, side), 1.0).array()
    with pytest.raises(ValueError, match="2 GiB"):
        Grid((600, 600, 600), 1.0).velocity()


def test_values_of_another_shape_are_refused(dim):
    grid = Grid(SHAPES[dim][0], 1.0)
    with pytest.raises(ValueError, match="shape"):
        grid.from_numpy(grid.array(), np.zeros((3,) * dim))
    with pytest.raises(ValueError, match="component 0"):
        grid.face_velocity_from_numpy(grid.velocity(), [np.zeros(grid.shape)] * dim)


# Arrays of another length, whose end a kernel would read and write beyond


def doors(dim):
    """Every public function that takes arrays, with arguments that fit; a new array for each."""
    grid = Grid((4, 3, 2)[:dim], 0.5)
    walls, scratch = Walls(grid, [("free-slip", "free-slip")] * dim), Scratch(grid)
    solids = Solids(grid, walls, [Solid("sphere", (1.0,) * dim, radius=0.4, slip=True)])
    solver, sides = EllipticSolver(grid, "cg"), BoundaryCoefficients.closed(dim)
    solver.setup((1,) * dim, sides)
    advection = Advection(grid, walls, scratch, Scheme.SEMI_LAGRANGIAN, Trace.EULER)
    beside = Advection(grid, walls, scratch, Scheme.SEMI_LAGRANGIAN, Trace.EULER, solids)
    projection, diffusion, flame = Projection(grid, walls, scratch, "cg"), Diffusion(grid, walls), Flame(grid)
    emitter, diagnostics = Emitter(grid, "sphere", (1.0,) * dim, (0.0,) * dim, 0.4), Diagnostics(grid)
    look, image, plane = Look(), Image(32, 32), plane_of(grid, dim - 1, 0.5)
    tracers, ranges = Tracers(grid, walls, None, 3), Ranges(grid, None)
    gravity = (0.0,) * dim
    s, v = (lambda: grid.array()), (lambda: grid.array(dim))
    step = {"rate": 1.0, "dt": 0.1}
    return [
        (grid.to_numpy, {"array": s()}),
        (grid.to_numpy_padded, {"array": s()}),
        (grid.from_numpy, {"array": s(), "values": np.zeros(grid.shape)}),
        (grid.face_velocity_to_numpy, {"velocity": v()}),
        (grid.face_velocity_from_numpy, {"velocity": v(), "values": []}),
        (walls.fill, {"array": s()}),
        (walls.fill_predicted, {"array": s(), "component": SCALAR}),
        (walls.fill_change, {"array": s(), "axis": 0}),
        (walls.fill_velocity, {"velocity": v()}),
        (walls.convect, {"velocity": v(), "dt": 0.1}),
        (walls.balance, {"velocity": v(), "missing": [0.0], "open": v()}),
        (walls.close_parts, {"open": v()}),
        (walls.add_fluxes, {"rhs": s(), "mask": s(), "name": "smoke", "k": 0, "scale": 1.0}),
        (walls.add_held, {"held": s(), "mask": s(), "component": SCALAR, "name": "smoke"}),
        (walls.meet_outside, {"velocity": v(), "dt": 0.1}),
        (walls.meet_outside, {"velocity": v(), "dt": 0.1, "was": v()}),
        (walls.narrow, {"level": s()}),
        (solids.enforce, {"velocity": v()}),
        (solids.extend_scalar, {"array": s()}),
        (solids.at_corners, {"array": s()}),
        (solids.clear_scalar, {"array": s()}),
        (solver.setup, {"first": (1,) * dim, "sides": sides, "mask": s(), "held": s()}),
        (solver.mark, {"first": (1,) * dim, "sides": sides, "mask": s()}),
        (solver.setup_marked, {"sides": sides, "held": s()}),
        (solver.setup_open, {"open": v(), "sides": sides}),
        (solver.setup_surface, {"open": v(), "phi": s(), "sides": sides}),
        (solver.precondition, {"r": s(), "out": s()}),
        (solver.solve, {"rhs": s(), "out": s()}),
        (solver.sweep, {"rhs": s(), "out": s(), "sweeps": 1}),
        (projection.compute_rhs, {"velocity": v(), "rhs": s(), "expansion": s(), "dt": 1.0, "rho": 1.0}),
        (projection.solve, {"pressure": s(), "tolerance": 1e-4, "max_iterations": 1}),
        (projection.subtract_gradient, {"velocity": v(), "pressure": s(), "scale": 1.0}),
        (projection.project, {"velocity": v(), "pressure": s(), "expansion": s(), "dt": 1.0, "rho": 1.0, "tolerance": 1e-4}),
        (advection.trace_paths, {"velocity": v(), "departure": v(), "growth": s(), "dt": 0.1}),
        (advection.carry, {"current": s(), "out": s()}),
        (advection.cover, {"scalar": s(), "was": s(), "name": "smoke"}),
        (beside.note_parts, {"was": s()}),
        (advection.carry_velocity, {"velocity": v(), "out": v(), "dt": 0.1}),
        (diffusion.diffuse, {"a": s(), "diffusivity": 1.0, "dt": 0.1}),
        (diffusion.advance, {"a": s(), "diffusivity": 1.0, "dt": 0.1, "before": s()}),
        (diffusion.diffuse_velocity, {"velocity": v(), "viscosity": 1.0, "dt": 0.1}),
        (diffusion.advance_velocity, {"velocity": v(), "viscosity": 1.0, "dt": 0.1, "rubbed": v(), "before": v()}),
        (add_buoyancy, {"grid": grid, "velocity": v(), "scalar": s(), "gravity": gravity, "coefficient": 1.0, "dt": 0.1}),
        (accelerate, {"grid": grid, "velocity": v(), "acceleration": gravity, "dt": 0.1}),
        (add_confinement, {"grid": grid, "walls": walls, "velocity": v(), "length": 0.1, "dt": 0.1, "scratch": (v(), v(), s())}),
        (emitter.add, {"array": s(), **step}),
        (emitter.paint, {"array": s(), "amount": 1.0}),
        (emitter.drive, {"velocity": v(), "target": gravity}),
        (emitter.push, {"velocity": v(), "change": gravity}),
        (decay, {"grid": grid, "array": s(), **step}),
        (fade, {"grid": grid, "array": s(), **step}),
        (flame.burn, {"fuel": s(), "temperature": s(), "smoke": s(), "dt": 0.1, "burn_rate": 1.0}),
        (flame.dilute, {"array": s(), "dt": 0.1}),
        (radiate, {"grid": grid, "temperature": s(), **step}),
        (diagnostics.largest_magnitude, {"array": s()}),
        (diagnostics.not_finite, {"array": s()}),
        (diagnostics.integral, {"array": s()}),
        (diagnostics.amount, {"array": s()}),
        (diagnostics.kinetic_energy, {"velocity": v()}),
        (diagnostics.enstrophy, {"velocity": v()}),
        (diagnostics.divergence, {"velocity": v(), "expansion": s()}),
        (diagnostics.compute_mean, {"a": s(), "b": s(), "out": s()}),
        (diagnostics.compute_speed, {"velocity": v(), "out": s()}),
        (diagnostics.compute_wet_component, {"velocity": v(), "axis": 0, "out": s(), "weighed": False}),
        (diagnostics.compute_wet_part, {"out": s()}),
        (diagnostics.compute_divergence, {"velocity": v(), "out": s()}),
        (diagnostics.compute_vorticity, {"velocity": v(), "out": s()}),
        (Optics(grid).compute, {"look": look, "direction": gravity, "smoke": s(), "dye": grid.array(3), "temperature": s(), "distance": s()}),
        (render_slice, {"grid": grid, "values": s(), "image": image, "table": None, "limits": (0.0, 1.0), "plane": plane, "distance": s(), "level": s()}),
        (render_arrows, {"grid": grid, "velocity": v(), "image": image, "plane": plane, "arrows": 4, "speed": 1.0, "distance": s(), "level": s()}),
        (ranges.limits, {"values": s(), "plane": plane}),
        (ranges.fastest, {"velocity": v(), "plane": plane}),
        (tracers.advance, {"velocity": v(), "time": 0.1, "life": 1.0, "fastest": 1.0}),
    ]  # fmt: skip


DOORS = (
    "boundaries.solids.solids", "boundaries.walls", "grid", "physics.advection.advection", "physics.combustion",
    "physics.diffusion", "physics.forces", "physics.sources", "pressure.projection", "pressure.solver",
    "render.arrows", "render.optics", "render.ranges", "render.sheets", "render.slices", "render.tracers",
    "render.volume", "simulation.diagnostics",
)  # fmt: skip
"""Modules whose public functions are doors: what they take without saying of what type is an array."""

NO_DOORS = {
    "Grid.require.arrays", "Smoothed.update.key", "Tracers.draw.table", "add_confinement.scratch", "given.arrays",
    "render_sheets.background", "render_slab.background", "render_slice.table", "render_volume.background",
    "require_limits.max_iterations", "require_limits.tolerance", "require_pair.out", "require_pair.rhs",
}  # fmt: skip
"""What is no array over the grid, or is tried by itself."""


def functions_of(module):
    """Public functions and methods that are defined in a module, but for those that run on the device."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__ or name.startswith("_"):
            continue
        if hasattr(value, "_is_taichi_function"):
            continue
        if inspect.isclass(value):
            yield from (method for key, method in vars(value).items() if inspect.isfunction(method) and key[0] != "_")
        elif inspect.isfunction(value):
            yield value


def test_every_door_is_in_the_list(dim):
    listed = {
        f"{call.__qualname__}.{name}"
        for call, arguments in doors(dim)
        for name, value in arguments.items()
        if isinstance(value, ti.Ndarray)
    }
    for module in DOORS:
        for function in functions_of(importlib.import_module(f"taichi_fluid.{module}")):
            for name, parameter in inspect.signature(function).parameters.items():
                array = parameter.annotation is inspect.Parameter.empty and name != "self"
                if array:
                    name = f"{function.__qualname__}.{name}"
                    assert (name in listed) != (name in NO_DOORS), name


def test_an_array_that_is_not_of_the_grid_is_refused_at_every_door(dim):
    for call, arguments in doors(dim):
        arrays = {name: value for name, value in arguments.items() if isinstance(value, ti.Ndarray)}
        assert arrays or "scratch" in arguments, call
        for name, array in arrays.items():
            (length,) = array.shape
            wrong = [ti.ndarray(ti.f32, n) for n in (1, length - 1, length + 1)]
            wrong += [ti.ndarray(ti.i32, length), ti.ndarray(ti.f32, (length, 1)), ti.Vector.ndarray(2, ti.f32, length)]
            wrong += [np.zeros(length, np.float32), "array", 0.0]
            if inspect.signature(call).parameters[name].default is not None and name != "smoke":
                wrong.append(None)  # may be left out nowhere else
            for bad in wrong:
                with pytest.raises(ValueError, match=f"^{name} (is|has) [^\n]*$"):
                    call(**{**arguments, name: bad})
    _, confinement = next(door for door in doors(dim) if door[0] is add_confinement)
    for place, name in enumerate(("vorticity", "force", "magnitude")):
        scratch = list(confinement["scratch"])
        scratch[place] = ti.ndarray(ti.f32, 5)
        with pytest.raises(ValueError, match=f"^{name} has 5 values"):
            add_confinement(**{**confinement, "scratch": scratch})


def test_an_offset_beyond_the_array_is_refused_at_every_door(dim):
    names = []
    for call, arguments in doors(dim):
        if "offset" not in inspect.signature(call).parameters:
            continue
        names.append(call.__qualname__)
        (length,) = next(value for value in arguments.values() if isinstance(value, ti.Ndarray)).shape
        for bad in (-length, 1, length - 1, length, 0.5):
            with pytest.raises(ValueError, match=f"^offset is {bad}; the components of .* begin at 0$"):
                call(**arguments, offset=bad)
    assert len(names) >= 9


# Taichi not running, or started again


def run_python(code: str) -> subprocess.CompletedProcess:
    """Run code in a process of its own, where Taichi may be started as it likes."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600)


def test_a_grid_before_taichi_runs_says_what_to_call():
    done = run_python(
        "from taichi_fluid.grid import Grid\ntry: Grid((4, 4), 1.0)\nexcept RuntimeError as error: print(error)\n"
    )
    assert done.returncode == 0, done.stderr
    assert "ti.init" in done.stdout


def test_a_grid_from_before_a_new_start_says_so():
    done = run_python(
        "from taichi_fluid._ti import ti\n"
        "from taichi_fluid.grid import Grid\n"
        "ti.init(arch=ti.cpu, log_level=ti.ERROR)\n"
        "import taichi_fluid as tf\n"
        "grid = Grid((4, 4), 1.0); array = grid.array()\n"
        "flow = tf.Simulation(tf.Scene.from_dict({'name': 'x', 'domain': {'size': [1.0, 1.0], 'resolution': 4}}))\n"
        "energy = [{'name': 'e', 'kind': 'integral', 'quantity': 'kinetic_energy'}]\n"
        "for again in (ti.reset, lambda: ti.init(arch=ti.cpu, log_level=ti.ERROR)):\n"
        "    again()\n"
        "    for use in (grid.array, lambda: grid.to_numpy(array), grid.require_runtime, lambda: tf.Probes(flow, energy)):\n"
        "        try: use()\n"
        "        except RuntimeError as error: print('refused', 're-initialised' in str(error))\n"
        "Grid((4, 4), 1.0).array(); print('a new one works')\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused True") == 8
    assert "a new one works" in done.stdout
