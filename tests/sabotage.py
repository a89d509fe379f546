"""What somebody might break, and which test must fail then: ``python tests/sabotage.py [NAME ...]`` breaks it and looks.

Each is done to a copy; what ends with ``NOT NOTICED`` is a hole in the tests, and the exit status is 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
COPIED = ("taichi_fluid", "tests", "pyproject.toml", "demos", "README.md")


class Sabotage(NamedTuple):
    """One change of the source.

    Attributes:
        file: Below the package.
        text: What stands there, once.
        instead: What is put in its place.
        test: Which test must fail, as pytest names it.
    """

    file: str
    text: str
    instead: str
    test: str


SABOTAGES = {
    "what solids bear of a liquid at the end of a step alone": Sabotage(
        "liquid/liquid.py", "room, open, self.kick.part)", "room, open)",
        "test_liquid_stress.py::test_honey_that_comes_to_rest_gives_its_momentum_to_the_floor",
    ),
    "the rest of the stress beside solids": Sabotage(
        "liquid/viscosity.py", "else (RELAXED, TOLERANCE)", "else (TOLERANCE,)",
        "test_liquid_stress.py::test_friction_at_solids_is_of_second_order",
    ),
    "the sign of buoyancy": Sabotage(
        "physics/forces.py", "[dt * g * coefficient for g in gravity]", "[-dt * g * coefficient for g in gravity]",
        "test_forces.py::test_buoyancy_is_gravity_times_the_scalar_at_the_face",
    ),
    "what particles tell the faces beyond a seam": Sabotage(
        "liquid/transfer.py", "self._seams.fold(sums, grid.dim)", "self._seams.close(sums, grid.dim)",
        "test_liquid_seams.py::test_a_liquid_does_not_know_where_its_seams_are",
    ),
    "layers of faces across a seam": Sabotage(
        "liquid/extension.py", "far = around_axis(I[k] + steps, faces.n[k]) - I[k]", "far = ti.i32(steps)",
        "test_liquid_seams.py::test_a_liquid_does_not_know_where_its_seams_are",
    ),
    "ghosts that others have left to the pressure": Sabotage(
        "pressure/solver.py", "elif array is not None and self._shared:", "elif False:",
        "test_pressure.py::test_what_others_have_left_in_the_scratch_does_not_matter",
    ),
    "the direction of paths": Sabotage(
        "physics/advection/backtrace.py", "_sample_on_path(strip, origin, origin.velocity, ti.f32(0.5) * step, mean, trace, own)",
        "_sample_on_path(strip, origin, origin.velocity, ti.f32(-0.5) * step, mean, trace, own)",
        "test_advection.py::test_disks_end_where_the_float64_oracle_puts_them",
    ),
    "a wall that lets through": Sabotage(
        "boundaries/filling.py", "            a[upper] = ghosts.value[2 * axis + 1]\n", "            pass\n",
        "test_boundary.py::test_nothing_flows_through_a_wall",
    ),
    "no projection": Sabotage(
        "simulation/steps.py", '    """Make the velocity free of divergence, but for what expands."""\n', "    return\n",
        "test_simulation.py::test_hot_smoke_rises_and_the_mass_is_what_the_source_gave",
    ),
    "sides and solids as fast as at the end all through a step": Sabotage(
        "simulation/steps.py", "    engine.move_as_at(engine.time + half)\n", "    engine.move_as_at(engine.time + dt)\n",
        "test_reflection.py::test_a_ball_that_swings_is_pressed_alike_at_both_ends_of_a_step",
    ),
    "friction of the second half alone": Sabotage(
        "simulation/loads.py", "        return 0.5 * (first + implicit)\n", "        return implicit\n",
        "test_loads.py::test_a_plate_that_swings_rubs_with_the_momentum_that_the_fluid_gains",
    ),
    "a checkpoint without the first friction": Sabotage(
        "simulation/snapshot.py", '            wanted["earlier rubbed"] = earlier.rubbed\n', "            pass\n",
        "test_checkpoints.py::test_a_load_is_what_it_was",
    ),
    "no solids": Sabotage(
        "boundaries/solids/solids.py", "        self._kernels.enforce(velocity, *self.arguments())\n", "",
        "validation/test_curved_wall.py::test_closed_faces_carry_the_velocity_of_their_solid_after_every_step",
    ),
    "red for blue": Sabotage(
        "render/colour_maps.py", "3 * entry + k + channel) for channel in range(3)", "3 * entry + k + channel) for channel in (2, 1, 0)",
        "test_render.py::test_every_colour_map_is_shown_from_end_to_end",
    ),
    "a checkpoint without the pressure": Sabotage(
        "simulation/snapshot.py", "array.from_numpy(np.ascontiguousarray(values))", 'array.from_numpy(np.ascontiguousarray(values * (name != "pressure")))',
        "test_checkpoints.py::test_a_flow_goes_on_bit_for_bit",
    ),
    "a checkpoint without tracers": Sabotage(
        "render/renderer.py", "view.restore_state(arrays, numbers[_TRACERS])", "pass",
        "test_checkpoints.py::test_pictures_go_on_as_they_would_have",
    ),
    "a checksum of nothing": Sabotage(
        "io/stored.py", "        found.update(np.ascontiguousarray(arrays[name]).data)\n", "",
        "test_checkpoints.py::test_every_truncation_and_many_flips_are_found_out",
    ),
    "a watchdog asleep": Sabotage(
        "simulation/simulation.py", "            if not math.isfinite(largest):", "            if False:",
        "test_simulation.py::test_whatever_is_not_finite_wherever_is_named_at_the_next_step",
    ),
    "half a step that is whole": Sabotage(
        "viewer/halving.py", "getattr(scene.solver, name) / 2", "getattr(scene.solver, name)",
        "test_halving.py::test_half_a_step_is_half_of_the_one_that_a_scene_gives_and_within_its_limits",
    ),
    "smoke that is not kept": Sabotage(
        "physics/combustion.py", "a[offset + c] * ti.exp(-expansion[c] * dt)", "a[offset + c]",
        "test_combustion.py::test_amounts_survive_the_expansion",
    ),
    "torque the other way": Sabotage(
        "physics/loads.py", "row[turns]", "[-each for each in row[turns]]",
        "test_loads.py::test_the_torque_between_two_cylinders_is_that_of_couette",
    ),
    "particles that lose their spin": Sabotage(
        "liquid/transfer.py", "= inv_dx * slopes[axis, 0]", "= ti.f32(0.0) * inv_dx * slopes[axis, 0]",
        "test_liquid_particles.py::test_what_is_linear_goes_to_the_faces_and_back_unchanged",
    ),
    "a surface that sinks": Sabotage(
        "liquid/particle_surface.py", "RAISED, RAISED_THERE = 0.1, 0.2\n", "RAISED, RAISED_THERE = 0.0, 0.0\n",
        "test_liquid.py::test_the_volume_below_the_surface_is_that_of_the_particles",
    ),
    "crowds that look the other way": Sabotage(
        "liquid/crowding.py", "mass += weight[face] + weight[face + s[axis]]", "mass += ti.f32(2.0) * weight[face]",
        "test_liquid_particles.py::test_what_is_too_full_or_too_empty_everywhere_spreads_or_gathers_beside_walls_too",
    ),
    "a corner that nothing holds": Sabotage(
        "liquid/extension.py", "ti.select(open[face] > 0, ti.f32(AIRBORNE), ti.f32(BURIED))", "ti.f32(AIRBORNE)",
        "test_liquid_pressure.py::test_what_particles_say_within_a_solid_is_held_by_what_is_outside_and_spray_by_nothing",
    ),
    "a file that strangers may make as large as they like": Sabotage(
        "limits.py", 'content = b"" if status.st_size > most else file.read(most + 1)', "content = file.read()[: most]",
        "test_strangers.py::test_a_scene_that_means_harm_is_refused_in_a_short_sentence_at_once",
    ),
}  # fmt: skip


def noticed(sabotage: Sabotage) -> tuple[bool, str]:
    """Whether the test fails with the sabotage, and the last line of what it says."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in COPIED:
            copy = shutil.copytree if (ROOT / each).is_dir() else shutil.copy
            copy(ROOT / each, folder / each)
        file = folder / "taichi_fluid" / sabotage.file
        source = file.read_text(encoding="utf-8")
        assert source.count(sabotage.text) == 1, f"{sabotage.file} does not hold {sabotage.text!r} once"
        file.write_text(source.replace(sabotage.text, sabotage.instead), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n0",
            "-x",
            "-p",
            "no:cacheprovider",
            "-W",
            "ignore",
            "-m",
            "",
        ]
        done = subprocess.run(
            [*command, f"tests/{sabotage.test}"], cwd=folder, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )  # fmt: skip
        last = (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]
        return done.returncode == 1, last


def main(names: list[str]) -> int:
    """Do them, or those that are named; how many were not noticed."""
    holes = 0
    for name in names or SABOTAGES:
        found, last = noticed(SABOTAGES[name])
        holes += not found
        print(f"{'noticed' if found else 'NOT NOTICED'}: {name} ({SABOTAGES[name].test}): {last}", flush=True)
    return holes


if __name__ == "__main__":
    raise SystemExit(1 if main(sys.argv[1:]) else 0)
