"""A game with a fluid in it: a small ship, pulled down by gravity, flies on simulated fire.

You will see a flame that sways as the ship turns, splashes off the ground and leaves as smoke. Land on the pad: slowly
and upright. Left and right turn (or A and D), up (or W) is the engine, R begins anew, Escape ends.
Loop, window and ship are the game's own; of the engine it asks ``paint``, ``step`` and ``render`` in each frame.
Try: fluid.cooling = 1.0 (a longer flame), another PROPELLANT, a smaller SOFT.
After the rocket at the end of the Godot tutorial on fluids in a grid.

    python demos/rocket.py [arch] [resolution] [seconds]

Where no window can open, or if seconds are given, an autopilot flies, and its last moment becomes a picture.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import taichi as ti

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png
from taichi_fluid.viewer.display import WindowProbe

BOX, START, PICTURE = np.array([6.4, 4.8]), np.array([1.4, 3.2]), (640, 480)  # m, m, pixels
GRAVITY, THRUST, EXHAUST, TURN = np.array([0.0, -2.0]), 5.0, 7.0, 2.5  # m/s², m/s², m/s, rad/s
PROPELLANT = {"radius": 0.08, "temperature": 2600.0, "smoke": 1.0}  # m, K
GROUND, PAD, SOFT, UPRIGHT = 0.24, (4.1, 5.5), 1.2, 0.3  # m, m, and what a landing forgives: m/s, rad

SCENE = {
    "name": "rocket",
    "domain": {"size": BOX.tolist(), "boundaries": [["open", "open"], ["no-slip", "open"]]},
    "fluid": {"gravity": GRAVITY.tolist(), "expansion": 0.001, "confinement": 0.03, "cooling": 2.2},
    # A scene carries what its sources bring in. This one never begins, as the game paints instead.
    "sources": [{"shape": "sphere", "center": [1, 1], "radius": 0.1, "temperature": 1.0, "smoke": 1.0, "begin": 1e6}],
    "solids": [
        {"shape": "box", "center": [3.2, 0.0], "size": [7.0, 2 * GROUND - 0.2], "colour": [0.16, 0.12, 0.11]},
        {"shape": "box", "center": [4.8, GROUND - 0.05], "size": [PAD[1] - PAD[0], 0.1], "colour": [0.8, 0.85, 0.9]},
    ],
    "look": {
        "extinction": 5.0, "incandescence": 9.0, "albedo": [0.1, 0.095, 0.1], "ambient": [0.12, 0.12, 0.16],
        "light_strength": 1.0, "background_top": [0.02, 0.03, 0.08], "background_bottom": [0.24, 0.12, 0.08],
    },
    "output": {"width": PICTURE[0], "height": PICTURE[1]},
}  # fmt: skip

TRIANGLES = np.array([  # of the ship, m, anticlockwise: fins, nozzle, body (two), nose, window
    [(-0.32, -0.42), (0.32, -0.42), (0.0, 0.3)], [(-0.12, -0.36), (0.12, -0.36), (0.0, 0.0)],
    [(-0.14, -0.26), (0.14, -0.26), (0.14, 0.2)], [(-0.14, -0.26), (0.14, 0.2), (-0.14, 0.2)],
    [(-0.14, 0.2), (0.14, 0.2), (0.0, 0.48)], [(-0.07, 0.04), (0.07, 0.04), (0.0, 0.18)],
])  # fmt: skip
RED, GREY, WHITE, BLUE = (0.75, 0.12, 0.08), (0.3, 0.3, 0.33), (0.9, 0.9, 0.92), (0.2, 0.5, 0.8)
COLOURS = np.array([RED, GREY, WHITE, WHITE, RED, BLUE], dtype=np.float32)


class Game:
    """The ship and the flow around it; ``angle`` is 0 upright and grows to the left."""

    def __init__(self, resolution: int):
        self.simulation = tf.Simulation(tf.Scene.from_dict(SCENE).with_values({"domain.resolution": resolution}))
        self.renderer, self.random = tf.Renderer(self.simulation), np.random.default_rng(0)
        self.begin()

    def begin(self, news: str = "Land on the pad.") -> None:
        self.position, self.velocity, self.angle, self.news = START.copy(), np.zeros(2), 0.0, news

    @property
    def axes(self) -> np.ndarray:
        """Where its right and its nose point, as rows."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.array([[c, s], [-s, c]])

    def advance(self, dt: float, turn: float, thrust: bool) -> None:
        """One step: the ship by Newton's law, the fluid with what its engine throws out, and what the ground says."""
        self.angle += TURN * turn * dt
        self.velocity += (THRUST * thrust * self.axes[1] + GRAVITY) * dt
        self.position += self.velocity * dt
        inside = np.clip(self.position, [0.3, 0.0], BOX - [0.3, 0.5])
        self.velocity[self.position != inside] *= -0.5  # the sides of the picture throw it back
        self.position = inside
        if thrust:
            # The stroke is as long as the exhaust comes in this step: no gaps. It sways, or it would look like a laser.
            jet = -EXHAUST * self.axes[1] + self.random.normal(0.0, 1.0) * self.axes[0]
            nozzle = self.position - 0.34 * self.axes[1]
            self.simulation.paint(nozzle, nozzle + dt * jet, velocity=self.velocity + jet, **PROPELLANT)
        self.simulation.step(dt)
        over_pad = PAD[0] < self.position[0] < PAD[1]
        if self.position[1] > GROUND + 0.42:
            return
        if over_pad and np.hypot(*self.velocity) < SOFT and abs(self.angle) < UPRIGHT:
            self.position[1], self.velocity, self.angle, self.news = GROUND + 0.42, np.zeros(2), 0.0, "Landed!"
        else:
            self.simulation.paint(self.position, self.position, **{**PROPELLANT, "radius": 0.4})  # a ball of fire
            self.begin("That was too hard." if over_pad else "That was not the pad.")

    def corners(self) -> np.ndarray:
        """The ship's triangles as fractions of the picture's width and height."""
        return ((self.position + TRIANGLES @ self.axes) / BOX).astype(np.float32)


def play(game: Game) -> None:
    """The loop of the window: keys, one step, the picture, the ship over it."""
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    os.chdir(folder.name)  # GGUI leaves a file where it runs
    window = ti.ui.Window("taichi_fluid rocket", PICTURE, vsync=True)
    canvas, gui, last = window.get_canvas(), window.get_gui(), time.perf_counter()
    corners, colours = (ti.Vector.field(k, ti.f32, 3 * len(TRIANGLES)) for k in (2, 3))
    colours.from_numpy(COLOURS.repeat(3, axis=0))
    while window.running:
        # A step is as long as a frame; a machine too slow for 30 frames a second slows time down.
        time.sleep(max(last + 1 / 60 - time.perf_counter(), 0.0))
        dt, last = min(time.perf_counter() - last, 1 / 30), time.perf_counter()
        for event in window.get_events(ti.ui.PRESS):  # a short press may be over when the frame begins
            if event.key == "r":
                game.simulation.reset()
                game.begin()
            window.running = event.key != ti.ui.ESCAPE
        turn = window.is_pressed(ti.ui.LEFT, "a") - window.is_pressed(ti.ui.RIGHT, "d")
        game.advance(dt, turn, window.is_pressed(ti.ui.UP, "w"))
        # Rows from below, the first axis to the right: so wants GGUI its images.
        canvas.set_image(np.ascontiguousarray(game.renderer.render()[::-1].swapaxes(0, 1)))
        corners.from_numpy(game.corners().reshape(-1, 2))
        canvas.triangles(corners, per_vertex_color=colours)
        with gui.sub_window("rocket", 0.68, 0.02, 0.3, 0.14) as panel:
            panel.text(game.news)
            panel.text(f"{np.hypot(*game.velocity):.1f} m/s")
        window.show()
    window.destroy()


def autopilot(game: Game, seconds: float) -> None:
    """Fly towards the pad; see what moved the ship, and where its fire went."""
    dt, impulse = 1 / 60, np.zeros(2)
    for _ in range(max(round(seconds / dt), 1)):
        way = np.array([4.6, 2.3]) - game.position
        lean = np.clip(0.45 * np.clip(way[0], -1.5, 1.5) - 0.55 * game.velocity[0], -0.45, 0.45)
        thrust = game.velocity[1] < 0.5 * way[1]
        game.advance(dt, np.clip(-8.0 * (game.angle + lean), -1.0, 1.0), thrust)
        impulse += (THRUST * thrust * game.axes[1] + GRAVITY) * dt
    assert np.allclose(game.velocity, impulse), "engine and gravity, and nothing else, must move the ship"

    temperature, smoke, fluid = (game.simulation.to_numpy(name) for name in ("temperature", "smoke", "fluid"))
    _, y = game.simulation.grid.cell_centres()
    below = game.position[1] - np.average(y[0], weights=temperature.sum(axis=0))
    relative = np.average(game.simulation.to_numpy("velocity")[1], weights=temperature) - game.velocity[1]
    print(f"fire is {below:.2f} m below the ship and leaves it with {-relative:.2f} m/s")
    assert below > 0 > relative, "fire must be below the ship and on its way down"
    assert smoke.any() and not smoke[fluid == 0].any(), "smoke may not enter the ground"

    picture = game.renderer.render()
    draw_ship(picture, game.corners())
    write_png(Path("demo_rocket.png"), picture)
    print("demo_rocket.png")


def draw_ship(picture: np.ndarray, corners: np.ndarray) -> None:
    """The ship where there is no window to draw its triangles."""
    height, width, _ = picture.shape
    y, x = 1.0 - (np.arange(height)[:, None] + 0.5) / height, (np.arange(width) + 0.5) / width
    for triangle, colour in zip(corners, COLOURS, strict=True):
        sides = zip(triangle, np.roll(triangle, -1, axis=0), strict=True)
        inside = [(b[0] - a[0]) * (y - a[1]) > (b[1] - a[1]) * (x - a[0]) for a, b in sides]
        picture[np.logical_and.reduce(inside)] = 255 * colour


def main(arch: str = "auto", resolution: int = 160, seconds: float | None = None) -> None:
    probe = WindowProbe()  # looks in another process while the backend starts
    arch = backend.start(arch, announce=True)
    if probe.problem(arch) is None and seconds is None:
        play(Game(resolution))
    else:
        autopilot(Game(resolution), seconds or 4.5)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
