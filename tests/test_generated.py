"""Scenes made at random: each is refused in one sentence, or makes two steps and a picture, soon and in the memory it announced.

``GENERATED`` in the environment is how many; ``GENERATED=5000 python -m pytest -n0 tests/test_generated.py`` tries five thousand.
"""

import gc
import os
import time

import numpy as np
import tomli_w
from generating import generated

import taichi_fluid as tf
from taichi_fluid.bench.measure import array_bytes
from taichi_fluid.boundaries.mesh import MeshError
from taichi_fluid.kernels import compiled_kernels
from taichi_fluid.scene import Scene, SceneError, require_installed
from taichi_fluid.scene.beginnings import BeginningError
from taichi_fluid.scene.memory import bytes_needed, require_memory
from taichi_fluid.scene.pictures import PictureError

COUNT = int(os.environ.get("GENERATED", "60"))
SECONDS = 2.0
"""In which a scene is refused or has made its steps, where no kernel had to be compiled for it."""
LEAK = 2**20
"""Of arrays that belong to no scene: tables, partial sums."""


def sentence_of(error: Exception) -> str:
    text = str(error)
    assert "\n" not in text, text
    assert 10 < len(text) < 700, text
    return text


def plain(value):
    """Without what TOML cannot hold."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if each is not None}
    return [plain(each) for each in value if each is not None] if isinstance(value, list) else value


def read(values) -> Scene | None:
    """The scene, from its text; None where it was refused."""
    try:
        scene = Scene.loads(tomli_w.dumps(plain(values)))
        require_installed(scene)
        require_memory(scene)
    except SceneError as error:
        sentence_of(error)
        return None
    return scene if scene.domain.resolution <= 8 else scene.with_values({"domain.resolution": 8})


def run(scene) -> bool:
    """Two steps and a picture; False where files or values of it are refused, or it blows up, in a sentence."""
    try:
        simulation = tf.Simulation(scene)
        simulation.prepare()
        for _ in range(2):
            simulation.step(min(simulation.stable_dt(simulation.check()), 1.0))
        simulation.check()
    except (PictureError, BeginningError, MeshError, tf.NotFinite, tf.TooManySteps) as error:
        sentence_of(error)
        return False
    picture = tf.Renderer(simulation, 32, 24).render()
    assert picture.shape == (24, 32, 3)
    for quantity in simulation.state.quantities():
        assert np.isfinite(simulation.to_numpy(quantity.name)).all(), quantity.name
    return True


def test_generated_scenes_are_refused_in_a_sentence_or_run():
    ran, refused, slow, failed = 0, 0, [], []
    begun = array_bytes()
    for seed in range(COUNT):
        values = generated(seed)
        kernels, start = compiled_kernels(), time.perf_counter()
        try:
            scene = read(values)
            if scene is None:
                refused += 1
                continue
            ran += run(scene)
            if seed % 10 == 0:
                assert array_bytes() - begun < bytes_needed(scene) + LEAK, "more than was announced"
        except Exception as error:
            failed.append(f"{seed}: {type(error).__name__}: {error}"[:400])
        if time.perf_counter() - start > SECONDS and compiled_kernels() == kernels:
            slow.append(f"{seed}: {time.perf_counter() - start:.1f} s")
        if seed % 50 == 0:
            gc.collect()
    assert not failed, f"{len(failed)} of {COUNT}:\n" + "\n".join(failed[:40])
    assert not slow, "\n".join(slow)
    assert ran > COUNT / 10 and refused > COUNT / 10, f"{ran} of {COUNT} ran, {refused} were refused: a poor choice"
