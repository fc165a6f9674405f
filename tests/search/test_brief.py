"""Reports show terms whole where a person might read that, and cut where nobody would."""

from __future__ import annotations

from superopt.operators.picks import Take
from superopt.operators.pointwise import Add, Relu
from superopt.operators.reader import term_text
from superopt.search.brief import MOST_WORDS, brief_text
from superopt.term import Term, variable
from superopt.text import read

X = variable("x", (2, 2), "float32")


def steps(count: int) -> Term:
    """Each uses the one before twice."""
    term = X
    for _ in range(count):
        term = Add()(Relu()(term), term)
    return term


def test_a_short_term_is_shown_whole() -> None:
    assert brief_text(steps(3)) == term_text(steps(3))


def test_what_is_shared_again_and_again_is_cut_and_still_an_expression() -> None:
    text = brief_text(steps(200))
    assert len(read(text)) == 1
    assert text.startswith("(add (relu (add ")
    assert "(add …)" in text
    assert MOST_WORDS // 4 < len(text.split()) <= MOST_WORDS


def test_of_a_long_list_the_first_numbers_are_shown() -> None:
    taken = Take(0, tuple(i % 2 for i in range(40_000)))(X)
    assert brief_text(Relu()(taken)) == f"(relu (take 0 ({'0 1 ' * 8}…) ?x))"
