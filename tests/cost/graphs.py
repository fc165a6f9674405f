"""Graphs that tests cut and cost."""

from superopt.dim import Dim
from superopt.operators.layout import Expand
from superopt.operators.linear import Conv
from superopt.operators.pointwise import Add, Relu
from superopt.term import Graph, Term, make, variable, variables


def tensor(label: str, *shape: Dim) -> Term:
    return variable(label, shape, "float32")


def weight(label: str, *shape: Dim) -> Term:
    return variable(label, shape, "float32", constant=True)


def graph(*outputs: Term) -> Graph:
    return Graph(tuple(v for v in variables(*outputs) if not v.constant), outputs)


def per_channel(bias: Term, like: Term) -> Term:
    return make(Expand((1,), like.shape), (bias,))


def conv_block(x: Term, name: str, channels: int, size: int = 3) -> Term:
    """Convolution, bias and relu."""
    kernel = weight(f"{name}_k", channels, x.shape[1], size, size)
    y = make(Conv(pads=(size // 2,) * 4), (x, kernel))
    return make(Relu(), (make(Add(), (y, per_channel(weight(f"{name}_b", channels), y))),))
