"""Temporary folders are removed wherever a signal comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from superopt import folders
from superopt.errors import NoRoom
from superopt.folders import temporary_folder

SCRIPT = """
import pathlib, shutil, sys
from superopt import folders

def ends(function):
    def ending(*given, **named):
        {before}
        result = function(*given, **named)
        sys.exit(143)
    return ending

{interrupted} = ends({interrupted})
with folders.temporary_folder() as folder:
    (folder / "file").write_text("x")
"""
ONCE = "if ending.__dict__.setdefault('called', 0): return function(*given, **named)\n        ending.called = 1"


@pytest.mark.parametrize(
    ("interrupted", "before"),
    [
        ("pathlib.Path.mkdir", ""),
        ("pathlib.Path.write_text", ""),
        ("shutil.rmtree", f"{ONCE}; sys.exit(143)"),
    ],
    ids=["as-it-is-made", "within", "as-it-is-removed"],
)
def test_a_folder_is_gone_wherever_the_process_ends(interrupted: str, before: str, tmp_path: Path) -> None:
    script = SCRIPT.format(interrupted=interrupted, before=before)
    ran = subprocess.run([sys.executable, "-c", script], env={"TMPDIR": str(tmp_path)}, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (143, "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_into_which_somebody_else_still_writes_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, temporary_folder() as folder:
        patched.setattr("shutil.rmtree", lambda *a, **k: None)
    assert folder in folders._OURS
    folders._remove_all()
    assert folder not in folders._OURS
    assert not folder.exists()


def test_where_no_folder_can_be_made_there_is_no_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(NoRoom, match="TMPDIR"), temporary_folder():
        pass


def test_a_folder_is_there_within_its_block_only() -> None:
    with temporary_folder() as folder:
        assert folder.is_dir()
    assert not folder.exists()
