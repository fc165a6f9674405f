"""The suites: which models they have, and what their page says of those that gain, that do not, and that fail."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.contest import COLUMNS, PEERS, Row
from benchmarks.runs import Run
from benchmarks.suite import classes, networks, page
from superopt.search.accepting.agreement import Agreement, OutputAgreement
from superopt.search.paired import Paired, Timed

ROOT = Path(__file__).parents[2]


SAME = Agreement(True, True, "", 5, (OutputAgreement("y", 1e-6, 1e-4, None, None, True, False, True),))
WRONG = replace(SAME, agrees=False, reason='output "y" differs')


def paired(ratio: float) -> Paired:
    one, other = (Timed(s, s, s, 5, 10) for s in (0.02, 0.02 / ratio))
    return Paired(one, other, ratio, ratio - 0.01, ratio + 0.01, 5, 10, (ratio,))


def row(name: str, ours: float | None, report: dict[str, Any] | None) -> Row:
    run = Run(name, "both", "full", 3.0, 2**20, 2**20, 0 if report else 4, "", report)
    peers = dict.fromkeys(PEERS, paired(1.02))
    return Row(name, 1.5, paired(ours) if ours else None, peers, run, run, (run, run), SAME if ours else None)


BACK = {"outcome": "original", "measured": None, "compared": None, "searched": {"pieces": 4, "distinct": 2}}
TOO_LONG = {**BACK, "searched": {"pieces": 4, "distinct": 0}}
FASTER = {**BACK, "outcome": "faster", "measured": {"speedup": 1.3, "low": 1.2, "high": 1.4, "optimized": True}}


def test_published_networks_are_taken_for_each_batch() -> None:
    assert [*networks(["nasrnn", "bert"], [1, 16]).models] == ["nasrnn-1", "nasrnn-16", "bert-1", "bert-16"]


def test_a_model_of_a_class_is_written_where_it_is_said(tmp_path: Path) -> None:
    path = classes(["espcn"], tmp_path / "classes").models["espcn"]()
    assert path == tmp_path / "classes/espcn.onnx"
    assert path.exists()


@pytest.mark.parametrize(
    ("ours", "report", "said"),
    [(1.3, FASTER, "1.300"), (None, BACK, "none"), (None, TOO_LONG, "no time"), (None, None, "failed (4)")],
)
def test_a_cell_says_what_came_of_a_model(ours: float | None, report: dict[str, Any] | None, said: str) -> None:
    cells = dict(zip(COLUMNS, row("bert-1", ours, report).cells(), strict=True))
    assert cells["superopt"].split(" (1.")[0] == said
    assert cells["original"] == "20.00 ms"


@pytest.mark.parametrize(("agreement", "said", "differs"), [(SAME, "1.0e-06", False), (WRONG, WRONG.reason, True)])
def test_what_is_not_the_same_as_its_original_is_told(agreement: Agreement, said: str, differs: bool) -> None:
    found = replace(row("bert-1", 1.3, FASTER), agreement=agreement)
    assert dict(zip(COLUMNS, found.cells(), strict=True))["error"] == said
    assert found.differs == differs


@pytest.mark.parametrize(("ours", "bars"), [(None, "1, 1"), (1.3, "1.3, 1")])
def test_a_page_shows_all_models_whether_or_not_any_gains(ours: float | None, bars: str) -> None:
    rows = [row("nasrnn-1", ours, FASTER if ours else BACK), row("bert-1", None, BACK)]
    text = page(networks(["nasrnn", "bert"], [1]), rows, {"date": "today"})
    assert "x-axis [nasrnn-1, bert-1]" in text
    assert f"bar [{bars}]" in text
    assert "benchmarks/published" in text


def test_a_page_of_another_runtime_names_it_and_says_that_what_is_attainable_is_not_known() -> None:
    rows = [replace(row("bert-1", 1.3, FASTER), attainable=None)]
    text = page(networks(["bert"], [1]), rows, {"date": "today"}, "openvino")
    assert "How many times faster than openvino with" in text
    assert "times faster than openvino alone" in text
    assert "| bert-1 | not known | 1.300" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--published", "alexnet"], "there is no model alexnet"),
        (["--batch", "16"], "--published"),
        (["--runtime", "tensorflow"], "invalid choice: 'tensorflow'"),
    ],
)
def test_what_a_suite_does_not_have_is_refused(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "benchmarks.suite", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 2
    assert said in ran.stderr
