"""PhiFlow's smoke plume in a closed box, on JAX."""
# pyright: reportMissingImports=false

import jax
import numpy as np
from phi.jax import flow as phi
from phiml.backend import NUMPY

from .scene import plume, time_step

TOLERANCE = 1e-3


def widen_indices() -> None:
    """Let PhiML number the entries of a matrix in 64 bits: in 32 they overflow from 36³ cells on (its issue 15).

    Only while a step is compiled; the matrix itself keeps indices of 32 bits.
    """
    flat, places = NUMPY.ravel_multi_index, NUMPY.unravel_index
    NUMPY.ravel_multi_index = lambda index, *more, **named: flat(index.astype(np.int64), *more, **named)
    NUMPY.unravel_index = lambda index, shape: places(index, shape).astype(np.int32)


class Program:
    """MacCormack for velocity, smoke and heat; the pressure starts from that of the step before."""

    def __init__(self, n: int, dim: int):
        widen_indices()
        scene = plume(n, dim)
        source, dt, axes = scene.sources[0], time_step(scene), "xyz"[:dim]
        box = {"bounds": phi.Box(**dict(zip(axes, scene.domain.size, strict=True))), **dict.fromkeys(axes, n)}
        ball = phi.Sphere(**dict(zip(axes, source.center, strict=True)), radius=source.radius)

        def over_cells(value):
            return phi.CenteredGrid(value, phi.extrapolation.ZERO_GRADIENT, **box)

        burner, lift = over_cells(ball), [0.0] * dim
        lift[1] = 9.81 * scene.fluid.expansion * dt

        def predict(velocity, smoke, heat):
            smoke = phi.advect.mac_cormack(smoke, velocity, dt) + dt * source.smoke * burner
            heat = phi.advect.mac_cormack(heat, velocity, dt) + dt * source.temperature * burner
            velocity = phi.advect.mac_cormack(velocity, velocity, dt) + phi.resample(heat * tuple(lift), to=velocity)
            return velocity, smoke, heat

        self._predict = phi.jit_compile(predict)
        self._project_once = lambda velocity, pressure: phi.fluid.make_incompressible(
            velocity, (), phi.Solve("CG", TOLERANCE, x0=pressure, max_iterations=10_000, rank_deficiency=0)
        )
        self._project = phi.jit_compile(self._project_once)
        self._velocity = phi.StaggeredGrid(0, 0, **box)
        self._smoke, self._heat, self._pressure = (over_cells(0) for _ in range(3))
        # Grids keep the places of their cells once asked for; first asked for while JAX traces, they would keep tracers.
        predict(self._velocity, self._smoke, self._heat)
        self.iterations, self._axes = None, axes

    def step(self) -> None:
        velocity, self._smoke, self._heat = self._predict(self._velocity, self._smoke, self._heat)
        self._velocity, self._pressure = self._project(velocity, self._pressure)
        parts = [self._velocity.vector[axis] for axis in self._axes] + [self._smoke, self._heat, self._pressure]
        jax.block_until_ready([part.values.native(part.values.shape) for part in parts])

    def divergence(self) -> float:
        before, self._smoke, self._heat = self._predict(self._velocity, self._smoke, self._heat)
        with phi.math.SolveTape() as tape:  # counts only outside of what is compiled
            self._velocity, self._pressure = self._project_once(before, self._pressure)
        self.iterations = float(tape[0].iterations)
        squares = [phi.math.mean(phi.field.divergence(v).values ** 2) for v in (before, self._velocity)]
        return float(squares[1] / squares[0]) ** 0.5
