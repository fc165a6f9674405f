"""Limits that nobody could work under are refused when they are given."""

import pytest

from service.settings import Settings
from superopt.errors import UsageError


@pytest.mark.parametrize(
    "wrong",
    [{"max_bytes": 0}, {"max_bytes": (1 << 31) + 1}, {"time_limit": -1.0}, {"port": 65536}, {"waiting": -1}],
    ids=str,
)
def test_an_impossible_setting_is_refused_by_name(wrong: dict[str, int]) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=name.replace("_", ".")):
        Settings(**wrong)


def test_the_usual_search_keeps_within_the_limit() -> None:
    assert Settings(time_limit=5).default_time == 5
