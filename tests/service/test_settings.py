"""Limits that nobody could work under are refused when they are given."""

import math
from collections.abc import Collection
from inspect import signature
from typing import get_args

import pytest

from service.schemas import Wish
from service.settings import Settings
from superopt.cli import serve
from superopt.cost.runtimes import RUNTIMES
from superopt.errors import UsageError
from superopt.search.objectives.by_name import OBJECTIVES
from superopt.search.strategies.by_name import STRATEGIES


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_bytes": 0},
        {"max_bytes": (1 << 31) + 1},
        {"time_limit": -1.0},
        {"time_limit": math.nan},
        {"port": 65536},
        {"waiting": -1},
    ],
    ids=str,
)
def test_an_impossible_setting_is_refused_by_name(wrong: dict[str, int]) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=name.replace("_", ".")):
        Settings(**wrong)


def test_a_request_that_names_no_time_keeps_within_the_limit() -> None:
    assert [Settings(time_limit=limit).time_of(asked) for limit, asked in ((5, None), (600, None), (5, 3))] == [
        5,
        60,
        3,
    ]


def test_the_command_serves_as_the_settings_say() -> None:
    """It has the numbers of its own: its help is there without the service."""
    given = {name: option.default for name, option in signature(serve).parameters.items()}
    assert given == {name: getattr(Settings(), name) for name in given}


@pytest.mark.parametrize(
    ("name", "known"),
    [("objective", OBJECTIVES), ("runtime", RUNTIMES), ("strategy", STRATEGIES)],
    ids=["objective", "runtime", "strategy"],
)
def test_all_that_the_optimizer_knows_can_be_asked_for_and_nothing_else(name: str, known: Collection[str]) -> None:
    """The service does not ask it: it knows it as a command."""
    (choices,) = [given for given in get_args(Wish.model_fields[name].annotation) if given is not type(None)]
    assert set(get_args(choices)) == set(known)
