"""What the solver is asked of an equation: the laws, what is known of sizes, and that the equation does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from superopt.dim import Condition
from superopt.operators.declared import Declared
from superopt.operators.laws.collected import Law
from superopt.operators.layout import Reshape
from superopt.operators.symbolic import all_symbols
from superopt.term import Fact, Term, subterms, variables
from superopt.verify.axioms import law_axioms
from superopt.verify.encode import encode_condition, encode_dim, encode_term
from superopt.verify.function_symbols import Z3, Head, fact, head_of, size_function, sort, well_formed
from superopt.verify.size_axioms import all_sizes_positive, arithmetic_axioms, distributes, total
from superopt.verify.typing_axioms import fact_axioms, typing_axiom


def problem(
    source: Sequence[Term],
    target: Sequence[Term],
    given: Sequence[Condition],
    facts: Sequence[Fact],
    laws: Sequence[Law],
) -> tuple[list[tuple[str, Any]], list[Any]]:
    """What is unsatisfiable where the rule is true by the laws: each axiom with its law's name, and all the rest."""
    used = sorted(laws, key=_text)
    tracked = [(law.name, axiom) for law in used for axiom in law_axioms(law)]
    return tracked, [*_theory([*source, *target], used), *_obligation(source, target, given, facts)]


def _theory(roots: Sequence[Term], laws: Sequence[Law]) -> list[Any]:
    """The typing of all operators in sight, and what is known of sizes."""
    examples: dict[Any, Term] = {}
    for term in subterms(*roots):
        if not term.is_variable:
            examples.setdefault(head_of(term), term)
    for law in laws:
        for head, term in _heads(law):
            examples.setdefault(head, term)
    ranks = sorted({t.type.rank for t in [*examples.values(), *variables(*roots)]})
    positive = [axiom for rank in ranks for axiom in all_sizes_positive(rank)]
    known = [axiom for example in examples.values() for axiom in fact_axioms(example)]
    return [*positive, *arithmetic_axioms(), *map(typing_axiom, examples.values()), *known]


def _obligation(
    source: Sequence[Term], target: Sequence[Term], given: Sequence[Condition], facts: Sequence[Fact]
) -> list[Any]:
    """That the source is well formed and the condition holds, and yet some target is ill formed or differs."""
    tensors = {v: Z3.Const(f"?{v.label}", sort(v.type.rank)) for v in variables(*source, *target)}
    ints = {n: Z3.Int(n) for n in all_symbols(*source, *target)}
    assumed: list[Any] = []
    for v, c in tensors.items():
        assumed.append(well_formed(v.type.rank)(c))
        assumed += [size_function(v.type.rank, i)(c) == encode_dim(d, ints) for i, d in enumerate(v.shape)]
    assumed += [encode_condition(c, ints) for c in given]
    dims = {d: None for t in subterms(*source, *target) if isinstance(t.operator, Declared) for d in t.operator.sizes()}
    assumed += [axiom for d in dims for axiom in distributes(d, ints)]
    reshapes = (t for t in subterms(*source, *target) if isinstance(t.operator, Reshape))
    assumed += [total(shape, ints) for t in reshapes for shape in (t.inputs[0].shape, t.shape)]
    assumed += [fact(f.kind, f.of.type.rank)(tensors[f.of]) for f in facts]
    goals = []
    known: dict[Term, Any] = {}
    for s, t in zip(source, target, strict=True):
        left, right = encode_term(s, tensors, ints, known), encode_term(t, tensors, ints, known)
        assumed.append(well_formed(s.type.rank)(left))
        goals.append(
            Z3.And(well_formed(t.type.rank)(right), left == right) if s.type.rank == t.type.rank else Z3.BoolVal(False)
        )
    return [*assumed, Z3.Not(Z3.And(goals))]


@cache
def _heads(law: Law) -> list[tuple[Head, Term]]:
    """What of a law has a function symbol in the solver, with an example of each."""
    return [(head_of(t), t) for t in subterms(law.left, law.right) if not t.is_variable]


@cache
def _text(law: Law) -> str:
    return str(law)
