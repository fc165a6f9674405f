"""Rules as TASO's: those that its file can say, which is checked by reading back what is written."""

from __future__ import annotations

from collections.abc import Sequence

from superopt.dim import Dim, Shape
from superopt.errors import RuleError, SuperoptError
from superopt.operators.conv import Conv
from superopt.operators.layout import Concat, Expand, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Mul
from superopt.operators.reduce import AvgPool, MaxPool
from superopt.rules.exchange.taso import rules_of
from superopt.rules.exchange.taso_messages import KEYS, OPERATOR_NUMBERS, Node, Place, Published, encode
from superopt.rules.exchange.taso_terms import cut_of
from superopt.rules.naming import canonical
from superopt.rules.ranks import at_ranks
from superopt.rules.rule import Rule
from superopt.term import Term, subterms

NAMES = ("add", "mul", "relu", "sigmoid", "tanh", "matmul")
"""Operators that are called the same."""


def published(rule: Rule) -> Published:
    """The rule in TASO's terms. Raises `RuleError` that says what of it these cannot say."""
    if rule.conditions or rule.facts:
        raise RuleError(f"rule {rule.name}: it holds under a condition, which TASO's format cannot say")
    try:
        numbers = {v: -i for i, v in enumerate(rule.given, start=1)}
        source, target = (_Side(side, numbers) for side in (rule.source, rule.target))
        pairs = [(source.places[s], target.places[t]) for s, t in zip(rule.source, rule.target, strict=True)]
        made = Published(tuple(source.nodes), tuple(target.nodes), tuple(pairs))
        back = [canonical((*r.source, *r.target)) for r in rules_of(made, rule.name)]
    except SuperoptError as error:
        raise RuleError(f"rule {rule.name}: TASO's format cannot say it: {error}") from None
    if canonical((*rule.source, *rule.target)) not in back:
        raise RuleError(f"rule {rule.name}: TASO's format cannot say its sizes: read back, they are others")
    return made


class _Side:
    """The nodes of one side, and the place of each term."""

    def __init__(self, roots: Sequence[Term], numbers: dict[Term, int]) -> None:
        self.nodes: list[Node] = []
        self.places: dict[Term, Place] = {v: (n, 0) for v, n in numbers.items()}
        for term in subterms(*roots):
            if term not in self.places and not isinstance(term.operator, Expand):
                self._write(term)

    def _write(self, term: Term) -> None:
        op = term.operator
        if isinstance(op, Slice):
            self._split(op, term)
            return
        scalar = [i for i in term.inputs if isinstance(i.operator, Expand)]
        if scalar:
            x, s = term.inputs[0], term.inputs[-1]
            if not isinstance(op, Mul) or scalar != [s] or not isinstance(s.operator, Expand) or s.operator.axes:
                raise RuleError(f"{op} of a broadcast that is no scalar on the right of a product")
            self._add(term, "multiply by a scalar", (x, s.inputs[0]), {})
        elif op.name in NAMES:
            activation = {"activation": 0} if isinstance(op, MatMul) else {}
            self._add(term, op.name, term.inputs, activation)
        elif isinstance(op, Concat):
            self._add(term, "concat", term.inputs, {"inputs": 2, "axis": op.axis, "rank": term.type.rank})
        elif isinstance(op, Transpose):
            number = sum(p * len(op.perm) ** i for i, p in enumerate(reversed(op.perm)))
            self._add(term, "transpose", term.inputs, {"rank": len(op.perm), "permutation": number, "shuffle": 1})
        elif isinstance(op, Conv):
            self._windowed(term, "conv2d", term.inputs[1].shape[2:], op)
        elif isinstance(op, MaxPool | AvgPool):
            self._windowed(term, "max pool" if isinstance(op, MaxPool) else "average pool", op.kernel, op)
        else:
            raise RuleError(f"{op} is none of its operators")

    def _windowed(self, term: Term, name: str, kernel: Shape, op: Conv | MaxPool | AvgPool) -> None:
        sizes: list[Dim] = [*kernel, *op.strides, *op.pads]
        if not all(isinstance(d, int) for d in sizes) or set(op.dilations) != {1} or len(kernel) != 2:
            raise RuleError(f"{op}: windows of two axes, not dilated, whose sizes are numbers are expected")
        valid = all(p == 0 for p in op.pads)
        keys = ("kernel height", "kernel width", "stride height", "stride width")
        given = {k: int(d) for k, d in zip(keys, sizes[:4], strict=True) if isinstance(d, int)}
        self._add(term, name, term.inputs, given | {"padding": int(valid), "activation": 0})

    def _split(self, op: Slice, term: Term) -> None:
        """Both halves at once; the second output is there whether or not it is used."""
        (whole,) = term.inputs
        cut = cut_of(whole, op.axis)
        if cut is None:
            raise RuleError(f"{op} cuts where no concat was joined")
        halves = Slice(op.axis, 0, cut), Slice(op.axis, cut, whole.shape[op.axis])
        if op not in halves:
            raise RuleError(f"{op} is no half of what a concat joined at {cut}")
        index = len(self.nodes)
        self._add(term, "split", (whole,), {"outputs": 2, "axis": op.axis})
        self.places |= {half(whole): (index, i) for i, half in enumerate(halves)}

    def _add(self, term: Term, name: str, inputs: Sequence[Term], parameters: dict[str, int]) -> None:
        keyed = tuple((KEYS[k], v) for k, v in parameters.items())
        self.nodes.append(Node(OPERATOR_NUMBERS[name], tuple(self.places[i] for i in inputs), keyed))
        self.places[term] = (len(self.nodes) - 1, 0)


def to_taso(rules: Sequence[Rule]) -> bytes:
    """TASO's file of these rules. Raises `RuleError` for one that it cannot say; see `taso_refusals`."""
    return encode(list(dict.fromkeys(map(published, at_ranks(rules)))))


def taso_refusals(rules: Sequence[Rule]) -> list[tuple[str, str]]:
    """The name of each rule that TASO's format cannot say, with the reason."""
    refused = []
    for rule in at_ranks(rules):
        try:
            published(rule)
        except RuleError as error:
            refused.append((rule.name, str(error).removeprefix(f"rule {rule.name}: ")))
    return refused
