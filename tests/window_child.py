"""A window on a scene, in a process of its own: says as JSON lines what is going on, and answers on request.

    python window_child.py ARCH PRESET FOLDER [KEY=VALUE …]

After each frame a line tells where the widgets are and how the session stands; a message stays until another one comes,
so that no widget moves by itself. It also has, for each kernel that was compiled: its name, the frames and the pictures
that were on the screen by then, whether a step of the flow asked for it, and the scene and steps of that flow. A line on
standard input is a request: ``frame`` asks for no more than an answer,
``array NAME`` writes a quantity to a file (``NAME of other``: of the other grid), ``picture`` what was drawn last,
``nan`` spoils the velocity, ``begin`` puts everything but the places of the panels back to the start, ``quit`` closes
the window.
"""

import json
import queue
import sys
import threading
import time

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend, kernels
from taichi_fluid.scene import parse_toml
from taichi_fluid.viewer import session as session_module
from taichi_fluid.viewer.session import Session
from taichi_fluid.viewer.window import LiveWindow


def main(arch: str, name: str, folder: str, *settings: str) -> None:
    backend.start(arch)
    session_module.MESSAGE_SECONDS = float("inf")
    changes = {key: parse_toml(f"v = {text}", "--set")["v"] for key, text in (s.split("=", 1) for s in settings)}
    scene = tf.preset(name).with_values(changes)
    session = Session(scene, folder)
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: [requests.put(line.strip()) for line in sys.stdin], daemon=True).start()
    window = LiveWindow(session, arch=arch)
    count, shown, compiled, show = 0, 0, [], window._show

    def show_picture() -> None:
        nonlocal shown
        show()
        shown = session.pictures

    def note(kernel: str) -> None:
        stepping = session.stepping and not session.beside
        compiled.append([kernel, window.frames, shown, stepping, session.scene.name, session.simulation.steps])

    window._show = show_picture

    def begin() -> None:
        if session.video is not None:
            session.record()
        if session.scene.domain != scene.domain or session.scene.look.compare:
            session._replace(scene)
        session.simulation.scene = scene
        session.reset()
        session.message = ""
        session.paused, window.place.panels_shown = False, True
        session.redraw()
        window._panel._open.clear()

    def answer(request: str) -> str:
        what, _, argument = request.partition(" ")
        simulation = session.simulation
        if what == "array":
            path, (quantity, _, where) = f"{folder}/{argument}.npy", argument.partition(" of ")
            np.save(path, (session.flow.other if where else simulation).to_numpy(quantity))
        elif what == "picture":
            np.save(f"{folder}/picture.npy", session.picture())
        elif what == "nan":
            velocity = simulation.state.velocity.current
            velocity.from_numpy(np.full(velocity.shape[0], np.nan, dtype=np.float32))
        elif what == "begin":
            begin()
        elif what == "quit":
            window.close()
        return request

    def report(frame) -> None:
        nonlocal count
        count += 1
        answered = ""
        # An answer about the flow is given between two steps.
        if not requests.empty() and (not session.stepping or requests.queue[0] == "frame"):
            answered = answer(requests.get())
        print(
            json.dumps(
                {
                    "frame": count,
                    "clock": time.monotonic(),
                    "fps": frame.fps,
                    "places": frame.places,
                    "viewport": window.place.viewport,
                    "width": window.place.window[0],
                    "height": window.place.window[1],
                    "panels": window.place.panels_shown,
                    "saved": window.places.read_at,
                    "rectangles": {name: list(rectangle) for name, rectangle in window.places.rectangles.items()},
                    "paused": session.paused,
                    "failed": session.failed,
                    "message": session.message,
                    "waiting": window.waiting.sentence,
                    "written": [str(path) for path in session.written],
                    "recording": session.video is not None,
                    "steps": session.simulation.steps,
                    "time": session.simulation.time,
                    "stepping": session.stepping,
                    "pictures": session.pictures,
                    "size": session.size,
                    "pane_width": session.pane_width(window.place.viewport[1]),
                    "detail": session.detail,
                    "scene": session.scene.model_dump(mode="json"),
                    "compiled": compiled,
                    "answered": answered,
                }
            ),
            flush=True,
        )

    with kernels.before_compiling(note):
        window.run(report)
    print(
        json.dumps({"frame": -1, "compiled": compiled, "written": [str(path) for path in session.written]}), flush=True
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
