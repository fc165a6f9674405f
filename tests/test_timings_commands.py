"""`superopt timings`: tables are shown, written and entered whole, and what is no table is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from superopt.cost.table import Row, Table
from superopt.cost.timing import Key, Timing
from tests.commands import Ran, assert_refused

KEY = Key("onnxruntime-cpu", "1.0", "a processor", 1)
ROWS = [Row(KEY, f"(kernel {i})", Timing(0.001 * i, 0.0, 7), f"2026-01-0{i}T00:00:00+00:00") for i in (1, 2)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.sqlite"
    with Table(path) as made:
        made.enter(ROWS)
    return path


def test_what_is_exported_is_imported_again(table: Path, tmp_path: Path, inside: Callable[..., Ran]) -> None:
    out, other = tmp_path / "t.json", tmp_path / "other.sqlite"
    assert inside("timings", "export", out, "--timings", table, cwd=tmp_path).code == 0
    first, second = (inside("timings", "import", out, "--timings", other, cwd=tmp_path) for _ in range(2))
    assert ("2 of 2" in first.out, "0 of 2" in second.out) == (True, True)
    with Table(other) as made:
        assert made.rows() == ROWS


def test_where_the_users_own_table_cannot_be_opened_nothing_is_imported_into_another(
    table: Path, tmp_path: Path, inside: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "t.json"
    inside("timings", "export", out, "--timings", table, cwd=tmp_path)
    (tmp_path / ".cache").write_text("no folder")
    assert_refused(inside("timings", "import", out, cwd=tmp_path), 2, "can be opened there")
    assert_refused(inside("timings", "export", "other.json", cwd=tmp_path), 2, "can be opened there")


def test_of_two_timings_the_later_stays(table: Path, tmp_path: Path, inside: Callable[..., Ran]) -> None:
    out = tmp_path / "t.json"
    inside("timings", "export", out, "--timings", table, cwd=tmp_path)
    newer = Row(KEY, "(kernel 1)", Timing(9.0, 0.0, 7), "2026-02-01T00:00:00+00:00")
    with Table(table) as made:
        made.enter([newer])
    assert "0 of 2" in inside("timings", "import", out, "--timings", table, cwd=tmp_path).out
    with Table(table) as made:
        assert made.get(KEY, "(kernel 1)") == newer.timing


def test_of_two_timings_in_a_file_the_later_is_taken_whichever_comes_first(
    tmp_path: Path, inside: Callable[..., Ran]
) -> None:
    """By the moment, wherever it was told: at one o'clock in Rome it is noon, and earlier than half past."""
    rome, utc = "2026-02-01T13:00:00+01:00", "2026-02-01T12:30:00Z"
    for number, (first, second) in enumerate([(rome, utc), (utc, rome)]):
        timings = [{**whole(), "seconds": 1.0 if at == rome else 2.0, "measured_at": at} for at in (first, second)]
        (tmp_path / "t.json").write_text(json.dumps({"format": 1, "timings": timings}), encoding="utf-8")
        table = tmp_path / f"{number}.sqlite"
        assert "1 of 2" in inside("timings", "import", "t.json", "--timings", table, cwd=tmp_path).out
        with Table(table) as made:
            assert [(r.timing.seconds, r.measured_at) for r in made.rows()] == [(2.0, "2026-02-01T12:30:00+00:00")]


def test_the_users_own_table_is_never_overwritten(
    inside: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    with Table() as made:
        made.enter(ROWS)
        own = made.path
    for command in (["timings", "export", own], ["timings", "import", own], ["optimize", "m.onnx", own]):
        more = [] if command[1] == "import" else ["--overwrite"]
        assert_refused(inside(*command, *more, cwd=tmp_path), 2, "timings.sqlite")
    with Table() as made:
        assert made.rows() == ROWS


def test_what_was_measured_is_shown(table: Path, tmp_path: Path, inside: Callable[..., Ran]) -> None:
    """A whole piece beside another is no kernel."""
    with Table(table) as made:
        made.enter([Row(KEY, "(whole 1 beside 2 in both orders)", Timing(9.0, 0.0, 7), "2025-02-01T00:00:00+00:00")])
    found = json.loads(inside("timings", "show", "--timings", table, "--kernels", 1, "--json", cwd=tmp_path).out)
    assert found["groups"] == [{**vars(KEY), "kernels": 2, "whole_pieces": 1, "last": ROWS[1].measured_at}]
    assert [kernel["signature"] for kernel in found["longest"]] == ["(kernel 2)"]
    assert "a processor" in inside("timings", "show", "--timings", table, cwd=tmp_path).out


def whole() -> dict[str, object]:
    at = "2026-02-01T00:00:00+00:00"
    return {**vars(KEY), "signature": "s", "seconds": 1, "spread": 0, "runs": 1, "measured_at": at}


def entry(**other: object) -> str:
    return json.dumps({"format": 1, "timings": [{**whole(), **other}]})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nothing", "no table of timings"),
        ("[]", "no table of timings"),
        ('{"format": 2, "timings": []}', "format 2"),
        ('{"format": 1, "timings": [{"runtime": "r"}]}', "timings.0.version"),
        (entry(seconds=-1), "timings.0.seconds"),
        (entry(mood="good"), "timings.0.mood"),
        (entry(runs=10**30), "timings.0.runs"),
        (entry(measured_at="zzz"), "timings.0.measured_at"),
        (entry(measured_at="2026-02-01T00:00:00"), "timings.0.measured_at"),
    ],
    ids=[
        "no JSON",
        "a list",
        "another version",
        "fields are missing",
        "less than no time",
        "a field too many",
        "more than a table holds",
        "no moment",
        "a moment of no known offset",
    ],
)
def test_what_is_no_file_of_timings_is_refused(
    text: str, says: str, table: Path, tmp_path: Path, inside: Callable[..., Ran]
) -> None:
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")
    assert_refused(inside("timings", "import", "bad.json", "--timings", table, cwd=tmp_path), 2, "bad.json", says)
    with Table(table) as made:
        assert made.rows() == ROWS
