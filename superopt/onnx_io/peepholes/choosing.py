"""How a term is written: over which terms, so that ONNX's own bias and n-ary forms are used."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from superopt.onnx_io.peepholes.broadcasts import expand, without_expands
from superopt.onnx_io.peepholes.form import Form
from superopt.onnx_io.peepholes.reshapes import keeping_axes, repeated, reshape, shuffled
from superopt.onnx_io.peepholes.slices import slices, strided
from superopt.operators import Declared, NotUnderstood
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Expand, Reshape
from superopt.operators.picks import Every, Slice
from superopt.operators.pointwise import Add
from superopt.term import Term


def form_of(term: Term, uses: Mapping[Term, int], given: Container[Term]) -> Form:
    """The form of a term. `uses` counts how often each term is read; those in `given` exist and are not written.

    Raises `NotUnderstood` for an operator that has no form in ONNX.
    """
    op = term.operator
    if not isinstance(op, Declared):
        raise NotUnderstood(f"{op} has no form in ONNX")

    def inner(t: Term) -> bool:
        """Whether a term is written for its one reader only, so that the reader may swallow it."""
        return t not in given and uses.get(t, 0) == 1

    if isinstance(op, Add):
        with_bias = _conv_with_bias(term, inner)
        if with_bias is not None:
            return with_bias
    if isinstance(op, Concat):
        return Form(_chained(term, op, inner), lambda out, *names: out.node("Concat", names, {"axis": op.axis}))
    if isinstance(op, Reshape):
        return repeated(term, op, inner) or keeping_axes(term, op, inner) or shuffled(term, inner) or reshape(term, op)
    if isinstance(op, Expand):
        return expand(term, op)
    if isinstance(op, Slice):
        return slices(term, inner)
    if isinstance(op, Every) and isinstance(term.inputs[0].operator, Slice) and inner(term.inputs[0]):
        return strided(term.inputs[0], op) or Form(term.inputs, op.to_onnx)
    return Form(without_expands(term, given), op.to_onnx)


def _conv_with_bias(term: Term, inner: Callable[[Term], bool]) -> Form | None:
    """`add(conv(x, k), expand((1,), b))` is a Conv of three inputs."""
    for conv, bias in (term.inputs, term.inputs[::-1]):
        spread, op = bias.operator, conv.operator
        if isinstance(op, Conv) and isinstance(spread, Expand) and spread.axes == (1,) and inner(conv):
            return Form((*conv.inputs, bias.inputs[0]), op.to_onnx)
    return None


def _chained(term: Term, op: Concat, inner: Callable[[Term], bool]) -> tuple[Term, ...]:
    """The parts of a chain of concats along one axis."""
    parts: list[Term] = []
    stack = list(reversed(term.inputs))
    while stack:
        part = stack.pop()
        if part.operator == op and inner(part) and not part.constant:
            stack.extend(reversed(part.inputs))
        else:
            parts.append(part)
    return tuple(parts)
