"""The catalogue: one declaration per operator, grouped by algebra. Importing this package declares them all."""

from superopt.operators import (
    activations,
    constant,
    forms,
    functions,
    layout,
    linear,
    normalize,
    pointwise,
    reader,
    reduce,
    tiles,
)
from superopt.operators.declare import CATALOGUE, READERS, Declared, Emitter, NotUnderstood, Source

__all__ = [
    "CATALOGUE",
    "READERS",
    "Declared",
    "Emitter",
    "NotUnderstood",
    "Source",
    "activations",
    "constant",
    "forms",
    "functions",
    "layout",
    "linear",
    "normalize",
    "norms",
    "pointwise",
    "reader",
    "reduce",
    "reductions",
    "tiles",
]
