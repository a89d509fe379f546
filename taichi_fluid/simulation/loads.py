"""The solids of a flow, which know what it does to them."""

import functools
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..boundaries.solids import Faces, Solid, Solids
from ..boundaries.walls import Walls
from ..carried import rate_of
from ..grid import Grid
from ..kernels import copy_values
from ..physics.loads import Load, Loads
from ..physics.scalars_at_solids import Exchange


class Earlier(NamedTuple):
    """What a step had found out before its last projection.

    Attributes:
        steps: Steps made before it.
        dt: Its length, s.
        halved: Whether the pressure is that of its own middle; else of the end of the step before.
        lasting: For how long diffusion has reckoned with the pressure, s.
        pressure: The pressure, Pa, with which diffusion has reckoned.
        rubbed: The velocity, m/s, that the first half of friction was reckoned with; None where there is none.
        nearest: Part of a cell nearer than which a surface did not count to that half; 0 where there is none.
    """

    steps: int
    dt: float
    halved: bool
    lasting: float
    pressure: Any
    rubbed: Any
    nearest: float


class SolidsInFlow(Solids):
    """All solids of a flow.

    Args:
        flow: What they stand in: an ``Engine``.
        grid: Its grid.
        walls: Its sides.
        solids: The solids.
        faces: How faces beside them are treated.
        sliver: How far a face is open at the least, or closed.
    """

    def __init__(self, flow: Any, grid: Grid, walls: Walls, solids: Sequence[Solid], faces: Faces, sliver: float):
        super().__init__(grid, walls, solids, faces, sliver)
        self._flow = weakref.ref(flow)

    def load(self, index: int) -> Load:
        """Force and torque of the fluid on the solid of a number, the mean of the last step.

        The pressure is what the projections of the step have taken off; before the first step there is none. What a body
        force presses is in it. A constant added to the pressure does nothing; but between two regions that nothing
        connects, nobody knows by how much theirs differ. Friction is what diffusion has exchanged with the closed faces.
        The torque is about the pivot as it is now: the place that ``Motion`` turns about, ``Solid.a`` without one; of a
        scene's solid its ``pivot``, else its middle. Where two solids share a cell, each closed part of a face belongs to
        the solid nearest to it, so that what they bear together is right. A solid that is not there bears nothing.

        Raises:
            ValueError: for a number that no solid has.
            RuntimeError: if the flow is gone, if a step was begun and not ended, or if Taichi was re-initialised.
        """
        flow = self._flow_around(index)
        pressure, friction = np.zeros((2, 3)), np.zeros((2, 3))
        if self.solids[index].present(flow.time):
            earlier = flow.earlier if flow.earlier and flow.earlier.steps == flow.steps - 1 else None
            if flow.steps:
                pressure = self._pressure(flow, index)
            if flow.scene.fluid.viscosity and flow.liquid is None:
                friction = self._friction(flow, earlier, index)
            elif flow.scene.fluid.viscosity and flow.steps:
                friction = flow.liquid.viscosity.loads.load(index, flow.scene.fluid.rho)
        return Load.of(pressure, friction, self.grid.dim)

    def exchange(self, index: int, quantity: str) -> float | list[float]:
        """What the solid of a number gives the fluid of a quantity each second, now: its unit times m³/s (2D: m²/s).

        Below 0 where it takes. What it holds, ``values``, passes by diffusion, by the difference to the cells beside it; what it
        has in ``fluxes`` through each m² of its surface. Of several components one number each. A solid that has neither
        of the quantity, or is not there, gives nothing.

        Raises:
            ValueError: for a number that no solid has, and a quantity that the flow does not carry.
            RuntimeError: as ``load``.
        """
        flow = self._flow_around(index)
        carried = flow.state.carried
        if quantity not in carried:
            raise ValueError(f"quantity is {quantity!r}; this flow carries {', '.join(carried) or 'nothing'}")
        what, solid = carried[quantity], self.solids[index]
        there = solid.present(flow.time) and (quantity in solid.values or quantity in solid.fluxes)
        spread = rate_of(flow.scene.fluid, what.row, "diffusivity")
        given = [
            self._exchange.given(index, what.current, begin, quantity, spread) if there else 0.0
            for begin in what.begins()
        ]
        return given if len(given) > 1 else given[0]

    def _flow_around(self, index: int) -> Any:
        """The flow that they stand in, between two steps, of which the solid of a number is to be asked."""
        flow, count = self._flow(), len(self.solids)
        if flow is None:
            raise RuntimeError("the flow that these solids stand in is gone: keep its Simulation")
        if isinstance(index, bool) or index not in range(count):
            raise ValueError(f"there is no solid {index!r}: the {count} of this flow have the numbers from 0 on")
        self.grid.require_runtime()
        flow.require_whole()
        return flow

    def _pressure(self, flow: Any, index: int) -> np.ndarray:
        """That of the only projection, or the mean of those of both halves."""
        solver = flow.projection.solver
        weight = solver.system.open if flow.liquid is not None else None
        pressures = [pressure for pressure in (flow.first_pressure, flow.state.pressure) if pressure is not None]
        return np.mean(
            [self._loads.pressure(index, pressure, solver.inv_diag, weight) for pressure in pressures], axis=0
        )

    def _friction(self, flow: Any, earlier: Earlier | None, index: int) -> np.ndarray:
        """Of what diffusion has left; before the first step of the velocity as it is."""
        fluid, velocity = flow.scene.fluid, flow.state.velocity.current
        viscosity, dx = fluid.rho * fluid.viscosity, self.grid.dx
        if earlier is None:
            return self._loads.friction(index, velocity, viscosity)
        # The last velocity without what the pressure has changed since.
        diffused, projected = self._diffused, (0.5 if earlier.halved else 1.0) * earlier.dt
        copy_values(velocity, diffused)
        flow.projection.subtract_gradient(diffused, earlier.pressure, earlier.lasting / (fluid.rho * dx))
        flow.projection.subtract_gradient(diffused, flow.state.pressure, -projected / (fluid.rho * dx))
        self.walls.fill_velocity(diffused, keep=True)
        implicit = self._loads.friction(index, diffused, viscosity)
        if earlier.rubbed is None:
            return implicit
        flow.move_as_at(flow.time - earlier.dt)
        self.walls.fill_velocity(earlier.rubbed, keep=True)
        first = self._loads.friction(index, earlier.rubbed, viscosity, earlier.nearest)
        flow.move_as_at(flow.time)
        return 0.5 * (first + implicit)

    @functools.cached_property
    def _loads(self) -> Loads:
        return Loads(self.grid, self.walls, self)

    @functools.cached_property
    def _exchange(self) -> Exchange:
        return Exchange(self)

    @functools.cached_property
    def _diffused(self):
        return self.grid.velocity()
