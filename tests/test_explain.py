"""`superopt explain`: a page that holds every rewrite of a report, drawn, and nothing from elsewhere."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from superopt.api import Options, replay
from superopt.errors import UsageError
from superopt.explanation import explanation
from superopt.search.report import (
    FORMAT,
    ModelFacts,
    Report,
    Rewritten,
    Searched,
    Settings,
    Solution,
    Versions,
)
from tests.commands import Ran, assert_refused
from tests.onnx_io.models import model

FACTS = ModelFacts(nodes={"Relu": 2}, bytes=0, inputs={}, outputs={}, opset=17, ir_version=8)
REWRITES = (
    Rewritten(
        name="relu-relu-to-relu",
        known="proved",
        by=("relu-relu",),
        before="(relu (relu ?v0))",
        after="(relu ?v0)",
        value="y<1>",
        times=2,
        piece="a",
    ),
    Rewritten(
        name="definition of lrn",
        known="definition",
        by=(),
        before="(lrn 5 ?v0)",
        after="(conv :pads (1 1 1 1) (expand () (scalar 2.0)) ?v1)",
        value="z",
        times=1,
        piece="a",
    ),
)


def report(rewrites: tuple[Rewritten, ...]) -> Report:
    return Report(
        outcome="faster" if rewrites else "original",
        reason="because",
        original=FACTS,
        optimized=FACTS if rewrites else None,
        understood=2,
        opaque={},
        rewrites=rewrites,
        solutions=tuple(Solution(text=None, piece="a", places=2, gain=1.5, saved=0.1) for _ in rewrites[:1]),
        predicted=None,
        elsewhere=(),
        taken=None,
        measured=None,
        compared=None,
        searched=Searched(
            pieces=1,
            distinct=1,
            joined=0,
            remembered=0,
            graphs=9,
            kernels_measured=3,
            seconds=1.0,
            stopped=("exhausted",),
        ),
        settings=Settings(
            objective="latency",
            time=60,
            threads=1,
            strategy="beam",
            alpha=1.1,
            seed=0,
            definitions=True,
            runtime="onnxruntime",
            shapes={},
            rules=("core.rules",),
        ),
        versions=Versions(superopt="0", runtime="r", device="d", onnx="o"),
    )


def test_each_rewrite_is_drawn_before_and_after() -> None:
    page = explanation(report(REWRITES), "m")
    tree = ET.fromstring(page.removeprefix("<!doctype html>").replace('<meta charset="utf-8">', ""))
    pictures = tree.findall(".//svg")
    assert [[t.text for t in p.findall("text")] for p in pictures] == [
        ["?v0", "relu", "relu"],
        ["?v0", "relu"],
        ["?v0", "lrn 5"],
        ["scalar 2.0", "expand ()", "?v1", "conv :pads (1 1 1 1)"],
    ]
    said = " ".join(tree.itertext())
    assert all(what in said for what in ("relu-relu-to-relu", "2 times", "proved by Z3", "y<1>", "1.500×"))
    assert "http" not in page


def test_that_nothing_was_found_is_said() -> None:
    assert "original came back" in explanation(report(()), "m")


def test_the_sizes_that_nobody_gave_are_on_the_page() -> None:
    given = report(REWRITES)
    taken = given.model_copy(update={"settings": given.settings.model_copy(update={"assumed": {"x<1>": "1,3"}})})
    assert "symbolic sizes" not in explanation(given, "m")
    assert "<th>symbolic sizes taken as</th><td>x&lt;1&gt;:1,3</td>" in explanation(taken, "m")


def test_the_command_writes_the_page(tmp_path: Path, inside: Callable[..., Ran]) -> None:
    (tmp_path / "r.json").write_text(report(REWRITES).model_dump_json(), encoding="utf-8")
    assert inside("explain", "r.json", cwd=tmp_path).code == 0
    assert "relu-relu-to-relu" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert_refused(inside("explain", "r.json", cwd=tmp_path), 2, "r.html", "exists already")


@pytest.mark.parametrize("command", ["explain", "replay"])
@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "no report"), ("[]", "no report"), ('{"format": 1}', "format 1"), (f'{{"format": {FORMAT}}}', "outcome")],
)
def test_what_is_no_report_is_refused(
    command: str, text: str, says: str, tmp_path: Path, inside: Callable[..., Ran]
) -> None:
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    (tmp_path / "m.onnx").write_bytes(b"")
    more = ["m.onnx"] if command == "replay" else []
    assert_refused(inside(command, "r.json", *more, cwd=tmp_path), 2, "r.json", says)


def test_a_report_whose_pieces_have_no_text_is_not_replayed(tmp_path: Path) -> None:
    source = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(UsageError, match="the pieces of the report have no text"):
        replay(report(REWRITES), source, Options(timings=tmp_path / "table"))
