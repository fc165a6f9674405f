"""The larger and the smaller of two elements."""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.operators.declare import operator, reads
from superopt.operators.layout import broadcast
from superopt.operators.nodes import Source, present
from superopt.operators.pointwise import BinaryReal
from superopt.term import FACTS, Term, make


@operator("max", onnx="Max")
class Max(BinaryReal):
    """`z = max(x, y)`."""

    element = "(= r (ite (>= x y) x y))"
    keeps = frozenset(FACTS)
    needs = frozenset({"order"})
    commutative = True
    zero = True
    ordered = True
    laws = """
    (law max-self (given (?x *)) (= (max ?x ?x) ?x))
    (law max-min (given (?x *) (?y *)) (= (max ?x (min ?x ?y)) ?x))
    (law max-add (given (?x *) (?y *) (?z *)) (= (add (max ?x ?y) ?z) (max (add ?x ?z) (add ?y ?z))))
    (law relu-max (given (?x *) (?y *)) (= (relu (max ?x ?y)) (max (relu ?x) (relu ?y))))
    (law max-mul (given (?x *) (?y *) (?z *)) (if (nonnegative ?z))
      (= (mul (max ?x ?y) ?z) (max (mul ?x ?z) (mul ?y ?z))))
    (law max-assoc (given (?x *) (?y *) (?z *)) (= (max (max ?x ?y) ?z) (max ?x (max ?y ?z))))
    """

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The larger; not a number where one is not."""
        return np.maximum(x, y)


@operator("min", onnx="Min")
class Min(BinaryReal):
    """`z = min(x, y)`."""

    element = "(= r (ite (<= x y) x y))"
    keeps = frozenset(FACTS)
    needs = frozenset({"order"})
    commutative = True
    zero = True
    ordered = True
    laws = """
    (law min-self (given (?x *)) (= (min ?x ?x) ?x))
    (law min-max (given (?x *) (?y *)) (= (min ?x (max ?x ?y)) ?x))
    (law min-neg (given (?x *) (?y *)) (= (neg (max ?x ?y)) (min (neg ?x) (neg ?y))))
    (law min-mul (given (?x *) (?y *) (?z *)) (if (nonnegative ?z))
      (= (mul (min ?x ?y) ?z) (min (mul ?x ?z) (mul ?y ?z))))
    (law min-assoc (given (?x *) (?y *) (?z *)) (= (min (min ?x ?y) ?z) (min ?x (min ?y ?z))))
    """

    def real(self, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The smaller; not a number where one is not."""
        return np.minimum(x, y)


@reads("Max")
def max_of(node: Source) -> Term:
    """A chain that leans left."""
    return _chained(Max(), node)


@reads("Min")
def min_of(node: Source) -> Term:
    """A chain that leans left."""
    return _chained(Min(), node)


def _chained(op: Max | Min, node: Source) -> Term:
    total, *others = present(node.inputs, len(node.inputs))
    for other in others:
        total = make(op, broadcast(total, other))
    return total
