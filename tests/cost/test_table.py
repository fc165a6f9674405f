"""The table of timings: kept, shared, mended."""

import errno
import fcntl
import multiprocessing
import os
import sqlite3
import threading
import time
from contextlib import closing
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import IO

import pytest

from superopt.cost.lane import cache_directory, measuring
from superopt.cost.table import Row, Table
from superopt.cost.timing import Key, Timing
from superopt.errors import OutOfTime, UsageError

KEY = Key("runtime", "1.0", "cpu", 1)


def test_timing_outlives_the_table_object(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "timings.sqlite"
    with Table(path) as table:
        assert table.get(KEY, "(kernel)") is None
        table.put(KEY, "(kernel)", Timing(1e-3, 1e-5, 7))
    with Table(path) as table:
        assert table.get(KEY, "(kernel)") == Timing(1e-3, 1e-5, 7)
        assert len(table) == 1


@pytest.mark.parametrize("other", [Key("other", "1.0", "cpu", 1), Key("runtime", "1.1", "cpu", 1),
                                   Key("runtime", "1.0", "gpu", 1), Key("runtime", "1.0", "cpu", 2)])  # fmt: skip
def test_timing_of_another_runtime_is_not_used(other: Key) -> None:
    with Table(Path(":memory:")) as table:
        table.put(KEY, "k", Timing(1.0, 0.0, 7))
        assert table.get(other, "k") is None


def test_newer_timing_replaces_the_older() -> None:
    with Table(Path(":memory:")) as table:
        table.put(KEY, "k", Timing(1.0, 0.0, 7))
        table.put(KEY, "k", Timing(2.0, 0.0, 9))
        assert table.get(KEY, "k") == Timing(2.0, 0.0, 9)


def _write(path: Path, name: str) -> None:
    with Table(path) as table:
        for i in range(200):
            table.put(KEY, f"{name} {i}", Timing(float(i), 0.0, 7))


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "timings.sqlite"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=50)
    assert [w.exitcode for w in writers] == [0, 0]
    with Table(path) as table:
        assert len(table) == 400


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_damaged_table_is_set_aside_with_a_warning(tmp_path: Path, content: bytes) -> None:
    path, warnings = tmp_path / "timings.sqlite", list[str]()
    for number in (1, 2):
        path.write_bytes(content)
        with Table(path, warnings.append) as table:
            table.put(KEY, "k", Timing(1.0, 0.0, 7))
            assert len(table) == 1
        assert (tmp_path / f"timings.sqlite.damaged-{number}").read_bytes() == content
        assert len(warnings) == number
        assert f"timings.sqlite.damaged-{number}" in warnings[-1]


def test_table_that_is_damaged_while_open_is_set_aside(tmp_path: Path) -> None:
    path, warnings = tmp_path / "timings.sqlite", list[str]()
    with Table(path) as table:
        for i in range(500):
            table.put(KEY, f"k{i}", Timing(1.0, 0.0, 7))
    with Table(path, warnings.append) as table:
        with Table(path) as other:
            other.put(KEY, "other", Timing(1.0, 0.0, 7))  # or the first one would answer from its cache
            data = path.read_bytes()
            path.write_bytes(data[:4096] + b"\x7f" * (len(data) - 4096))
            table.get(KEY, "k250")
        table.put(KEY, "new", Timing(1.0, 0.0, 7))
        assert table.get(KEY, "new") == Timing(1.0, 0.0, 7)
    assert len(warnings) == 1


def test_a_table_in_which_something_is_no_timing_is_read_without_it(tmp_path: Path) -> None:
    path = tmp_path / "timings.sqlite"
    with Table(path) as table:
        for name in ("kept", "less than nothing", "a word", "never run", "some day"):
            table.put(KEY, name, Timing(1.0, 0.0, 7))
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE timings SET seconds = -1 WHERE signature = 'less than nothing'")
        other.execute("UPDATE timings SET seconds = 'much' WHERE signature = 'a word'")
        other.execute("UPDATE timings SET runs = 0 WHERE signature = 'never run'")
        other.execute("UPDATE timings SET measured_at = 'some day' WHERE signature = 'some day'")
        other.commit()
    with Table(path) as table:
        assert [row.signature for row in table.rows()] == ["kept"]
        assert table.get(KEY, "kept") is not None
        assert all(table.get(KEY, name) is None for name in ("less than nothing", "a word", "never run"))


def test_table_of_another_layout_is_set_aside(tmp_path: Path) -> None:
    path, warnings = tmp_path / "timings.sqlite", list[str]()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE timings (signature TEXT)")
    other.close()
    with Table(path, warnings.append) as table:
        assert len(table) == 0
    assert len(warnings) == 1


def test_table_that_cannot_be_opened_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"can be opened there: .*; name another"):
        Table(tmp_path / "file" / "timings.sqlite")


def test_where_nothing_can_be_written_that_is_said_once_and_the_table_is_read_on(tmp_path: Path) -> None:
    path, warnings = tmp_path / "timings.sqlite", list[str]()
    with Table(path) as table:
        table.put(KEY, "known", Timing(1.0, 0.0, 7))
    with Table(path, warnings.append) as table:
        table._connection.execute("PRAGMA query_only = 1")  # as of a file that is read-only; who tests may be root
        table.put(KEY, "k", Timing(1.0, 0.0, 7))
        table.keep_answer(KEY, "asked", "answer")
        table.forget_answer(KEY, "asked")
        assert (table.get(KEY, "known"), table.get(KEY, "k")) == (Timing(1.0, 0.0, 7), None)
        with pytest.raises(UsageError, match="readonly"):
            table.enter([Row(KEY, "k", Timing(1.0, 0.0, 7), "")])
    assert len(warnings) == 1
    assert warnings[0].endswith("; what is measured and found now is not kept")


def test_where_the_users_own_table_cannot_be_opened_that_is_said_and_none_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    warnings = list[str]()
    with Table(None, warnings.append) as table, measuring():
        table.put(KEY, "k", Timing(1.0, 0.0, 7))
        assert (table.in_memory, len(table)) == (True, 1)
    assert len(warnings) == 1


def of_version(version: int, path: Path) -> Path:
    """A table of one timing, which says that it is of a version."""
    with Table(path) as table:
        table.put(KEY, "kept", Timing(1.0, 0.0, 7))
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")
    return path


def test_a_table_of_a_later_version_is_refused_by_name_and_left_alone(tmp_path: Path) -> None:
    path = of_version(99, tmp_path / "timings.sqlite")
    with pytest.raises(UsageError, match=r"timings\.sqlite: .* of version 99, this superopt reads version 1"):
        Table(path)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (99,)
        assert other.execute("SELECT signature FROM timings").fetchall() == [("kept",)]


def test_a_table_written_before_there_were_versions_is_read(tmp_path: Path) -> None:
    with Table(of_version(0, tmp_path / "timings.sqlite")) as table:
        assert table.get(KEY, "kept") is not None


def test_default_place_is_in_the_xdg_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "superopt"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the specification says to ignore it
    assert cache_directory() == Path.home() / ".cache" / "superopt"


def test_a_user_without_a_home_has_a_place_among_temporary_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_directory().parent == tmp_path


def _hold(directory: Path, started: Event, end: Event) -> None:
    with measuring(directory):
        started.set()
        end.wait(50)


def test_only_one_process_measures_at_a_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    started, end = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path, started, end))
    other.start()
    try:
        assert started.wait(50)
        with pytest.raises(OutOfTime, match="another process"), measuring(tmp_path, wait_s=0.1):
            pass
        end.set()
        with measuring(tmp_path, wait_s=50):
            pass
    finally:
        end.set()
        other.join(50)


def _hold_again_and_again(directory: Path, started: Event, end: Event) -> None:
    while not end.is_set():
        with measuring(directory):
            started.set()
            time.sleep(0.1)


def test_who_waits_is_not_passed_over_by_those_that_measure_again_and_again(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    end = context.Event()
    begun = [context.Event() for _ in range(2)]
    others = [context.Process(target=_hold_again_and_again, args=(tmp_path, started, end)) for started in begun]
    for other in others:
        other.start()
    try:
        assert all(started.wait(50) for started in begun)
        waited = []
        for _ in range(5):
            start = time.monotonic()
            with measuring(tmp_path, wait_s=50):
                waited.append(time.monotonic() - start)
        assert max(waited) < 5
    finally:
        end.set()
        for other in others:
            other.join(50)


def test_a_thread_waits_for_another_no_longer_than_it_may(tmp_path: Path) -> None:
    started, end = threading.Event(), threading.Event()

    def hold() -> None:
        with measuring(tmp_path):
            started.set()
            end.wait(50)

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert started.wait(50)
        with pytest.raises(OutOfTime, match="another thread"), measuring(tmp_path, wait_s=0.1):
            pass
    finally:
        end.set()
        other.join(50)


def test_measuring_may_be_nested(tmp_path: Path) -> None:
    with measuring(tmp_path), measuring(tmp_path, wait_s=0):
        pass


def test_where_the_users_own_folder_has_no_locks_those_among_temporary_files_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a home that a cluster shares."""
    own, taken, flock = tmp_path / "own", list[Path](), fcntl.flock

    def of_a_cluster(file: IO[str], operation: int) -> None:
        if Path(file.name).is_relative_to(own):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        taken.append(Path(file.name))
        flock(file, operation)

    monkeypatch.setenv("XDG_CACHE_HOME", str(own))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", of_a_cluster)
    with measuring(), measuring():
        assert [path.name for path in taken] == ["measuring.next", "measuring.lock"]
    with pytest.raises(UsageError, match=r"cannot be made: .* not implemented"), measuring(own):
        pass


def test_only_one_thread_measures_at_a_time(tmp_path: Path) -> None:
    inside, most = 0, 0

    def measure() -> None:
        nonlocal inside, most
        with measuring(tmp_path):
            inside += 1
            most = max(most, inside)
            time.sleep(0.01)
            inside -= 1

    threads = [threading.Thread(target=measure) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
