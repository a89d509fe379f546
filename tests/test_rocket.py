"""The game in ``demos/rocket.py`` in its real window, with real keys, and its rules without one."""

import subprocess
import sys
import time
from importlib import util
from pathlib import Path

import numpy as np
import pytest
from test_backends import ENVIRONMENT, leave_out, vulkan_problem
from window_driver import SLOW, display, missing, screen_pixels

DEMO = Path(__file__).parent.parent / "demos" / "rocket.py"


@pytest.fixture(scope="module")
def rocket():
    spec = util.spec_from_file_location("rocket", DEMO)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def one_game(rocket):
    return rocket.Game(32)


@pytest.fixture
def game(one_game):
    one_game.simulation.reset()
    one_game.begin()
    return one_game


@pytest.mark.parametrize(
    ("x", "fall", "angle", "news"),
    [
        (4.8, 1.0, 0.2, "Landed!"),
        (4.8, 1.5, 0.0, "too hard"),
        (4.8, 1.0, 0.5, "too hard"),
        (2.0, 1.0, 0.0, "not the pad"),
    ],
)
def test_a_landing_is_slow_and_upright_and_on_the_pad(game, rocket, x, fall, angle, news):
    game.position, game.velocity, game.angle = np.array([x, rocket.GROUND + 0.43]), np.array([0.0, -fall]), angle
    game.advance(1 / 60, 0.0, False)
    assert news in game.news
    burns = game.simulation.to_numpy("temperature").max() > 1000.0
    if news == "Landed!":
        assert not burns and game.position[1] == pytest.approx(rocket.GROUND + 0.42)
        game.advance(1 / 60, 0.0, False)
        assert game.position[0] == x, "it rests there"
        for _ in range(20):
            game.advance(1 / 60, 0.0, True)
        assert game.position[1] > rocket.GROUND + 0.5, "and may leave again"
    else:
        assert burns
        np.testing.assert_array_equal(game.position, rocket.START)


def test_the_sides_of_the_picture_throw_the_ship_back(game, rocket):
    game.position, game.velocity = np.array([rocket.BOX[0] - 0.31, 3.0]), np.array([2.0, 0.0])
    game.advance(1 / 60, 0.0, False)
    assert game.position[0] <= rocket.BOX[0] - 0.3 and game.velocity[0] == pytest.approx(-1.0)


def test_without_thrust_nothing_burns(game):
    for _ in range(5):
        game.advance(1 / 60, 1.0, False)
    assert game.simulation.to_numpy("temperature").max() == 0 and game.simulation.to_numpy("smoke").max() == 0
    assert game.angle > 0, "it turns to the left"


def hull_and_fire(screen: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean row of the white body, -1 if it is out of sight, and the rows of bright fire."""
    red, green, blue = (screen[..., k].astype(int) for k in range(3))
    # 230, 230 and 235 are the body; the white letters of the panel have a pixel or two each.
    hull = np.nonzero((abs(red - 230) < 4) & (abs(green - 230) < 4) & (abs(blue - 235) < 4))[0]
    fire = np.nonzero((red > 240) & (green > 120) & (blue < 140))[0]
    return (float(np.median(hull)) if hull.size > 300 else -1.0), fire


def test_keys_fly_the_ship_in_its_window(tmp_path_factory, tmp_path):
    lacking = missing() or (vulkan_problem() and "no Vulkan driver starts here, and that is what draws the window")
    if lacking:
        leave_out(lacking)
    screen = tmp_path_factory.mktemp("screen")
    with display(screen) as name:
        environment = {**ENVIRONMENT, "DISPLAY": name}
        process = subprocess.Popen(
            [sys.executable, str(DEMO), "cpu", "64"],
            cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

        def tool(*words: str) -> None:
            subprocess.run(["xdotool", *words], env=environment, check=True, timeout=600)

        def until(condition) -> None:
            end = time.monotonic() + SLOW
            while not condition(*hull_and_fire(screen_pixels(screen))):
                assert process.poll() is None and time.monotonic() < end, "it did not come to pass"
                time.sleep(0.02)

        try:
            tool("mousemove", "400", "300")
            until(lambda hull, fire: hull > 0)
            start = np.inf

            def falls(hull, fire) -> bool:
                nonlocal start
                start = min(start, hull) if hull > 0 else start  # the highest place: it begins anew when it has crashed
                return hull > start + 15

            until(falls)
            tool("keydown", "Up")
            until(lambda hull, fire: 0 < hull < start - 15 and fire.size > 100 and np.median(fire) > hull + 20)
            tool("keyup", "Up")
            tool("key", "Escape")
            _, errors = process.communicate(timeout=SLOW)
        finally:
            if process.poll() is None:
                process.kill()
        assert process.returncode == 0, errors
    assert not list(tmp_path.iterdir()), "GGUI leaves nothing where the game was started"
