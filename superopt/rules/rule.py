"""A rewrite rule: source terms that may be replaced by target terms, at all sizes that meet its condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from superopt.dim import Condition, Shape, symbol
from superopt.errors import RuleError
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.symbolic import all_symbols
from superopt.rules.limits import demand_bounded, demand_name
from superopt.substitution import symbols
from superopt.term import Fact, Term, subterms, variables

AXES: Shape = (symbol("*"),)
"""The shape of a tensor of any rank, see `ranks.py`."""

(_ANY,) = AXES


def of_any_rank(*terms: Term) -> bool:
    """Whether some of the terms are of any rank."""
    for term in terms:  # a loop, since matching asks this of every term
        shape = term.shape
        if len(shape) == 1 and shape[0] is _ANY:  # equal sizes are one object
            return True
    return False


@dataclass(frozen=True)
class Rule:
    """`source[i]` may be replaced by `target[i]`, all together, where the `conditions` on sizes hold
    and the `facts` on elements of variables.

    `by` names the laws that prove it. Raises `RuleError` for a rule that could not be applied: a variable or size on
    the right that the left does not bind, or a source that is a bare variable.
    """

    name: str
    source: tuple[Term, ...]
    target: tuple[Term, ...]
    conditions: tuple[Condition, ...] = ()
    by: tuple[str, ...] = ()
    comment: str = ""
    facts: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        demand_name(self.name)
        demand_bounded(self.name, (*self.source, *self.target), self.comment)
        if not self.source or len(self.source) != len(self.target):
            raise RuleError(f"rule {self.name}: {len(self.source)} sources and {len(self.target)} targets")
        if any(s.is_variable for s in self.source):
            raise RuleError(f"rule {self.name}: a source that is a bare variable would match everything")
        given = set(self.given)
        unbound = [v.label for v in variables(*self.target) if v not in given]
        if unbound:
            raise RuleError(f"rule {self.name}: unbound variable ?{unbound[0]} on the right")
        unknown = [f for f in self.facts if f.of not in given]
        if unknown:
            raise RuleError(f"rule {self.name}: the condition {unknown[0]} is about no variable of the left")
        sizes = set(all_symbols(*self.source))
        asked = set(all_symbols(*self.target)).union(*(symbols(c.left) | symbols(c.right) for c in self.conditions))
        if asked - sizes:
            raise RuleError(f"rule {self.name}: unbound size {min(asked - sizes)} on the right or in the condition")
        if "*" in sizes:
            self._demand_pointwise()

    def _demand_pointwise(self) -> None:
        """Raise `RuleError` where `*` is more than all axes of tensors that operators work on element by element."""
        for t in subterms(*self.source, *self.target):
            op = t.operator
            pointwise = isinstance(op, Declared) and op.pointwise and not op.sizes()
            repeated = isinstance(op, Expand) and not op.axes
            if not (of_any_rank(t) or not t.shape) or not (t.is_variable or not t.inputs or pointwise or repeated):
                raise RuleError(
                    f"rule {self.name}: * stands for all axes of point-wise operators' inputs, not in {t!r}"
                )
        if self.conditions or not of_any_rank(*self.source):
            raise RuleError(f"rule {self.name}: where * stands for all axes there is no condition on sizes")

    @property
    def given(self) -> list[Term]:
        """The variables, in the order of first use on the left."""
        return variables(*self.source)

    def operators(self) -> list[str]:
        """The names of the operators on the left, then on the right, each as often as it occurs."""
        sides: Sequence[Term] = [*subterms(*self.source), *subterms(*self.target)]
        return [t.operator.name for t in sides if not t.is_variable]
