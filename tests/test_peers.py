"""The comparison with other people's programs: who is in it, what it says without them, what it prints. No time."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # the benchmarks are no part of the package

from benchmarks.peers.registry import OURS, PEERS  # noqa: E402
from benchmarks.peers.turns import Problem, Worker  # noqa: E402

FOLDER = ROOT / "benchmarks" / "peers"
MACHINERY = {"__init__", "__main__", "registry", "scene", "shipped", "turns", "worker"}


def run(*arguments, before="") -> subprocess.CompletedProcess:
    """The command in a process of its own, after some code that prepares an accident."""
    code = f"import runpy, sys\n{before}\nsys.argv = ['peers', *sys.argv[1:]]\n"
    code += "runpy.run_module('benchmarks.peers', run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def test_every_module_is_in_the_register():
    modules = {path.stem for path in FOLDER.glob("*.py")} - MACHINERY
    assert modules == {entry.module for entry in (*PEERS.values(), *OURS.values())}
    assert all(entry.beside in OURS for entry in PEERS.values())


def test_what_the_peers_need_is_pinned():
    pinned = re.findall(r"^([\w-]+)==\d", (FOLDER / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(pinned) == {at_pypi for entry in PEERS.values() for at_pypi in entry.packages.values()}


def test_the_documentation_names_every_peer():
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert not [name for name in PEERS if f"`{name}`" not in text]


def test_a_missing_package_is_a_sentence():
    absent = (
        "import importlib.util as u; find = u.find_spec; u.find_spec = lambda *a: None if a[0] == 'phi' else find(*a)"
    )
    done = run("--peer", "phiflow", before=absent)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if "phiflow" in line]
    assert "pip install -r benchmarks/peers/requirements.txt" in line
    assert (ROOT / "benchmarks/peers/requirements.txt").exists()
    assert "Traceback" not in done.stderr


def test_a_peer_without_the_dimension_is_refused():
    done = run("--peer", "numba", "--dim", "2")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "peers: numba has no 2D flow: take --dim 3.\n"


def test_a_program_that_fails_says_why():
    with pytest.raises(Problem, match="'nonsense'"):
        Worker(peer="scipy-dct", n=8, dim=2, options={"nonsense": 1})


def test_a_program_whose_process_dies_is_a_problem():
    with Worker(peer="scipy-dct", n=8, dim=2) as program:
        program._process.kill()
        with pytest.raises(Problem, match="status -9"):
            program.ask("turn 0")


def test_two_peers_take_turns_with_ours(tmp_path):
    """Those that the tests have packages for; one of them ours to the tolerance, one exact, one leaves most."""
    path = tmp_path / "peers.json"
    arguments = ["--dim", "2", "--resolution", "16", "--rounds", "2", "--json", path]
    done = run(*arguments, "--peer", "taichi-example-40", "--peer", "scipy-dct")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["machine"]["cores"] >= 1
    example, transform = found["rows"]
    assert example["ours"]["left"] < 1e-3 and transform["ours"]["left"] < 1e-3
    assert 0.05 < example["theirs"]["left"] < 1
    assert transform["theirs"]["left"] < 1e-5
    assert example["theirs"]["iterations"] == 40 and transform["theirs"]["iterations"] is None
    assert set(example["versions"]) == {"taichi"} and set(transform["versions"]) == {"scipy"}
    for row in found["rows"]:
        assert len(row["ours"]["turns"]) == len(row["theirs"]["turns"]) == 2
        assert row["ratio"] == pytest.approx(row["theirs"]["ms"] / row["ours"]["ms"])
        assert row["peer"] in done.stdout and row["solves"][:20] in done.stdout
