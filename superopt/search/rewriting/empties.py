"""What runtimes refuse where it is empty is not introduced there: `x[:, :-1]` has no rows where `x` has one.

A linear layer takes a value of no rows, but a convolution takes no picture without places, nor an attention a sequence
without tokens (onnxruntime raises at both). So a graph that has such an operator at a value that may be empty is no
candidate for one that has none.
"""

from __future__ import annotations

from collections.abc import Iterable

from superopt.dim import Dim, Symbol
from superopt.operators.attention.dot_product import Attending
from superopt.operators.attention.flat_heads import OfFlatRows
from superopt.operators.attention.heads import OfRows
from superopt.operators.conv import Conv
from superopt.operators.reduce import GlobalAvgPool, Pool
from superopt.operators.transposed import ConvTranspose
from superopt.relations import are_equal
from superopt.substitution import substitute
from superopt.term import Term

PICTURES = (Conv, ConvTranspose, Pool, GlobalAvgPool)
"""Of these the first input has places from its third axis on, and has to have some; of pictures there may be none."""

ATTENTION = (Attending, OfRows, OfFlatRows)


def refusing(terms: Iterable[Term]) -> bool:
    """Whether one of the terms is refused at some size: its input is empty where all symbols are 1."""
    return any(not term.sized and _refuses(term) for term in terms)


def _refuses(term: Term) -> bool:
    if isinstance(term.operator, PICTURES):
        return any(map(_vanishes, term.inputs[0].shape[2:]))
    return isinstance(term.operator, ATTENTION) and any(_vanishes(d) for i in term.inputs for d in i.shape)


def _vanishes(dim: Dim) -> bool:
    """Whether a size is 0 where its symbols are 1, as `n - 1` is.

    One that has a quotient is not meant: it is of what a window or a stride leaves of an image, and no network takes an
    image of one place. Nor is a difference of symbols: of all tokens and those before, which are fewer.
    """
    if isinstance(dim, int):
        return dim == 0
    atoms = {atom for monomial, _ in dim.terms for atom in monomial}
    names = {atom.name for atom in atoms if isinstance(atom, Symbol)}
    plain = len(names) == len(atoms) and all(count > 0 for monomial, count in dim.terms if monomial)
    return plain and are_equal(substitute(dim, dict.fromkeys(names, 1)), 0)
