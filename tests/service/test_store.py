"""The bounded store of reports."""

from hypothesis import given
from hypothesis import strategies as st

from service.store import ReportStore


def test_a_kept_report_is_found_by_its_id() -> None:
    store = ReportStore(100)
    first, second = store.keep(b"one"), store.keep(b"two")
    assert (store.find(first), store.find(second)) == (b"one", b"two")


def test_an_unknown_id_finds_nothing() -> None:
    assert ReportStore(100).find("unknown") is None


def test_the_oldest_report_makes_room() -> None:
    store = ReportStore(10)
    keys = [store.keep(b"12345") for _ in range(3)]
    assert [store.find(key) is not None for key in keys] == [False, True, True]


@given(st.lists(st.integers(0, 30).map(bytes), min_size=1))
def test_the_store_never_holds_more_than_its_limit(reports: list[bytes]) -> None:
    store = ReportStore(64)
    keys = []
    for report in reports:
        keys.append(store.keep(report))
        assert sum(len(found) for key in keys if (found := store.find(key)) is not None) <= 64
