"""Einsum, by its meaning: matrix products of inputs whose axes are put in order, moves and sums."""

from __future__ import annotations

import string
from collections.abc import Sequence

from superopt.dim import Shape, equal, product
from superopt.operators.declare import reads
from superopt.operators.layout import Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import NotUnderstood, Source, present
from superopt.operators.reductions import Sum
from superopt.term import Term, make


@reads("Einsum")
def einsum(node: Source) -> Term:
    """Any number of inputs, contracted from left to right; each axis named once in each, or behind an ellipsis."""
    text = node.attributes["equation"].replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = present(node.inputs, left.count(",") + 1)
    names, ellipsis = _spelled(left.split(","), inputs, text)
    every = "".join(names)
    result = right.replace("...", ellipsis) if arrow else _implied(every, ellipsis)
    if any(len(set(part)) != len(part) for part in (*names, result)):
        raise NotUnderstood(f"einsum {text}: an axis twice in one input")
    if any(len(part) != t.type.rank for part, t in zip(names, inputs, strict=True)):
        raise NotUnderstood(f"einsum {text} over {[t.shape for t in inputs]}")
    x, ours = inputs[0], names[0]
    for at, (y, theirs) in enumerate(zip(inputs[1:], names[1:], strict=True), 2):
        later = result + "".join(names[at:])
        kept = "".join(dict.fromkeys(a for a in ours + theirs if a in later))
        x, ours = _contracted(x, y, ours, theirs, kept), kept
    return _moved(_summed(x, ours, result), [a for a in ours if a in result], result)


def _spelled(names: list[str], inputs: Sequence[Term], text: str) -> tuple[list[str], str]:
    """The axes of each input with letters in place of its ellipsis, and all letters that stand for one."""
    free = [a for a in string.ascii_letters if a not in text]
    spelled, longest = [], ""
    for part, x in zip(names, inputs, strict=True):
        count = max(x.type.rank - len(part) + 3, 0) if "..." in part else 0
        own = "".join(free[:count][::-1])  # those of another input, counted from the end
        longest = max(longest, own, key=len)
        spelled.append(part.replace("...", own))
    return spelled, longest


def _implied(every: str, ellipsis: str) -> str:
    """The axes of a result that is not said: those of the ellipsis, and what occurs once."""
    return ellipsis + "".join(sorted(a for a in set(every) - set(ellipsis) if every.count(a) == 1))


def _summed(x: Term, names: str, kept: str) -> Term:
    """Without the axes that nothing keeps."""
    gone = tuple(i for i, a in enumerate(names) if a not in kept)
    return make(Sum(gone), (x,)) if gone else x


def _moved(x: Term, names: list[str], to: str) -> Term:
    perm = tuple(names.index(a) for a in to)
    return x if perm == tuple(range(len(perm))) else Transpose(perm)(x)


def _contracted(x: Term, y: Term, ours: str, theirs: str, result: str) -> Term:
    """As one product of stacks of matrices: shared axes that stay are the stack, shared ones that go are contracted."""
    x, y = _summed(x, ours, theirs + result), _summed(y, theirs, ours + result)
    ours, theirs = ("".join(a for a in p if a in q + result) for p, q in ((ours, theirs), (theirs, ours)))
    stack = [a for a in ours if a in theirs and a in result]
    inner = [a for a in ours if a in theirs and a not in result]
    rows, columns = ([a for a in p if a not in q] for p, q in ((ours, theirs), (theirs, ours)))
    for name in set(ours) & set(theirs):
        one, other = x.shape[ours.index(name)], y.shape[theirs.index(name)]
        if equal(one, other) is not True:
            raise NotUnderstood(f"einsum: an axis is {one} in one input and {other} in another")
    sizes = {**dict(zip(ours, x.shape, strict=True)), **dict(zip(theirs, y.shape, strict=True))}

    def flat(axes: list[str]) -> Shape:
        return (product([sizes[a] for a in axes]),)

    batch = tuple(sizes[a] for a in stack)
    a = reshaped(_moved(x, list(ours), "".join(stack + rows + inner)), (*batch, *flat(rows), *flat(inner)))
    b = reshaped(_moved(y, list(theirs), "".join(stack + inner + columns)), (*batch, *flat(inner), *flat(columns)))
    order = stack + rows + columns
    z = reshaped(make(MatMul(), (a, b)), tuple(sizes[name] for name in order))
    return _moved(z, order, result)
