"""A command imports what it needs, and no more."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer.main

from superopt.cli import GROUPS, HOMES, command_line

HEAVY = ("onnx", "onnx_ir", "onnxruntime", "sympy", "z3")


def names(words: list[str]) -> set[str]:
    """The commands of a command line, those of groups after their names."""
    found = set[str]()
    for name, one in typer.main.get_command(command_line(words)).commands.items():  # type: ignore[attr-defined]
        found |= {f"{name} {own}" for own in one.commands} if name in GROUPS else {name}
    return found


@pytest.mark.parametrize("name", HOMES)
def test_the_words_of_a_command_name_it_alone(name: str) -> None:
    assert names([*name.split(), "--help"]) == {name}


@pytest.mark.parametrize("words", [[], ["--help"], ["optimise"], ["rule", "list"]], ids=str)
def test_what_names_none_has_all(words: list[str]) -> None:
    assert names(words) == set(HOMES)


@pytest.mark.parametrize("group", GROUPS)
def test_the_name_of_a_group_has_all_of_it(group: str) -> None:
    for words in ([group], [group, "--help"], [group, "lst"]):
        assert names(words) == {name for name in HOMES if name.startswith(f"{group} ")}


@pytest.mark.parametrize("words", [["--version"], ["rules", "list"], ["laws", "list"], ["timings", "show"]], ids=str)
def test_nobody_waits_for_what_reads_and_runs_models(words: list[str]) -> None:
    text = f"import sys; from superopt.cli import command_line; command_line({words}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True)
    allowed = {"z3"} if words[0] in ("rules", "laws") else set()
    assert set(HEAVY) & set(done.stdout.split()) <= allowed
