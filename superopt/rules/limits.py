"""What a rule may be at most: names become words of a file and names of files, terms are printed and walked."""

from __future__ import annotations

from superopt.errors import RuleError
from superopt.term import Term, subterms
from superopt.text import is_word

NAME, DEPTH, PRINTED = 200, 200, 100_000
"""Characters of a name, operators one above another, and operators that stand in the text where nothing is shared."""


def demand_name(name: str) -> None:
    """Raise `RuleError` for a name that is no word, or that a file could not have."""
    bad = not 0 < len(name) <= NAME or name.startswith(".") or not name.isprintable() or set(name) & set("/\\")
    if bad or not is_word(name):
        shown = ascii(name[:60])
        raise RuleError(
            f"rule {shown}: its name is expected to be a word of at most {NAME} characters that is no number, "
            "without slashes, and no dot first"
        )


def demand_bounded(name: str, roots: tuple[Term, ...], comment: str) -> None:
    """Raise `RuleError` for terms that are too deep or too large, and for comments that are no lines of text."""
    depth: dict[Term, int] = {}
    printed: dict[Term, int] = {}
    for term in subterms(*roots):
        depth[term] = 1 + max((depth[i] for i in term.inputs), default=0)
        printed[term] = min(1 + sum(printed[i] for i in term.inputs), PRINTED + 1)
    if max(depth.values(), default=0) > DEPTH:
        raise RuleError(f"rule {name}: its operators stand more than {DEPTH} one above another")
    if max(printed.values(), default=0) > PRINTED:
        raise RuleError(f"rule {name}: written out it has more than {PRINTED} operators")
    if any(c in "\r\0" or 0xD800 <= ord(c) < 0xE000 for c in comment):
        raise RuleError(f"rule {name}: its comment is expected to be lines of text, that end in line feeds")
