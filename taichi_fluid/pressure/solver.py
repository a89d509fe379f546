"""One door to every iterative solver: a system, what makes corrections, what it leaves open, and a method."""

import math
from typing import NamedTuple

from ..boundaries.coefficients import BoundaryCoefficients
from ..grid import Grid, Scratch, given
from ..kernels import GraphRecorder, clear_values
from ..limits import is_number, whole
from .methods import ConjugateGradients, Iteration, Work
from .multigrid import Multigrid
from .null_space import ConnectedRegions, Constant, NoNullSpace, NullSpace
from .preconditioners import Diagonal, Preconditioner, Sweep
from .residual import Residual, SolveResult, Status

__all__ = ["METHODS", "EllipticSolver", "SolveResult", "Status"]


MOST_COUNTED = 2**24
"""So many cells can be counted in f32."""


class _Recipe(NamedTuple):
    """What a method is made of: how corrections are made, and how they make a solution."""

    precondition: type[Preconditioner]
    method: type[ConjugateGradients] | type[Iteration]
    searches: bool  # whether that looks for the best step along each
    sweeps: int = 1  # on each leg of a V-cycle: with conjugate gradients one costs no more than two; alone, two pay
    look_every: int = 0  # iterations between two looks of the host at the residual; 0 for as many as suit the arch


_RECIPES = {
    "multigrid-cg": _Recipe(Multigrid, ConjugateGradients, True),
    "multigrid": _Recipe(Multigrid, Iteration, True, sweeps=2),
    "cg": _Recipe(Diagonal, ConjugateGradients, True),
    "gauss-seidel": _Recipe(Sweep, Iteration, False, look_every=8),
    "jacobi": _Recipe(Diagonal, Iteration, False, look_every=8),
}

METHODS = tuple(_RECIPES)
"""Conjugate gradients with multigrid, V-cycles alone, conjugate gradients with the diagonal, and plain relaxation."""


def require_pair(grid: Grid, ready: bool, rhs, out) -> None:
    """Raise if a solver cannot solve these: what is no array of the grid, before it is ``ready``, or one array twice."""
    grid.require(rhs=rhs, out=out)
    if not ready:
        raise RuntimeError("setup() comes before solve(): the solver does not know its unknowns yet")
    if rhs is out:
        raise ValueError("rhs and out are the same array")


def require_limits(tolerance, max_iterations) -> int:
    """Raise for numbers that are none; ``max_iterations`` as a whole number."""
    if not (is_number(tolerance) and 0 <= tolerance <= 1):
        raise ValueError(f"tolerance is {tolerance!r}; it must be a number from 0 to 1")
    return whole("max_iterations", max_iterations, 0)


class EllipticSolver:
    """Solves A x = b on one grid by any of ``METHODS``; see ``system`` for A.

    Args:
        grid: The grid.
        method: One of ``METHODS``.
        sweeps: Smoothing sweeps per leg of a V-cycle; left out, what suits the method.
        scratch: Arrays to work in while it solves, all but ``first``, which may hold the right-hand side; left out, it
            has its own. Whatever finite they hold before does not matter.

    Attributes:
        system: A, and what is solved for.
        null_space: What A leaves open.

    Use:
        ``setup`` or ``setup_open`` once for a set of unknowns and sides, ``solve`` as often as wanted.
    """

    def __init__(
        self, grid: Grid, method: str = "multigrid-cg", sweeps: int | None = None, scratch: Scratch | None = None
    ):
        if method not in METHODS:
            raise ValueError(f"method is {method!r}; it is one of {', '.join(METHODS)}")
        recipe = _RECIPES[method]
        self.grid, self.method = grid, method
        if scratch is None:
            work = Work(grid.array(), grid.array() if recipe.searches else None, grid.array())
        else:
            work = Work(scratch.vector, scratch.third, scratch.second)
        sweeps = recipe.sweeps if sweeps is None else whole("sweeps", sweeps, 1)
        self._preconditioner = recipe.precondition(grid, sweeps, work.a_d)
        self.system = self._preconditioner.system
        self._residual = Residual(self.system)
        factor = None
        if not recipe.searches:
            factor = 2 * grid.dim / (2 * grid.dim + 1) if method == "jacobi" else 1.0
        self._method = recipe.method(self._preconditioner, self._residual, work, factor)
        self._work, self._shared = work, scratch is not None
        self._look_every = recipe.look_every or (1 if grid.loops.rows else 2)
        self._no_null_space, self._regions = NoNullSpace(), ConnectedRegions(self.system)
        self._constant = Constant(self.system, self._residual.partials)
        self.null_space: NullSpace = self._no_null_space
        self._problem: object = None
        self._ready = False

    @property
    def inv_diag(self):
        """Reciprocal diagonal of the operator; positive exactly where it is solved for."""
        return self.system.inv_diag

    def setup(self, first: tuple[int, ...], sides: BoundaryCoefficients, mask=None, held=None) -> None:
        """Solve for the cells from integer position ``first`` upwards, with these sides.

        Args:
            first: Lowest integer position of an unknown.
            sides: What stands around them.
            mask: An array over the grid, positive where to solve; left out, everywhere from ``first``. Given one, or
                ``held``, the set-up is always done afresh.
            held: What places that are not solved for add to the diagonal of each cell beside them, where that is not
                the same everywhere; left out, ``sides.inside``.

        Raises:
            ValueError: for sides of another number of axes, and arrays that are not of the grid.
        """
        self.grid.require(**given(held=held))
        if mask is None and held is None and (first, sides) == self._problem:
            return
        self.mark(first, sides, mask)
        self.system.set_diagonal(sides, first, sides.shift, held)
        self._finish_setup(
            sides, definite=sides.shift != 0 or any(sides.box), look=mask is not None and sides.shift == 0
        )
        self._problem = (first, sides) if mask is None and held is None else None

    def mark(self, first: tuple[int, ...], sides: BoundaryCoefficients, mask=None, cut: bool = False) -> None:
        """Only mark what is solved for, in ``system.unknown``; ``setup`` does this too, but where faces are ``cut``."""
        sides.require(first, self.grid.dim)
        self.grid.require(**given(mask=mask))
        self.system.set_sides(sides, cut=cut)
        if mask is None:
            self.system.mark_box(first)
        else:
            self.system.mark_positive(mask, first)
        self.system.set_ghosts(self.system.unknown, self.system.wrap)

    def setup_open(self, open, sides: BoundaryCoefficients) -> None:
        """Solve for all cells that have a face open, with coefficients: the pressure around solids.

        Args:
            open: How far each lower face is open, 0 to 1, components as those of a velocity; the layer of upper faces
                behind the last cells is read too; along a periodic axis it is taken from its lower end.
            sides: A side with a positive number in ``box`` holds 0 beyond it, others are closed; and what is periodic.

        Raises:
            ValueError: for sides of another number of axes, and an array that is not of the grid.
        """
        self.grid.require(self.grid.dim, open=open)
        first = (1,) * self.grid.dim
        sides.require(first, self.grid.dim)
        self.system.set_sides(sides, cut=True)
        self.system.set_open(open)
        self.system.set_diagonal(sides, first, 0.0)
        self.system.mark_positive(self.system.inv_diag, first)
        self.system.set_ghosts(self.system.unknown, self.system.wrap)
        self._finish_setup(sides, definite=True, look=True)
        self._problem = None

    def setup_marked(self, sides: BoundaryCoefficients, held) -> None:
        """Solve for what has been marked, through faces as ``system.open`` has them, sides closed; ``held`` is in the diagonal.

        Args:
            sides: What sides hold, in their ``box``, and the shift: of both ``held`` has what is to be in each cell.
            held: All that is added to the faces of a cell, an array over the grid.

        Raises:
            ValueError: for an array that is not of the grid.
        """
        self.grid.require(held=held)
        self.system.set_diagonal(sides, (1,) * self.grid.dim, sides.shift, held)
        self._finish_setup(sides, definite=True, look=False)
        self._problem = None

    def setup_surface(self, open, phi, sides: BoundaryCoefficients, parted: bool = False, walled: bool = True) -> None:
        """Solve for a liquid below a surface at which the pressure is 0, as near as that is; see ``System.set_surface``.

        Args:
            open: As of ``setup_open``.
            phi: Signed distance to the surface at centres, negative in the liquid, ghosts filled.
            sides: As of ``setup_open``.
            parted: Whether solids may close in a part of the liquid that touches no air while others do.
            walled: Whether any face is closed but for those on sides.

        Raises:
            ValueError: for sides of another number of axes, and arrays that are not of the grid.
        """
        self.grid.require(self.grid.dim, open=open)
        self.grid.require(phi=phi)
        first = (1,) * self.grid.dim
        sides.require(first, self.grid.dim)
        self.system.set_sides(sides, cut=True)
        self.system.set_surface(open, phi, walled)
        self.system.set_diagonal(sides, first, 0.0)
        # What touches air is held. Without solids between them either all of it is or nothing, and that is if any cell is air.
        held = parted or any(sides.box)
        if not held and (walled or math.prod(self.grid.shape) > MOST_COUNTED):
            held = self._regions.any_held(self._residual.r)
        elif not held:
            held = None
        self._finish_setup(sides, definite=held, look=parted)
        self._problem = None

    def _finish_setup(self, sides: BoundaryCoefficients, definite: bool | None, look: bool) -> None:
        """Make corrections for what is solved for now, and find the null space; ``look`` for connected regions.

        ``definite`` says whether anything is held; None: it is if a cell is not solved for.
        """
        preconditioner, regions, constant = self._preconditioner, self._regions, self._constant
        preconditioner.update(sides)
        self._residual.shift = sides.shift
        constant.update()
        count = constant.read_count()
        singular = count == math.prod(self.grid.shape) if definite is None else not definite
        regions.forget()
        if look and count:
            regions.find(self._residual.r, count)
            singular = regions.singular
        self.null_space = regions if regions.several else constant if singular else self._no_null_space
        preconditioner.set_singular(singular or (regions.several and not regions.held))
        self._method.update(self.null_space)
        self._ready = True

    @property
    def regions(self) -> int:
        """How many connected regions are solved for, as far as anybody looked: without solids there is one."""
        return self._regions.count or int(self._constant.count > 0)

    def precondition(self, r, out) -> None:
        """``out = M r``: one correction from zero, for tests and for other solvers."""
        self.grid.require(r=r, out=out)
        recorder = GraphRecorder()
        self._clear(out)
        self._preconditioner.record(recorder.launch, r, out)
        recorder.finish()()

    def _clear(self, correction) -> None:
        """Let a correction, and what it is made of, be 0 where passes take it for that: in ghosts, and in rows that they leave out.

        What is shared others have worked in since.
        """
        for array in (correction, *self._work[1:]):
            if array is not None and self.system.leaves_out:
                clear_values(array, self.grid.cells)
            elif array is not None and self._shared:
                self.system.set_ghosts(array, self.system.wrap)

    def solve(
        self, rhs, out, *, tolerance: float = 1e-4, max_iterations: int = 500, look_every: int | None = None
    ) -> SolveResult:
        """Solve ``A out = rhs`` from the guess in ``out`` until |residual| <= tolerance · |rhs|, L2.

        The recursion stops at the tolerance; a true residual up to 5 % above it is taken as converged.

        Args:
            rhs: Right-hand side, an array over the grid.
            out: First guess and result; set to 0 where it is not solved for. Its ghosts are 0, or wrapped.
            tolerance: Relative residual to reach; 0 makes exactly ``max_iterations``, unless f32 stalls before.
            max_iterations: Iterations, V-cycles or sweeps after which to give up.
            look_every: Iterations between two looks of the host at the residual; left out, 1 on a CPU and 2 on a GPU,
                where a look waits for the device, and 8 for plain relaxation.

        Raises:
            ValueError: for numbers that are none, and arrays that are not of the grid, or are the same one.
            RuntimeError: if nothing has been set up, or Taichi was re-initialised.
        """
        require_pair(self.grid, self._ready, rhs, out)
        max_iterations = require_limits(tolerance, max_iterations)
        every = self._look_every if look_every is None else whole("look_every", look_every, 1)
        self._clear(self._work.z)

        def solve(rhs) -> SolveResult:
            return self._method.solve(rhs, out, self.null_space, max_iterations, every)

        return self._residual.solve(rhs, out, tolerance, self.null_space, solve)

    def sweep(self, rhs, out, sweeps: int) -> SolveResult:
        """Relax exactly ``sweeps`` times from 0: red-black Gauss-Seidel, the cells of even position sum first.

        Whatever the method of this solver is; what is left is measured and reported. Not solved for, ``out`` is 0.

        Raises:
            ValueError: for fewer than one sweep, and arrays that are not of the grid.
            RuntimeError: if nothing has been set up.
        """
        require_pair(self.grid, self._ready, rhs, out)
        return self._residual.sweep(rhs, out, whole("sweeps", sweeps, 1), self.null_space)
