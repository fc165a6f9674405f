"""Proofs element by element: of point-wise operators z3 knows what they make of real numbers, as they declare.

Where both sides are point-wise above common terms, an element of a result depends on single elements of these. The
equation then holds for all sizes if it holds for real numbers in their places, which z3 decides (Tarski 1951: sums,
products and comparisons of real numbers are decidable; Jovanović and de Moura 2012 is how z3 does it). Both sides must
have a value at the same places: a quotient has none where the divisor is 0, a root none of a negative number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from typing import TypeAlias

from superopt.dim import Condition
from superopt.operators.constant import Scalar
from superopt.operators.declared import Declared
from superopt.operators.facts import known_facts, supposing
from superopt.operators.layout import Expand
from superopt.operators.symbolic import conditions
from superopt.relations import equal_shapes
from superopt.term import Fact, Term, subterms
from superopt.verify.contexts import CONTEXTS
from superopt.verify.function_symbols import Z3

Element: TypeAlias = "tuple[Term, tuple[int, ...]]"
"""A term, and which axes of the result are its own: its element at the place that these say."""

KNOWN = {"nonnegative": "(>= {} 0.0)", "nonzero": "(distinct {} 0.0)"}
"""What the facts of a term say of an element."""


def is_elementwise(*roots: Term) -> bool:
    """Whether all operators are broadcasts, numbers, or point-wise and declare what they make of elements."""
    operators = (t.operator for t in subterms(*roots) if not t.is_variable)
    return all(isinstance(op, Expand | Scalar) or (isinstance(op, Declared) and bool(op.element)) for op in operators)


def elements_problem(
    source: Sequence[Term], target: Sequence[Term], given: Sequence[Condition] = (), facts: Sequence[Fact] = ()
) -> str | None:
    """What is unsatisfiable where the rule is true of each element, as SMT-LIB 2; None where elements say nothing.

    They do where no side but the source asks anything of the sizes, all numbers are finite, and something is
    point-wise. What only one side is made of must be finite: `x·0` is no number where `x` is infinite.
    """
    if not all(isfinite(t.operator.value) for t in subterms(*source, *target) if isinstance(t.operator, Scalar)):
        return None
    stated = {c.key for c in [*conditions(*source), *given]}
    typed = all(c.key in stated for c in conditions(*target))
    if not typed or not all(equal_shapes(s.shape, t.shape) for s, t in zip(source, target, strict=True)):
        return None
    script = _Script()
    with supposing(facts):
        if any("finite" not in known_facts(leaf) for leaf in _leaves(source) ^ _leaves(target)):
            return None
        pairs = [(script.element(s), script.element(t)) for s, t in zip(source, target, strict=True)]
    if not script.defined:
        return None
    values = " ".join(f"(distinct {a} {b})" for a, b in pairs)
    left, right = script.where_defined(source), script.where_defined(target)
    return "\n".join([*script.lines, f"(assert (or (distinct {left} {right}) (and {left} (or {values}))))"]) + "\n"


def elements_laws(*roots: Term) -> tuple[str, ...]:
    """The names under which a proof refers to what operators declare of elements."""
    return tuple(sorted({f"{t.operator.name}-element" for t in subterms(*roots) if _interpreted(t)}))


LONGEST_MS = 5_000
"""Past this z3 is stopped: products of reals beside functions of which nothing is known may keep it without end at work
that it does not count as resources. What proves does so in some milliseconds, so verdicts do not hang on it.
"""


def solved(problem: str, resources: int) -> bool:
    """Whether z3 finds it unsatisfiable, within so many resource units."""
    solver = Z3.SolverFor("QF_UFNRA", ctx=CONTEXTS.fresh())
    solver.set("rlimit", resources)
    solver.set("timeout", LONGEST_MS)
    solver.from_string(problem)
    return bool(solver.check() == Z3.unsat)


class _Script:
    """SMT-LIB lines: a real number for each element, and what is known of it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.defined: dict[Term, list[str]] = {}
        self._names: dict[Element, str] = {}
        self._functions: set[str] = set()

    def element(self, root: Term) -> str:
        """The name of the element of a root at any place."""
        return self._of(root, tuple(range(root.type.rank)))

    def where_defined(self, roots: Sequence[Term]) -> str:
        """That all that the roots are made of has a value."""
        parts = dict.fromkeys(part for t in subterms(*roots) for part in self.defined.get(t, ()))
        return f"(and true {' '.join(parts)})"

    def _of(self, term: Term, place: tuple[int, ...]) -> str:
        if (term, place) not in self._names:
            op = term.operator
            if isinstance(op, Expand):
                name = self._of(term.inputs[0], tuple(place[a] for a in op.axes))
            elif isinstance(op, Scalar):
                numerator, denominator = float(op.value).as_integer_ratio()
                name = f"(/ {_number(numerator)} {_number(denominator)})"
            else:
                name = self._interpreted(term, place) if _interpreted(term) else self._any(term)
            self._names[term, place] = name
        return self._names[term, place]

    def _interpreted(self, term: Term, place: tuple[int, ...]) -> str:
        op = term.operator
        assert isinstance(op, Declared)
        names = {letter: self._of(i, place) for letter, i in zip("xyz", term.inputs, strict=False)}
        names["r"] = name = self._any(term)
        names["f"] = self._function(op) if re.search(r"\bf\b", op.element) else ""
        holds, defined = (filled(text, names) for text in (op.element, op.defined))
        self.lines.append(f"(assert (=> {defined} {holds}))")
        self.defined.setdefault(term, []).append(defined)
        return name

    def _function(self, op: Declared) -> str:
        name = f"|{op}|"
        if name not in self._functions:
            self.lines.append(f"(declare-fun {name} ({' '.join(['Real'] * op.arity)}) Real)")
            self._functions.add(name)
        return name

    def _any(self, term: Term) -> str:
        name = f"e{len(self.lines)}"
        self.lines.append(f"(declare-const {name} Real)")
        known = sorted(known_facts(term) & set(KNOWN))
        self.lines += [f"(assert {KNOWN[kind].format(name)})" for kind in known]
        return name


def _leaves(roots: Sequence[Term]) -> set[Term]:
    """The terms at and below which nothing is known of single elements."""
    found: set[Term] = set()
    for root in roots:
        if _interpreted(root) or isinstance(root.operator, Expand):
            found |= _leaves(root.inputs)
        elif not isinstance(root.operator, Scalar):
            found.add(root)
    return found


def _interpreted(term: Term) -> bool:
    return isinstance(term.operator, Declared) and bool(term.operator.element)


def _number(value: int) -> str:
    return f"{value}.0" if value >= 0 else f"(- {-value}.0)"


def filled(text: str, names: dict[str, str]) -> str:
    """A declaration's text with the names of the elements it speaks of."""
    return re.sub(r"\b[fxyzr]\b", lambda found: names[found[0]], text)
