"""Files from strangers: whatever a scene, a mesh or a picture is, it is refused in a sentence, soon, or it works."""

import os
import struct
import sys
import time
import zlib

import numpy as np
import pytest

from taichi_fluid.boundaries.mesh import MOST_PAIRS, MeshError, read_triangles, sample_mesh
from taichi_fluid.io.images import write_png
from taichi_fluid.scene import Scene, SceneError
from taichi_fluid.scene.pictures import PictureError, read_picture
from taichi_fluid.scene.text import MOST_BYTES

FILES = {
    "hexadecimal": (b"[domain]\nresolution = 0x" + b"f" * 4000, "an integer of 16000 bits"),
    "decimal": (b"a = [[" + b"9" * 4000 + b"]]", "an integer of 13288 bits"),
    "deep key": (b".".join([b"a"] * 1500) + b" = 1", "16 parts at most"),
    "deep table": (b"[" + b".".join([b"a"] * 1500) + b"]", "16 parts at most"),
    "deep key in a table": (b"x = {" + b" . ".join([b'"a"'] * 40) + b" = 1}", "16 parts at most"),
    "long key": (b".".join([b"ab"] * 34000) + b" = 1", "16 parts at most"),
    "dotted keys": (b"\n".join(b"a%d.b.c = 1" % i for i in range(8000)), "unknown key 'a0'"),
    "deep lists": (b"a = " + b"[" * 3000 + b"]" * 3000, "not valid TOML"),
    "long value": (b'name = "a"\n[look]\nview = "' + b"v" * 5000 + b'"', "look.view is 'vvv"),
    "long shape": (b'name = "a"\n[[solids]]\nshape = "' + b"v" * 5000 + b'"', "solids.0.shape is 'vvv"),
    "long unknown key": (b'name = "a"\n' + b"k" * 5000 + b" = 1", "unknown key 'kkk"),
    "no text": (b'name = "\xff\xfe"', "cannot be read"),
    "too large": (b"#" + b"x" * MOST_BYTES, f"may have {MOST_BYTES} at most"),
    "empty": (b"", "is empty"),
    "a bad name": (b'name = "a b"', "name is 'a b'"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_scene_that_means_harm_is_refused_in_a_short_sentence_at_once(tmp_path, name):
    content, told = FILES[name]
    path = tmp_path / "scene.toml"
    path.write_bytes(content)
    began = time.monotonic()
    with pytest.raises(SceneError) as caught:
        Scene.load(path)
    assert time.monotonic() - began < 2
    message = str(caught.value)
    assert told in message
    assert len(message.replace(str(path), "")) < 400 or "keys of a scene are" in message.lower()
    assert "\n" not in message


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes and devices in the file system")
def test_pipes_devices_and_what_has_no_end_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(20 << 30)
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/full", "/dev/random", tmp_path / "sparse", tmp_path, "p" * 5000):
        with pytest.raises(SceneError, match=r"must be a file|at most|cannot be read"):
            Scene.load(path)
        with pytest.raises(PictureError, match=r"must be a file|at most|cannot be read"):
            read_picture(path)


def test_a_scene_without_a_name_is_called_as_its_file(tmp_path):
    for file, name in (("hot box.toml", "hot_box"), ("\u00fc.toml", "_"), ("a" * 90 + ".toml", "a" * 64)):
        (tmp_path / file).write_bytes(b"[domain]\n")
        assert Scene.load(tmp_path / file).name == name


def test_what_is_wrong_with_a_file_names_the_file(tmp_path):
    (tmp_path / "wrong.toml").write_text("[domain]\nresolution = -3\n", encoding="utf-8")
    with pytest.raises(SceneError, match=r"wrong\.toml': domain\.resolution is -3"):
        Scene.load(tmp_path / "wrong.toml")


def test_a_byte_order_mark_is_no_part_of_a_scene(tmp_path):
    (tmp_path / "scene.toml").write_bytes(b'\xef\xbb\xbfname = "marked"\n')
    assert Scene.load(tmp_path / "scene.toml").name == "marked"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are Unicode")
def test_a_picture_is_written_where_names_are_not_utf8(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    picture = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    write_png(folder / "a.png", picture)
    np.testing.assert_array_equal(read_picture(folder / "a.png")[..., :3], picture)
    assert os.listdir(folder) == ["a.png"]


def png(width, height):
    """A whole PNG file of so many white pixels, of one bit each: a thousandth of what it is unpacked to."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress((b"\0" + b"\xff" * ((width + 7) // 8)) * height, 9)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_a_picture_is_not_unpacked_beyond_its_budget(tmp_path):
    (tmp_path / "bomb.png").write_bytes(png(8192, 8192))
    assert (tmp_path / "bomb.png").stat().st_size < 100_000
    with pytest.raises(PictureError, match="8192 x 8192 pixels"):
        read_picture(tmp_path / "bomb.png")
    (tmp_path / "wide.png").write_bytes(png(8192, 64))
    assert read_picture(tmp_path / "wide.png").shape == (64, 8192, 4)


@pytest.mark.parametrize("name", ["mesh.zip", "mesh.gltf", "mesh", "mesh.tar.gz"])
def test_a_mesh_is_one_file_of_a_kind_that_names_no_other(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK\x03\x04")
    with pytest.raises(MeshError, match=r"must be one of \.obj, \.off, \.ply, \.stl"):
        read_triangles(tmp_path / name)


@pytest.mark.parametrize("suffix", [".obj", ".off", ".ply", ".stl"])
@pytest.mark.parametrize("content", [b"", b"solid", b"\0" * 84 + b"\xff", b"ply\nformat x", bytes(range(256)) * 8])
def test_a_damaged_mesh_says_so_and_names_no_module(tmp_path, suffix, content):
    path = tmp_path / f"damaged{suffix}"
    path.write_bytes(content)
    with pytest.raises(MeshError) as caught:
        read_triangles(path)
    assert "module" not in str(caught.value).lower()


@pytest.mark.filterwarnings("error")
def test_a_mesh_of_corners_without_an_end_is_refused_and_nothing_warned_of(tmp_path):
    triangles = np.random.default_rng(0).uniform(size=(20, 3, 3)).astype("<f4") * np.float32(3e38)
    rows = b"".join(bytes(12) + triangle.tobytes() + bytes(2) for triangle in triangles)
    (tmp_path / "far.stl").write_bytes(bytes(80) + struct.pack("<I", len(triangles)) + rows)
    with pytest.raises(MeshError):
        sample_mesh(read_triangles(tmp_path / "far.stl"), 1.0, 16)


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes in the file system")
def test_a_mesh_is_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.stl")
    solid = {"shape": "mesh", "file": str(tmp_path / "pipe.stl"), "center": [0.5] * 3, "size": 0.5}
    with pytest.raises(SceneError, match="it must be a file"):
        Scene.from_dict({"name": "a", "solids": [solid]})


def test_a_mesh_is_not_sampled_for_hours():
    triangles = np.random.default_rng(1).uniform(size=(1000, 3, 3))
    with pytest.raises(MeshError, match=f"{MOST_PAIRS} at most"):
        sample_mesh(triangles, 1.0, 512)
