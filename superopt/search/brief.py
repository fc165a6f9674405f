"""Terms as a report shows them: whole where a person might read that, and else without what is too long or too deep.

A term is shared where it is used twice, and its text has it twice: of ten steps that each use the one before twice it
is a thousand times as long. So are the indices by which exporters write windows out. Nothing reads these texts but
people; what is replayed has a text of its own (`solution.py`).
"""

from __future__ import annotations

from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.reader import attribute_items, term_sexp
from superopt.term import Term, subterms
from superopt.text import Form, Sexp, form, show, word

MOST_WORDS = 400
"""Texts of more words are cut. There may be as many operators below each other, which are shown by recursion."""

MOST_LISTED = 16
"""Numbers of an attribute that a text which is cut shows."""

LEFT_OUT = word("…")


def brief_text(term: Term) -> str:
    """A term as text that reads back; of a very long one only what is near its end, with `…` for the rest."""
    words = dict[Term, int]()
    for t in subterms(term):
        words[t] = _own_words(t) + sum(words[i] for i in t.inputs)
    if words[term] <= MOST_WORDS:
        return show(term_sexp(term))
    depth, level, count = 0, [term], 0
    while level and count + 2 * len(level) <= MOST_WORDS:
        count += sum(_own_words(t, MOST_LISTED) for t in level)
        depth, level = depth + 1, [i for t in level for i in t.inputs]
    return show(_cut(term, max(depth - 1, 1)))


def _own_words(term: Term, most: int | None = None) -> int:
    """The words of a term without its inputs, of which a list has so many at most."""
    op = term.operator
    values = [getattr(op, f.name) for f in op.fields] if isinstance(op, Declared) else []
    return 1 + sum(len(v[:most]) if isinstance(v, tuple) else 1 for v in values)


def _cut(term: Term, depth: int) -> Sexp:
    """A term down to so many operators below each other."""
    op = term.operator
    if not isinstance(op, Declared):
        return term_sexp(term)
    if depth == 0:
        return form(op.name, LEFT_OUT)
    items = [_shortened(i) for i in attribute_items(op)]
    return form(op.name, *(items[:1] if isinstance(op, Expand) else items), *(_cut(i, depth - 1) for i in term.inputs))


def _shortened(item: Sexp) -> Sexp:
    """An attribute with the first of its numbers."""
    if isinstance(item, Form) and len(item.items) > MOST_LISTED:
        return Form((*item.items[:MOST_LISTED], LEFT_OUT))
    return item
