"""What a step launches, and how many bytes its kernels must move.

``watched`` notes every launch while it is open. ``TRAFFIC`` says which arrays each kernel reads and writes; with the
arrays that it was given this makes bytes. It is the algorithm's own count: each value that a pass over the grid needs
counts once, wherever it comes from, and each that it writes once more. Left out are ghost layers, what only cells
beside a solid or a surface read, or those of a liquid where nobody says how many they are, particles that are made,
lines of memory fetched for every other value in them, and writes that first read. So it is a bound from below, and the
time it would take at the speed of a copy is one for the time.
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .._ti import Kernel, fill_ndarray, ti
from ..kernels import Launcher, Replay
from ..liquid.particles import FULL
from ..pressure.box_residual import BoxResidual
from ..pressure.transforms import Transforms

TRAFFIC = {
    # kernel: (reads, writes). A name is a parameter of the kernel, and all components of its array count:
    # name:1 only one of them, name:w as many as a vorticity has; name/2 every other cell; name@fine_n or name@coarse_n the
    # cells of that grid in place of n, name@box those from lower to upper. A kernel of several passes names what each of them reads.
    # Of particles name@number counts so many, name@starts those that the cells have, name/full@… the cells that as many fill.
    # name?a!b counts where a and b are two arrays, name?a=b where one stands in for the other; name?colour for the first colour.
    "trace_kernels.trace": ("velocity distance", "departure arrival"),
    "trace_kernels.trace_box": ("", ""),
    "trace_kernels.end_paths": ("", ""),
    "advection_kernels.mark_active": ("a:1", ""),
    "advection_kernels.semi_lagrangian": ("a:1 paths distance", "out:1"),
    "advection_kernels.predict": ("a:1 paths distance", "predicted least most"),
    "advection_kernels.correct": ("a:1 predicted least most paths distance", "out:1"),
    "advection_kernels.limit": ("lost predicted least most paths", "out:1"),
    "extrapolation_kernels.extrapolate": ("velocity earlier", "earlier"),
    "gain_kernels.set_apart": ("velocity before", "gain velocity"),
    "gain_kernels.add": ("velocity gain", "velocity"),
    "extremes_kernels.find_extremes": ("a:1  a:1", ""),
    "extremes_kernels.keep_extremes": ("a:1", "a:1"),
    "conservation_kernels.restore": (
        "after:1?shares!after least?shares!after most?shares!after fluid?shares!after open?shares!after"
        "  before:1 after:1 least most shares?shares!after fluid growth open?shares!after"
        "  after:1 least most fluid",
        "shares?shares!after after:1?shares!after out:1",
    ),
    "covering_kernels.cover": ("a:1 was fluid", ""),
    "boundary_kernels.fill_ghosts": ("", ""),
    "boundary_kernels.fill_corners": ("", ""),
    "boundary_kernels.meet_outside": ("", ""),
    "profile_kernels.lay_profile": ("", ""),
    "profile_kernels.add_profile": ("", ""),
    "profile_kernels.take_profile": ("", ""),
    "profile_kernels.narrow_profile": ("", ""),
    "flux_kernels.add_fluxes": ("", ""),
    "scalar_kernels.mark_free": ("fluid distance owner", "free"),
    "scalar_kernels.set_held": ("fluid distance owner", ""),
    "scalar_kernels.compute_weights": ("open fluid mask distance owner", "weights part"),
    "scalar_kernels.compute_beside_surfaces": ("a:1 mask weights part", "held out"),
    "scalar_kernels.add_given": ("mask owner distance", ""),
    "scalar_kernels.divide_by_part": ("a mask part", "a"),
    "scalar_kernels.sum_exchanged": ("fluid distance owner", ""),
    "held_kernels.count_free": ("fluid distance owner", "out"),
    "held_kernels.continue_fluid": ("fluid distance owner", ""),
    "sum_kernels.sum_rhs": ("rhs", ""),
    "source_kernels.add_rate": ("out:1@box", "out:1@box"),
    "source_kernels.raise_to": ("out:1@box", "out:1@box"),
    "source_kernels.drive": ("velocity@box", "velocity@box"),
    "decay_kernels.decay": ("a:1", "a:1"),
    "decay_kernels.fade": ("a:1", "a:1"),
    "force_kernels.add_buoyancy": ("velocity:1 scalar", "velocity:1"),
    "force_kernels.accelerate": ("velocity", "velocity"),
    "confinement_kernels.compute_vorticity": ("velocity", "vorticity:w magnitude"),
    "confinement_kernels.confine": ("vorticity:w magnitude  velocity force", "force  velocity"),
    "flame_kernels.burn": ("fuel temperature smoke growth fluid", "fuel temperature smoke growth"),
    "gas_kernels.keep_open_part": ("expansion open", "expansion"),
    "gas_kernels.dilute": ("a:1 expansion", "a:1"),
    "gas_kernels.radiate": ("temperature", "temperature"),
    "projection_kernels.compute_rhs": ("velocity expansion", "rhs"),
    "projection_kernels.compute_cut_rhs": ("velocity expansion open", "rhs"),
    "gradient_kernels.hold_at_sides": ("", ""),
    "gradient_kernels.subtract_centred_gradient": ("velocity pressure", "velocity"),
    "gradient_kernels.subtract_gradient": ("velocity pressure inv_diag open", "velocity"),
    "residual_kernels.start": ("inv_diag  rhs inv_diag  rhs inv_diag", ""),
    "residual_kernels.true_residual": ("x rhs inv_diag", "r"),
    "residual_kernels.scale": ("x", "x"),
    "residual_kernels.find_largest": ("x inv_diag", ""),
    "search_kernels.iterate": ("r z  z d inv_diag  x r d a_d", "d a_d  x r"),
    "search_kernels.iterate_summed": ("z d inv_diag  x r d a_d", "d a_d  x r"),
    "addition_kernels.add_correction": ("x z", "x"),
    "diagonal_kernels.precondition": ("r inv_diag", "z"),
    "mean_kernels.count_unknowns": ("inv_diag", ""),
    "mean_kernels.remove_mean": ("x inv_diag  x inv_diag", "x"),
    "relaxation_kernels.sweep": ("x rhs inv_diag", "x"),
    "relaxation_kernels.start": ("rhs inv_diag", "x"),
    "relaxation_kernels.smooth": ("x rhs inv_diag", "x"),
    "relaxation_kernels.first_sweep": ("rhs inv_diag", "x"),
    "relaxation_kernels.solve_coarsest": ("rhs inv_diag", "x"),
    "transfer_kernels.compute_weight": ("unknown open coarse@coarse_n", "weight visible@coarse_n"),
    "transfer_kernels.compute_residual": ("x rhs/2 inv_diag/2 weight/2", "residual/2"),
    "transfer_kernels.restrict": ("residual/2@fine_n visible", "rhs"),
    "transfer_kernels.prolong": ("coarse@coarse_n visible@coarse_n x/2 weight/2", "x/2"),
    "cycle_kernels.smooth_and_restrict": (
        "rhs inv_diag weight/2  residual/2 visible@coarse_n",
        "x residual/2  coarse_rhs@coarse_n",
    ),
    "cycle_kernels.prolong_and_smooth": ("coarse@coarse_n visible@coarse_n x rhs inv_diag weight/2", "x"),
    "cycle_kernels.prolong_smooth_and_sum": ("coarse@coarse_n visible@coarse_n x rhs inv_diag weight/2", "x"),
    "setup_kernels.mark_box": ("", "unknown"),
    "setup_kernels.mark_positive": ("values", "unknown"),
    "setup_kernels.close_sides": ("", ""),
    "setup_kernels.set_ghosts": ("", ""),
    "setup_kernels.compute_inv_diag": ("unknown held", "inv_diag"),
    "setup_kernels.compute_cut_inv_diag": ("open", "inv_diag"),
    "setup_kernels.keep_marked": ("inv_diag unknown", "inv_diag"),
    "coarsening_kernels.compute_shifted_inv_diag": ("open unknown", "inv_diag"),
    "setup_kernels.add_held": ("inv_diag unknown held", "inv_diag"),
    "setup_kernels.mark_wet": ("phi open", "unknown"),
    "setup_kernels.divide_by_part": ("phi open", "open"),
    "setup_kernels.mark_rows": ("inv_diag", ""),
    "setup_kernels.mark_faces": ("open inv_diag", "inv_diag"),
    "coarsening_kernels.coarsen_unknowns": ("fine@fine_n", "coarse"),
    "coarsening_kernels.drop_split": ("fine@fine_n open@fine_n", ""),
    "coarsening_kernels.coarsen_open": ("fine@fine_n unknown", "coarse"),
    "coarsening_kernels.coarsen_held": ("held@fine_n", "coarse"),
    "coarsening_kernels.hold": ("fine@fine_n open@fine_n", "coarse"),
    "coarsening_kernels.scale_sides": ("", ""),
    "ghost_kernels.wrap_ghosts": ("", ""),
    "ghost_kernels.mirror_ghosts": ("", ""),
    "ghost_kernels.fold_ghosts": ("", ""),
    # Not a kernel: SciPy's transforms there and back, and a division between them; each as one pass.
    "Transforms.solve_in_place": ("array  array  array", "array  array  array"),
    # Nor are these: the mean and the squares of a right-hand side, and what a solution leaves of it.
    "BoxResidual.measure": ("rhs rhs", ""),
    "BoxResidual.enqueue": ("x rhs", "r"),
    "label_kernels.start_labels": ("inv_diag", "label"),
    "label_kernels.hook": ("label inv_diag", ""),
    "label_kernels.shorten": ("label", "label"),
    "label_kernels.count_roots": ("label", ""),
    "label_kernels.find_held": ("inv_diag", ""),
    "region_kernels.remove_means": ("x order  x order", "x"),
    "diffusion_kernels.compute_laplacian": ("a:1 inv_diag", "out"),
    "diffusion_kernels.add_change": ("change a:1", "a:1"),
    "diffusion_kernels.take_mean": ("a:1 out:1", "out:1"),
    "diffusion_kernels.write_gain": ("a:1 start:1 change inv_diag", "out"),
    "diffusion_kernels.begin": ("start:1 gain change inv_diag", "a:1"),
    "beside_solids_kernels.to_middles": ("open:1 distance", "clearance"),
    "beside_solids_kernels.compute_beside_solids": ("a:1 unknown", "held out"),
    "beside_solids_kernels.from_middles": ("change a:1 open:1", "a:1"),
    "raster_kernels.rasterize": ("distance owner", "distance owner"),
    "raster_kernels.compute_open": ("distance owner", "open"),
    "raster_kernels.compute_fluid": ("open distance", "fluid"),
    "solid_kernels.enforce": ("open", ""),
    "solid_kernels.find_fastest": ("open", ""),
    "solid_kernels.extend_velocity": ("open", ""),
    "solid_kernels.extend_scalar": ("fluid", ""),
    "solid_kernels.grow": ("known", "out"),
    "solid_kernels.clear_scalar": ("fluid", ""),
    "load_kernels.sum_pressure": ("solved open", ""),
    "load_kernels.sum_volumes": ("solved weight open", ""),
    "load_kernels.sum_friction": ("open", ""),
    "magnitude_kernels.largest_magnitude": ("a", ""),
    "sample_kernels.sample_scalar": ("", ""),
    "sample_kernels.sample_velocity": ("", ""),
    "region_kernels.sum_region": ("a:1 fluid", ""),
    "region_kernels.find_extremes": ("a:1 fluid", ""),
    "plane_kernels.sum_flux": ("", ""),
    "sorting_kernels.count": ("position@number  counts", "counts  cell@number rank@number counts"),
    "sorting_kernels.sum_up": ("counts  counts", "starts"),
    "sorting_kernels.place": ("cell@number rank@number starts  order@number starts", "order@number"),
    "sorting_kernels.move": ("source@number order@number", "target@number"),
    "sorting_kernels.put_in_line": ("", "order@number"),
    "spacing_kernels.push_apart": ("position@number order@number phi/full@number", "there@number"),
    "motion_kernels.move": ("position@number velocity/full@number", "position@number"),
    "motion_kernels.move_beside": (
        "position@number velocity/full@number distance/full@number",
        "position@number",
    ),
    "scatter_kernels.add_colour": (
        "position@starts?colour carried@starts?colour affine@starts?colour order@starts?colour"
        " velocity/full@starts?colour weight/full@starts?colour",
        "velocity/full@starts?colour weight/full@starts?colour",
    ),
    "scatter_kernels.divide": ("weight", "velocity"),
    "gather_kernels.gather": (
        "position@number velocity/full@number before/full@number?before!velocity carried@number?before!velocity"
        " firm/full@number?before=velocity",
        "carried@number affine@number?before=velocity",
    ),
    "film_kernels.measure": ("phi", "firm"),
    "kick_kernels.find": ("velocity told forced firm", "forced"),
    "kick_kernels.settle": ("kick velocity before change", "kick change"),
    "kick_kernels.take_mean": ("pressure before fluid", "pressure before"),
    "extension_kernels.mark_weighed": ("known", "known"),
    "extension_kernels.mark_wet": ("known phi open", "known"),
    "extension_kernels.mark_rows": ("known", ""),
    "extension_kernels.extend": ("", ""),
    "extension_kernels.clear_unknown": ("known", ""),
    "extension_kernels.slip": ("open", ""),
    "extension_kernels.restore_walls": ("open", ""),
    "joining_kernels.join": ("phi", "phi"),
    "level_set_kernels.widen": ("phi", "out"),
    "level_set_kernels.go": ("phi", "out"),
    "surface_kernels.mark_rows": ("starts core?core!starts", "marks"),
    "surface_kernels.find_distance": ("marks distance there", "phi"),
    "surface_kernels.close_holes": ("phi", ""),
    "surface_kernels.balance": ("phi distance core?core!starts starts/full@starts", ""),
    "surface_kernels.wet_corners": ("phi distance", "out"),
    "surface_kernels.vent": ("phi pressure", ""),
    "parting_kernels.part": ("before", ""),
    "parting_kernels.let_go": ("phi", ""),
    "crowding_kernels.find_crowding": ("phi starts/full@starts weight/full@starts before velocity/full@starts", "out"),
    "core_kernels.reach": ("velocity phi", "reached"),
    "core_kernels.carry": ("reached", ""),
    "core_kernels.take_over": ("reached", ""),
    "core_kernels.mark_shallow": ("phi distance", "shallow"),
    "core_kernels.sum_up": ("source", "out"),
    "core_kernels.drop": ("reached found  found starts", "change"),
    "margin_kernels.never": ("", ""),
    "shape_kernels.count_in_shape": ("starts core?core!counts", "counts"),
    "shape_kernels.drive_in_shape": ("position@number", ""),
    "shape_kernels.drive_faces": ("", ""),
    "hit_kernels.measure": ("", ""),
    "inlet_kernels.let_in": ("", ""),
    "inlet_kernels.put": ("", ""),
    "depth_kernels.count_in_depth": ("starts phi core?core!counts", "counts"),
    "depth_kernels.drop_surplus": ("starts", ""),
    "depth_kernels.count_surplus": ("starts", ""),
    "refill_kernels.count_left": ("starts core", "counts"),
    "making_kernels.make": ("offsets", ""),
    "sink_kernels.take_away": ("position@number", ""),
    "sink_kernels.open_to_air": ("phi", "phi"),
    "surface_gradient_kernels.subtract": ("inv_diag", ""),
    "surface_gradient_kernels.hold_back": ("open", ""),
    "mirror_kernels.mirror": ("phi distance", "out"),
    "tension_kernels.smooth": ("a", "out"),
    "tension_kernels.find_curvature": ("a", "out"),
    "tension_kernels.press": ("phi", ""),
    "sharing_kernels.share": ("u before phi open", "u"),
    "keeping_kernels.keep": ("borne open", "borne"),
    "stress_kernels.find_places": ("distance open:1", "clear:1 middle:1"),
    "stress_kernels.set_up": (
        "phi open clear?open!distance middle?open!distance  phi felt open",
        "felt  inv_diag",
    ),
    "viscous_pressure_kernels.press": (
        "pressure phi inv_diag pushed  pressure phi inv_diag velocity",
        "velocity change",
    ),
    "viscous_pressure_kernels.add_held": ("held pressure", "held pressure"),
    "viscous_pressure_kernels.keep_rest": ("held pressure phi", "held"),
    "viscosity_kernels.begin": ("inv_diag  r inv_diag", "r d"),
    "viscosity_kernels.iterate": (
        "inv_diag  d q  u d r q  r inv_diag  r inv_diag d",
        "q  u r  d",
    ),
    "foam_kernels.count": ("phi", "counts"),
    "foam_kernels.make": ("offsets", ""),
    "foam_kernels.move": ("position@number motion@number life@number", "position@number motion@number life@number"),
    "reading_kernel.return_numbers": ("a", ""),
    # Taichi's own.
    "fill_ndarray": ("", "ndarray"),
    "ndarray_to_ndarray": ("other", "ndarray"),
    "ndarray_to_ext_arr": ("ndarray", "arr"),
    "ext_arr_to_ndarray": ("arr", "ndarray"),
}
"""Arrays that each kernel reads and writes."""

_TERM = re.compile(
    r"(?P<name>\w+)(?P<part>:1|:w)?(?P<share>/2|/full)?(?:@(?P<where>\w+))?(?:\?(?P<if>\w+)(?:(?P<is>[=!])(?P<other>\w+))?)?"
)
WORD = 4
"""Bytes of a value: f32 or i32."""


class Launch(NamedTuple):
    """One launch of a kernel.

    Attributes:
        name: ``family.kernel``, or the kernel's own name where it belongs to no family.
        values: What it was given, by parameter.
        held: How many particles the cells had by its ``starts``, where that is asked for.
    """

    name: str
    values: dict[str, Any]
    held: int = 0

    def bytes(self) -> int | None:
        """What it must move; None for a kernel that ``TRAFFIC`` does not know."""
        terms = TRAFFIC.get(self.name)
        if terms is None:
            return None
        return WORD * sum(self._words(term) for side in terms for term in side.split())

    def _words(self, term: str) -> int:
        found = _TERM.fullmatch(term)
        assert found is not None, term
        if not self._counts(found):
            return 0
        array, where = self.values[found["name"]], found["where"]
        length = math.prod(array.shape)
        number = self.held if where == "starts" else self.values["number"] if where == "number" else None
        if number is not None and found["share"] is None:
            # What belongs to particles has room for more than there are, once for each component.
            return number * (length // self.values["room"] if "room" in self.values else 1)
        shape = self._shape(where if where not in (None, "box", "starts", "number") else "n")
        if shape is None:
            return length
        cells, components = math.prod(shape), length // math.prod(n + 2 for n in shape)
        if number is not None:
            cells = number // FULL[len(shape)]
        if where == "box":
            pairs = zip(self._shape("lower") or (), self._shape("upper") or (), strict=True)
            cells = math.prod(upper - lower for lower, upper in pairs)
        if found["part"]:
            # An array of a single word stands in where there are no solids.
            components = min(components, 1 if found["part"] == ":1" or len(shape) == 2 else 3)
        return components * cells // (2 if found["share"] == "/2" else 1)

    def _counts(self, term: re.Match[str]) -> bool:
        """Whether what is asked behind the question mark of a term holds of this launch."""
        if term["if"] is None:
            return True
        value = self.values[term["if"]]
        if term["other"] is None:
            return not any(value)
        return (value is self.values[term["other"]]) == (term["is"] == "=")

    def _shape(self, name: str) -> tuple[int, ...] | None:
        vector = self.values.get(name)
        return None if vector is None else tuple(int(n) for n in vector)


class Watch:
    """What has been launched since it was opened, or last emptied.

    Attributes:
        calls: Calls from Python: of single kernels, and of recordings of many.
    """

    def __init__(self):
        self.calls = 0
        self._noted: list[tuple[Any, Sequence[Any]]] = []

    def note(self, launches: Sequence[tuple[Any, Sequence[Any]]]) -> None:
        """One call that makes these launches: kernels, each with what it is given."""
        self.calls += 1
        self._noted.extend(launches)

    def take(self) -> list[Launch]:
        """The launches noted so far, which are then forgotten; ``calls`` go on."""
        noted, self._noted = self._noted, []
        held: dict[int, int] = {}
        return [_launch(kernel, values, held) for kernel, values in noted]


def _launch(kernel, values: Sequence[Any], held: dict[int, int]) -> Launch:
    """A launch as it was noted; ``held`` keeps what arrays of ``starts`` have said so far."""
    kernel = getattr(kernel, "_primal", kernel)
    name = kernel.func.__qualname__.replace(".<locals>", "")
    given = dict(zip((argument.name for argument in kernel.arguments), values, strict=True))
    if not any("@starts" in side for side in TRAFFIC.get(name, ())):
        return Launch(name, given)
    starts = given["starts"]
    if id(starts) not in held:
        # Behind what the cells have stands how many have left, are lost, and are there in all.
        held[id(starts)] = int(starts[starts.shape[0] - 3])
    return Launch(name, given, held[id(starts)])


@contextmanager
def watched() -> Iterator[Watch]:
    """Note every launch made inside, by whomever: kernels, what recordings replay, arrays that are filled, transforms.

    It costs some 4 µs a call, beside 33 of the smallest launch that goes through Taichi. Only one may be open at a time.
    """
    watch = Watch()
    launch_kernel, launch, replay, fill = Kernel.launch_kernel, Launcher.launch, Replay.__call__, ti.ScalarNdarray.fill
    solve_in_place, measure, enqueue = Transforms.solve_in_place, BoxResidual.measure, BoxResidual.enqueue
    transform, measuring, computing = (
        SimpleNamespace(func=function, arguments=[SimpleNamespace(name=name) for name in names])
        for function, names in (
            (solve_in_place, ("array", "n")),
            (measure, ("rhs", "n")),
            (enqueue, ("rhs", "x", "r", "n")),
        )
    )

    def noted_launch(self, compiled, *values):
        watch.note([(self, values)])
        return launch_kernel(self, compiled, *values)

    def noted_straight_launch(self, args):
        launched = launch(self, args)
        if launched:
            watch.note([(self, args)])
        return launched

    def noted_replay(self):
        watch.note(self.launches)
        replay(self)

    def noted_fill(self, value):
        # Some backends fill by a kernel of Taichi's, others by a call of the driver: a launch either way.
        Kernel.launch_kernel = launch_kernel
        try:
            fill(self, value)
        finally:
            Kernel.launch_kernel = noted_launch
        watch.note([(fill_ndarray, (self, value))])

    def noted_transform(self, array):
        solve_in_place(self, array)
        watch.note([(transform, (array, self.n))])

    def noted_measure(self, rhs, *arguments):
        measure(self, rhs, *arguments)
        watch.note([(measuring, (rhs, self.system.n))])

    def noted_enqueue(self, rhs, x):
        enqueue(self, rhs, x)
        watch.note([(computing, (rhs, x, self.r, self.system.n))])

    Kernel.launch_kernel, Launcher.launch = noted_launch, noted_straight_launch
    Transforms.solve_in_place, BoxResidual.measure, BoxResidual.enqueue = noted_transform, noted_measure, noted_enqueue
    Replay.__call__, ti.ScalarNdarray.fill = noted_replay, noted_fill
    try:
        yield watch
    finally:
        Kernel.launch_kernel, Launcher.launch = launch_kernel, launch
        Transforms.solve_in_place, BoxResidual.measure, BoxResidual.enqueue = solve_in_place, measure, enqueue
        Replay.__call__, ti.ScalarNdarray.fill = replay, fill


def moved(launches: Sequence[Launch]) -> int | None:
    """Bytes that these launches must move; None if a kernel among them is not counted."""
    total = [launch.bytes() for launch in launches]
    return None if None in total else int(np.sum(total, dtype=np.int64))


def uncounted(launches: Sequence[Launch]) -> set[str]:
    """Kernels among these of which nobody has said what they move."""
    return {launch.name for launch in launches if launch.name not in TRAFFIC}
