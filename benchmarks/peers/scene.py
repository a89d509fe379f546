"""The plume that everybody who has a plume computes: the scene of ``taichi-fluid bench``. Without Taichi."""

from taichi_fluid.bench.files import default_scene
from taichi_fluid.scene import Scene

TIME_STEP = 0.03


def plume(n: int, dim: int) -> Scene:
    """The closed box of n cells along each axis."""
    return default_scene(dim).with_values({"domain.resolution": n})


def time_step(scene: Scene) -> float:
    """Fixed dt in seconds for those who do not choose their own: fluid of 0.75 m/s crosses 1.5 cells at the most."""
    return min(TIME_STEP, 2 * scene.domain.size[0] / scene.domain.shape[0])
