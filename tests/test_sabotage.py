"""What ``sabotage.py`` breaks is there, and its cases are tried."""

import ast
from pathlib import Path

import pytest
from sabotage import ROOT, SABOTAGES, main, noticed

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", SABOTAGES)
def test_what_is_broken_is_there_and_so_is_the_test_that_notices(name):
    sabotage = SABOTAGES[name]
    source = (ROOT / "taichi_fluid" / sabotage.file).read_text(encoding="utf-8")
    assert source.count(sabotage.text) == 1
    ast.parse(source.replace(sabotage.text, sabotage.instead))
    file, _, test = sabotage.test.partition("::")
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    assert test in [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]


def test_what_nobody_notices_is_said(monkeypatch, capsys):
    """Sabotage of the sabotage: a change that changes nothing."""
    harmless = SABOTAGES["a checksum of nothing"]
    monkeypatch.setitem(SABOTAGES, "nothing", harmless._replace(instead=harmless.text))
    assert not noticed(SABOTAGES["nothing"])[0]
    assert main(["nothing"]) == 1
    assert "NOT NOTICED: nothing" in capsys.readouterr().out


@pytest.mark.parametrize("name", SABOTAGES)
def test_what_is_broken_is_noticed(name):
    assert noticed(SABOTAGES[name])[0]
