"""S-expressions: what prints also reads, and an error says where."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superopt.errors import ParseError
from superopt.text import Atom, Form, Sexp, read, show

# A word is what is read as one: no brackets, quotes, comments or spaces, and not a number.
WORDS = st.text(st.characters(codec="utf-8", exclude_characters='()";', exclude_categories=["Z", "C"]), min_size=1)
ATOMS = st.one_of(
    WORDS.filter(lambda w: isinstance(read(w)[0].value, str)).map(Atom),  # type: ignore[union-attr]
    st.integers().map(Atom),
    st.floats(allow_nan=False).map(Atom),
    st.text(st.characters(codec="utf-8")).map(lambda s: Atom(s, quoted=True)),
)
EXPRESSIONS = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=4).map(lambda i: Form(tuple(i))), max_leaves=12
)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(EXPRESSIONS)
def test_reading_what_was_shown_gives_it_back(expression: Sexp) -> None:
    assert read(show(expression)) == [expression]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(st.sampled_from('()"\\; \n\ta1.?-+e')))
def test_any_text_reads_or_is_a_parse_error(text: str) -> None:
    try:
        expressions = read(text)
    except ParseError as error:
        complaint = str(error)
    else:
        complaint = "<text>:"
        assert read("\n".join(map(show, expressions))) == expressions
    assert complaint.startswith("<text>:")


def test_not_a_number_and_the_infinities_read_back() -> None:
    nan, high, low = read("nan inf -inf")
    assert isinstance(nan, Atom)
    assert math.isnan(nan.value)  # type: ignore[arg-type]
    assert (high, low) == (Atom(math.inf), Atom(-math.inf))
    assert show(nan) == "nan"


def test_comments_run_to_the_end_of_the_line() -> None:
    assert read("(a ; b)\n c)") == [Form((Atom("a"), Atom("c")))]


def test_every_expression_knows_its_line_and_column() -> None:
    (outer,) = read('(a\n  (b "c"\n 4))', "f.rules")
    assert isinstance(outer, Form)
    inner = outer.items[1]
    assert isinstance(inner, Form)
    assert [str(i.place) for i in (outer, inner, *inner.items)] == [
        "f.rules:1:1",
        "f.rules:2:3",
        "f.rules:2:4",
        "f.rules:2:6",
        "f.rules:3:2",
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("(a\n  (b c)", "x:1:1: '(' is never closed"),
        ("(a)\n )", "x:2:2: ')' without '('"),
        ('(a\n "b\n")', "x:2:2: a string in double quotes is not closed"),
        ('("a\\q")', "x:1:2: not a string"),
    ],
)
def test_an_error_names_line_and_column(text: str, place: str) -> None:
    with pytest.raises(ParseError) as raised:
        read(text, "x")
    assert str(raised.value).startswith(place)


@pytest.mark.parametrize("text", ["((a) b)", "(1 b)", "()"])
def test_a_form_that_begins_with_no_word_has_no_head(text: str) -> None:
    (form,) = read(text)
    assert isinstance(form, Form)
    with pytest.raises(ParseError, match="<text>:1:1: expected a form that begins with a word"):
        _ = form.head
