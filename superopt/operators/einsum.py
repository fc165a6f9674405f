"""Einsum, by its meaning: a matrix product of two inputs whose axes are put in order, or moves and sums of one."""

from __future__ import annotations

from superopt.dim import Shape, product
from superopt.operators.declare import NotUnderstood, Source, present, reads
from superopt.operators.layout import Transpose, reshaped
from superopt.operators.linear import MatMul
from superopt.operators.reductions import Sum
from superopt.term import Term, make


@reads("Einsum")
def einsum(node: Source) -> Term:
    """One or two inputs, each axis named once in each."""
    equation = node.attributes["equation"]
    text = (equation.decode() if isinstance(equation, bytes) else str(equation)).replace(" ", "")
    left, arrow, right = text.partition("->")
    names = left.split(",")
    inputs = present(node.inputs, len(names))
    if "." in text or any(len(set(part)) != len(part) for part in (*names, right)):
        raise NotUnderstood(f"einsum {text}: an axis twice in one input, or without a name")
    if any(len(part) != t.type.rank for part, t in zip(names, inputs, strict=True)):
        raise NotUnderstood(f"einsum {text} over {[t.shape for t in inputs]}")
    every = "".join(names)
    result = right if arrow else "".join(sorted(a for a in set(every) if every.count(a) == 1))
    if len(inputs) == 1:
        return _moved(_summed(inputs[0], names[0], result), [a for a in names[0] if a in result], result)
    if len(inputs) > 2:
        raise NotUnderstood(f"einsum {text}: of more than two inputs")
    (x, y), (ours, theirs) = inputs, names
    return _contracted(x, y, ours, theirs, result)


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
    sizes = {**dict(zip(ours, x.shape, strict=True)), **dict(zip(theirs, y.shape, strict=True))}

    def flat(axes: list[str]) -> Shape:
        return (product([sizes[a] for a in axes]),)

    batch = tuple(sizes[a] for a in stack)
    a = reshaped(_moved(x, list(ours), "".join(stack + rows + inner)), (*batch, *flat(rows), *flat(inner)))
    b = reshaped(_moved(y, list(theirs), "".join(stack + inner + columns)), (*batch, *flat(inner), *flat(columns)))
    order = stack + rows + columns
    z = reshaped(make(MatMul(), (a, b)), tuple(sizes[name] for name in order))
    return _moved(z, order, result)
