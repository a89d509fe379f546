"""The cases, by name."""

from . import bodies, cavities, driven, endless, exact, ghost_fluid, heat, liquids, moving, stress, transport, waves
from .cases import Case

_GHIA = "Ghia, Ghia and Shin 1982"
_DAVIS = "de Vahl Davis 1983"
_TUREK = "Schäfer and Turek 1996"

CASES = {
    case.name: case
    for case in (
        Case("taylor-green", "vortices in a periodic square", "exact", exact.taylor_green, 64, 32),
        Case("carried-vortices", "vortices that a stream carries", "exact", exact.carried_vortices, 64, 32),
        Case("poiseuille", "flow between walls, driven by a force", "exact", exact.poiseuille, 32, 8),
        Case("couette", "flow between walls, one of which moves", "exact", exact.couette, 32, 8),
        Case(
            "cavity-100",
            "lid-driven cavity, Re 100",
            f"{_GHIA}; Marchi et al. 2009",
            cavities.cavity(100, (0.015, 0.015), 30.0),
            64,
            32,
        ),
        Case("cavity-400", "lid-driven cavity, Re 400", _GHIA, cavities.cavity(400, (0.02, 0.02), 60.0), 128, 32),
        Case(
            "cavity-1000",
            "lid-driven cavity, Re 1000",
            f"{_GHIA}; Botella and Peyret 1998",
            cavities.cavity(1000, (0.01, 0.02), 80.0, "u: 0.023 at 64², 0.073 at 32²"),
            128,
            32,
        ),
        Case("heated-1e3", "heated cavity, Ra 1e3", _DAVIS, cavities.heated_cavity(1_000, 60.0, 0.005), 64, 16),
        Case("heated-1e4", "heated cavity, Ra 1e4", _DAVIS, cavities.heated_cavity(10_000, 100.0, 0.005), 64, 16),
        Case("heated-1e5", "heated cavity, Ra 1e5", _DAVIS, cavities.heated_cavity(100_000, 160.0, 0.01), 64, 16),
        Case("onset", "onset of Rayleigh–Bénard convection", "linear stability", cavities.onset, 24, 12),
        Case("rolls", "Rayleigh–Bénard convection, Ra 5e3 and 1e4", "Clever and Busse 1974", cavities.rolls, 48, 24),
        Case("dipole", "a dipole meets a wall, Re 625", "Clercx and Bruneau 2006", cavities.dipole, 256, 128),
        Case("conduction", "heat past cylinders that let none through", "Perrins et al. 1979", heat.conduction, 64, 32),
        Case("chimney", "the draught of a heated chimney", "Bernoulli", heat.chimney, 64, 32),
        Case("internal-wave", "a standing wave in layers of warm fluid", "Rayleigh 1883", heat.internal_wave, 64, 32),
        Case("lock", "cold fluid runs out below warm fluid", "Benjamin 1968", heat.lock, 192, 96),
        Case("annulus", "a hot cylinder in a cold one, Ra 1e3 and 1e4", "Shu 1999", heat.annulus, 64, 32),
        Case(
            "cylinder-20",
            "cylinder in a channel, steady, Re 20 (2D-1)",
            _TUREK,
            bodies.cylinder_steady,
            20,
            10,
        ),
        Case(
            "cylinder-100",
            "cylinder in a channel, vortex street, Re 100 (2D-2)",
            _TUREK,
            bodies.cylinder_periodic,
            20,
            10,
        ),
        Case("array", "a flow that creeps through cylinders", "Sangani and Acrivos 1982", bodies.array, 64, 32),
        Case("sphere", "sphere in a stream, Re 100", "Schiller and Naumann 1933", bodies.sphere, 10, 5),
        Case(
            "oscillating",
            "a cylinder that swings in a fluid at rest, Re 100",
            "Dütsch et al. 1998",
            bodies.oscillating,
            20,
            10,
        ),
        Case("turning", "flow between two cylinders, one of which turns", "exact", moving.turning, 64, 32),
        Case(
            "aslant", "flow in a channel not aligned with the grid, driven by a force", "exact", moving.aslant, 128, 64
        ),
        Case("swinging", "a plate that swings in its plane", "Stokes 1851", moving.swinging, 128, 64),
        Case("added-mass", "a cylinder that swings within a round wall", "potential flow", moving.added_mass, 64, 32),
        Case("zalesak", "Zalesak's disk, one turn", "Zalesak 1979", transport.there_and_back("zalesak"), 64, 32),
        Case(
            "vortex",
            "LeVeque's single vortex, there and back",
            "LeVeque 1996",
            transport.there_and_back("vortex"),
            64,
            32,
        ),
        Case("closed-box", "a hot blob of smoke in a closed box", "conservation", transport.closed_box, 128, 32),
        Case("vortices-3d", "vortices in a periodic cube", "conservation", transport.vortices_in_3d, 24, 12),
        Case("ghost-fluid", "pressure in a circle and a sphere of water", "exact", ghost_fluid.ghost_fluid, 64, 32),
        Case("pool", "water at rest, around solids and with gravity aslant", "exact", liquids.pool, 64, 16),
        Case(
            "archimedes", "a ball held in water at rest, deep and less deep", "Archimedes", liquids.archimedes, 64, 32
        ),
        Case("slosh", "first mode of a tank", "Tadjbakhsh and Keller 1960", liquids.slosh, 64, 16),
        Case("endless-wave", "a wave along a periodic axis", "Stokes 1847", endless.wave, 64, 32),
        Case("film", "a film that runs down a slope without ends", "Nusselt 1916", endless.film, 32, 16),
        Case("solitary", "a solitary wave", "Boussinesq 1872", waves.solitary, 384, 192),
        Case("run-up", "what a solitary wave runs up", "Su and Mirie 1980; Synolakis 1987", waves.run_up, 768, 384),
        Case("wavemaker", "waves that a piston makes", "Havelock 1929", driven.wavemaker, 256, 128),
        Case("wedge", "a wedge goes into water", "Zhao and Faltinsen 1993", driven.wedge, 384, 192),
        Case("drop", "a drop that surface tension drives", "Rayleigh 1879", stress.drop, 64, 32),
        Case("column", "a viscous column that spreads", "Huppert 1982", stress.column, 96, 48),
        Case("dam-front", "a dam breaks over a dry floor", "Ritter 1892; conservation", liquids.dam_front, 576, 144),
        Case("volume", "presets after 10 s", "conservation", liquids.volume, 64, 16),
    )
}
"""In the order in which they are run."""
