"""What an operator may be written as is entered under its name, or refused by it."""

from __future__ import annotations

from typing import Any

import pytest

from superopt.errors import SuperoptError
from superopt.operators.layout import Transpose
from superopt.operators.meanings import FURTHER_DEFINITIONS, SEEN, SHALLOW, SPELLINGS, defined, defines, spells
from superopt.operators.pointwise import Relu
from superopt.search.rewriting.rewrites import Unfold
from superopt.term import Term, variable

PATTERN = Transpose((1, 0))(variable("x", (2, 3)))
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no operator": ({"operator": "rely"}, "rely of one: no operator rely is declared"),
    "a pattern of another": ({"pattern": PATTERN}, "relu of one: its pattern is of transpose"),
    "deep without a pattern": (
        {"depth": SHALLOW + 1},
        f"relu of one: it looks {SHALLOW + 1} operators deep; with more than {SHALLOW} give a pattern",
    ),
}


def same(op: Relu, x: Term) -> Term | None:
    return None


@pytest.mark.parametrize("name", REFUSED)
def test_a_definition_that_would_never_be_looked_at_is_refused_by_name(name: str) -> None:
    given, message = REFUSED[name]
    with pytest.raises(SuperoptError) as error:
        defines(**{"operator": "relu", "how": "of one", **given})(same)
    assert str(error.value) == message
    assert "relu of one" not in FURTHER_DEFINITIONS


def test_a_spelling_of_nothing_is_refused_by_name() -> None:
    with pytest.raises(SuperoptError, match="rely of one: no operator rely is declared"):
        spells("rely", "of one")(same)


def test_what_is_entered_says_of_which_operator_it_is() -> None:
    tables = {**FURTHER_DEFINITIONS, **SPELLINGS}
    assert tables
    for name, meaning in tables.items():
        assert name.startswith(meaning.operator)
        assert defined(name).name == meaning.operator
        assert meaning.depth >= SEEN


def test_a_rewrite_looks_as_deep_as_its_definition_says() -> None:
    deep = [name for name, meaning in FURTHER_DEFINITIONS.items() if meaning.depth > SHALLOW]
    assert deep
    for name in deep:
        rewrite = Unfold(name)
        assert rewrite.depth == FURTHER_DEFINITIONS[name].depth
        assert [p.operator.name for p in rewrite.patterns] == list(rewrite.heads)
