"""jax-cfd's semi-implicit step of decaying turbulence in a periodic box, its own main use."""
# pyright: reportMissingImports=false

import jax
import jax.numpy as jnp
import jax_cfd.base as cfd

SPEED, VISCOSITY = 7.0, 1e-3


class Program:
    """The flow begins as filtered noise, as in the examples of jax-cfd."""

    iterations = None

    def __init__(self, n: int, dim: int):
        grid = cfd.grids.Grid((n,) * dim, domain=((0, 2 * jnp.pi),) * dim)
        dt = cfd.equations.stable_time_step(SPEED, 0.5, VISCOSITY, grid)
        settings = {"density": 1.0, "viscosity": VISCOSITY, "dt": dt, "grid": grid}
        self._step = jax.jit(cfd.equations.semi_implicit_navier_stokes(**settings))
        change = cfd.equations.navier_stokes_explicit_terms(**settings)

        def predict(velocity):
            changes = change(velocity)
            return tuple(
                cfd.grids.GridVariable(u.array + dt * du.array, u.bc) for u, du in zip(velocity, changes, strict=True)
            )

        self._predict, self._project = jax.jit(predict), jax.jit(cfd.pressure.projection)
        self._velocity = cfd.initial_conditions.filtered_velocity_field(
            jax.random.PRNGKey(0), grid, maximum_velocity=SPEED, peak_wavenumber=4
        )

    def step(self) -> None:
        self._velocity = jax.block_until_ready(self._step(self._velocity))

    def divergence(self) -> float:
        before = self._predict(self._velocity)
        after = self._project(before)
        rms = [jnp.sqrt((cfd.finite_differences.divergence(v).data ** 2).mean()) for v in (before, after)]
        return float(rms[1] / rms[0])
