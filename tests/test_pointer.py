"""From the picture into the box and back, and what a drag does to the camera."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scenes_for_tests import scene

from taichi_fluid.render.camera import orbit_view
from taichi_fluid.scene import Camera, Scene
from taichi_fluid.viewer.pointer import Extent, drag_velocity, orbited, panned, point_under, zoomed

WIDE, TALL = Extent(640, 360), Extent(300, 720)
CLOSE = 1e-6
"""Metres and parts of a picture: these are a few double-precision products of numbers near 1."""
cameras = st.builds(
    Camera,
    azimuth=st.floats(-180, 180), elevation=st.floats(-89, 89), distance=st.floats(0.6, 10),
    field_of_view=st.floats(10, 90),
)  # fmt: skip
parts = st.floats(0, 1)
extents = st.sampled_from([WIDE, TALL])


def box(camera: Camera | None = None, shape=(14, 10, 12), **look) -> Scene:
    """A box of odd shape."""
    made = scene(shape, 0.1)
    changes = {f"look.{name}": value for name, value in look.items()}
    if camera is not None:
        changes["camera"] = camera.model_dump(exclude_none=True)
    return made.with_values(changes)


def projected(scene: Scene, point, extent: Extent) -> tuple[float, float, float]:
    """Where a point of the box is seen, as parts of the picture from its lower left, and its depth; from scratch."""
    view = orbit_view(scene.camera, scene.domain.size, extent.width / extent.height)
    offset = np.asarray(point) - view.eye
    depth = offset @ view.forward
    across = offset @ view.right / (view.right @ view.right) / depth
    upwards = offset @ view.up / (view.up @ view.up) / depth
    return 0.5 + 0.5 * across, 0.5 + 0.5 * upwards, depth


# Points


@given(camera=cameras, u=parts, v=parts, extent=extents)
def test_in_space_the_point_is_seen_where_the_pointer_is(camera, u, v, extent):
    made = box(camera)
    point = point_under(made, u, v, extent)
    assume(point is not None)
    assert projected(made, point, extent)[:2] == pytest.approx((u, v), abs=CLOSE)
    middle = 0.5 * np.array(made.domain.size)
    assert (point >= 0).all() and (point <= made.domain.size).all()
    # On the plane through the middle that faces the camera.
    assert (point - middle) @ orbit_view(made.camera, made.domain.size, 1.0).forward == pytest.approx(0, abs=CLOSE)


@given(camera=cameras, place=st.tuples(st.floats(-1, 1), st.floats(-1, 1)), extent=extents)
def test_a_point_of_that_plane_is_found_where_it_is_seen(camera, place, extent):
    made = box(camera)
    view = orbit_view(made.camera, made.domain.size, 1.0)
    middle = 0.5 * np.array(made.domain.size)
    across, upwards = (axis / np.linalg.norm(axis) for axis in (view.right, view.up))
    # Within a ball that fits into the box.
    point = middle + 0.3 * (place[0] * across + place[1] * upwards)
    u, v, _ = projected(made, point, extent)
    assert point_under(made, u, v, extent) == pytest.approx(point, abs=CLOSE)


def test_beside_the_box_is_nothing():
    made = box(Camera(azimuth=0.0, elevation=0.0, distance=5.0))
    assert point_under(made, 0.5, 0.5, WIDE) == pytest.approx([0.7, 0.5, 0.6])
    for u, v in [(0.0, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 1.0), (0.01, 0.99)]:
        assert point_under(made, u, v, WIDE) is None


def test_the_edge_of_the_box_is_its_edge():
    made = box(Camera(azimuth=0.0, elevation=0.0, distance=5.0))
    u, v, _ = projected(made, (0.0, 0.3, 0.6), WIDE)
    assert point_under(made, u + 1e-4, v, WIDE) is not None
    assert point_under(made, u - 1e-4, v, WIDE) is None


def test_what_is_behind_the_eye_is_not_under_the_pointer():
    """A camera that was panned so far that the middle of the box lies behind it."""
    made = box(Camera(azimuth=0.0, elevation=0.0, distance=0.3)).with_values({"camera.center": [0.7, 0.5, -1.0]})
    view = orbit_view(made.camera, made.domain.size, 1.0)
    assert (0.5 * np.array(made.domain.size) - view.eye) @ view.forward < 0
    for u in np.linspace(0, 1, 11):
        assert point_under(made, u, 0.5, WIDE) is None


@pytest.mark.parametrize("view", ["volume", "slice", "arrows", "tracers", "sheets"])
@pytest.mark.parametrize("extent", [WIDE, TALL])
@pytest.mark.parametrize("shape", [(7, 5), (5, 11), (8, 8)])
def test_the_plane_fills_the_picture_in_one_direction(view, extent, shape):
    made = box(shape=shape, view=view)
    size = np.array(made.domain.size)
    scale = min(extent.width / size[0], extent.height / size[1])  # pixels per metre
    margin = 0.5 * (1 - scale * size / np.array(extent))
    for corner in [(0, 0), (1, 0), (0, 1), (1, 1)]:
        u, v = (m + c * (1 - 2 * m) for m, c in zip(margin, corner, strict=True))
        inside = np.array([u, v]) + 1e-5 * (0.5 - np.array(corner))
        outside = np.array([u, v]) - 1e-5 * (0.5 - np.array(corner))
        # 1e-5 of a picture is less than 1e-4 m here.
        assert point_under(made, *inside, extent) == pytest.approx(np.array(corner) * size, abs=1e-4)
        assert point_under(made, *outside, extent) is None


@pytest.mark.parametrize("view", ["slice", "arrows"])
@pytest.mark.parametrize(("axis", "horizontal", "vertical"), [(0, 2, 1), (1, 0, 2), (2, 0, 1)])
@given(position=parts, u=parts, v=parts, extent=extents)
def test_on_a_slice_it_is_the_point_of_the_slice(view, axis, horizontal, vertical, position, u, v, extent):
    made = box(view=view, axis=axis, position=position)
    size = np.array(made.domain.size)
    scale = min(extent.width / size[horizontal], extent.height / size[vertical])
    wanted = np.zeros(3)
    wanted[axis] = position * size[axis]
    for along, part, pixels in [(horizontal, u, extent.width), (vertical, v, extent.height)]:
        wanted[along] = 0.5 * size[along] + (part - 0.5) * pixels / scale
    inside = ((wanted >= 0) & (wanted <= size)).all()
    assume(min(abs(wanted).min(), abs(wanted - size).min()) > CLOSE or inside)
    point = point_under(made, u, v, extent)
    if point is None:
        # On the very edge rounding decides.
        assert not ((wanted >= CLOSE) & (wanted <= size - CLOSE)).all()
    else:
        assert point == pytest.approx(wanted, abs=CLOSE)


# The camera


@given(camera=cameras, du=st.floats(-3, 3), dv=st.floats(-3, 3))
def test_orbiting_stays_within_its_limits(camera, du, dv):
    changes = orbited(camera, du, dv)
    assert -180 <= changes["camera.azimuth"] <= 180
    assert -89 <= changes["camera.elevation"] <= 89
    box(camera).with_values(changes)


@given(camera=cameras, du=st.floats(-0.1, 0.1))
def test_there_and_back_is_the_same_view(camera, du):
    made = box(camera)
    there = made.with_values(orbited(made.camera, du, 0.0))
    back = there.with_values(orbited(there.camera, -du, 0.0))
    turned = (back.camera.azimuth - camera.azimuth + 180) % 360 - 180
    assert turned == pytest.approx(0.0, abs=CLOSE)
    assert back.camera.elevation == pytest.approx(camera.elevation)


@given(azimuth=st.floats(-180, 180), elevation=st.floats(-40, 40), du=st.floats(0.01, 0.1), dv=st.floats(0.01, 0.1))
def test_the_box_follows_the_pointer(azimuth, elevation, du, dv):
    made = box(Camera(azimuth=azimuth, elevation=elevation, distance=4.0))
    view = orbit_view(made.camera, made.domain.size, 1.0)
    near = 0.5 * np.array(made.domain.size) - 0.5 * view.forward  # half a metre in front of the middle
    before = projected(made, near, WIDE)
    right = projected(made.with_values(orbited(made.camera, du, 0.0)), near, WIDE)
    up = projected(made.with_values(orbited(made.camera, 0.0, dv)), near, WIDE)
    assert right[0] > before[0] + 1e-3
    assert up[1] > before[1] + 1e-3


@given(camera=cameras, pictures=st.floats(-20, 20))
def test_zooming_stays_within_its_limits(camera, pictures):
    distance = zoomed(camera, pictures)["camera.distance"]
    assert 0.3 <= distance <= 50
    box(camera).with_values({"camera.distance": distance})


def test_up_comes_nearer_and_down_goes_back():
    camera = Camera(distance=2.0)
    near = zoomed(camera, 0.5)["camera.distance"]
    assert near == pytest.approx(1.0)
    assert zoomed(Camera(distance=near), -0.5)["camera.distance"] == pytest.approx(2.0)


@given(camera=cameras, du=st.floats(-0.2, 0.2), dv=st.floats(-0.2, 0.2), extent=extents)
def test_panning_takes_the_middle_along(camera, du, dv, extent):
    made = box(camera)
    after = made.with_values(panned(made, du, dv, extent))
    center, size = np.array(after.camera.center), np.array(made.domain.size)
    assume((center > -size).all() and (center < 2 * size).all())  # not at the limit
    u, v, _ = projected(after, 0.5 * size, extent)
    assert (u, v) == pytest.approx((0.5 + du, 0.5 + dv), abs=CLOSE)


@given(camera=cameras, drags=st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=6))
def test_panning_does_not_lose_the_box(camera, drags):
    made = box(camera)
    for du, dv in drags:
        made = made.with_values(panned(made, du, dv, WIDE))
    size = np.array(made.domain.size)
    assert (np.array(made.camera.center) >= -size).all()
    assert (np.array(made.camera.center) <= 2 * size).all()


# The velocity of a drag

metres = st.lists(st.floats(-1, 1), min_size=2, max_size=3)


@given(start=metres, end=metres, seconds=st.floats(0, 0.2), push=st.floats(0, 4))
def test_a_drag_pushes_its_own_way_and_no_faster_than_allowed(start, end, seconds, push):
    assume(len(start) == len(end))
    start, end = np.array(start), np.array(end)
    velocity = np.array(drag_velocity(start, end, seconds, push, 2.0))
    speed, length = np.linalg.norm(velocity), np.linalg.norm(end - start)
    assert speed <= 2.0 * (1 + 1e-12)
    assert speed == pytest.approx(min(2.0, push * length / max(seconds, 1e-3)), rel=1e-9)
    assert velocity @ (end - start) == pytest.approx(speed * length, abs=1e-9)
