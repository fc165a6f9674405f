"""Proofs of equations between typed terms, by z3 from the laws, for all sizes.

The obligation: whenever the source is well formed and the condition holds, the target is well formed and equal to it
(then it has the same type too). z3 is run with model-based instantiation off, so `unsat` is a proof and nothing else it
says means anything: a refutation is an executed example, see `check.py`. Limits are the solver's resource units, which
do not depend on the machine's speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from superopt.dim import Condition, Dim, assuming, symbol_name, symbols
from superopt.operators.declare import Declared
from superopt.operators.instances import all_symbols
from superopt.operators.laws.collected import Law, laws_in, scope_of, widened
from superopt.operators.layout import Reshape
from superopt.term import Fact, Term, subterms, variables
from superopt.verify.contexts import CONTEXTS
from superopt.verify.elements import elements_laws, elements_problem, is_elementwise, solved
from superopt.verify.encode import (
    Z3,
    Head,
    all_sizes_positive,
    arithmetic_axioms,
    distributes,
    encode_condition,
    encode_dim,
    encode_term,
    fact,
    fact_axioms,
    function,
    head_of,
    size_function,
    sort,
    total,
    typing_axiom,
    well_formed,
)

RESOURCES = 3_000_000
"""z3 resource units for one proof; a typical one takes a few thousand."""

RESOURCES_OF_A_HINT = RESOURCES // 10
"""Those for a proof from the laws that an earlier one used."""


SETTINGS = {"mbqi": False, "arith.nl": False, "delay_units": True}
"""z3's, for proofs from laws."""


def solver_version() -> str:
    """The solver and its version."""
    return f"z3 {Z3.get_version_string()}"


@dataclass(frozen=True)
class Proved:
    """True for all sizes at which the source is well formed and the condition holds, by these laws."""

    laws: tuple[str, ...]


@dataclass(frozen=True)
class Unknown:
    """Not proved, for this reason; it may be true."""

    why: str


def prove(
    source: Sequence[Term],
    target: Sequence[Term],
    given: Sequence[Condition] = (),
    facts: Sequence[Fact] = (),
    resources: int = RESOURCES,
    laws: Sequence[Law] | None = None,
    hint: Sequence[str] = (),
) -> Proved | Unknown:
    """Prove each target well formed and equal to its source. Sizes and attributes are symbols that all terms share.

    `laws` are those of the terms' scope where none are given, and where these do not do, of what they bring in too.
    Then what is known of elements counts as well, and comes first where there is nothing else. The laws that a `hint`
    names, as an earlier proof did, are tried alone before all that; where they do not do, it says nothing.
    """
    if any(a.type.dtype != b.type.dtype for a, b in zip(source, target, strict=True)):
        return Unknown("its sides are of different element types, of which the solver knows nothing")
    if laws is not None:
        return _solved(*problem(source, target, given, facts, laws), resources)
    if hint:
        named = [law for law in laws_in(widened(scope_of(*source, *target))) if law.name in hint]
        asked = problem(source, target, given, facts, named) if named else None
        if asked and isinstance(verdict := _solved(*asked, min(resources, RESOURCES_OF_A_HINT)), Proved):
            return verdict
    if is_elementwise(*source, *target) and _holds_for_elements(source, target, given, facts, resources):
        return Proved(elements_laws(*source, *target))
    verdict = _by_laws(source, target, given, facts, resources)
    tried = isinstance(verdict, Proved) or is_elementwise(*source, *target)
    if not tried and _holds_for_elements(source, target, given, facts, resources):
        return Proved(elements_laws(*source, *target))
    return verdict


def _holds_for_elements(
    source: Sequence[Term], target: Sequence[Term], given: Sequence[Condition], facts: Sequence[Fact], resources: int
) -> bool:
    asked = elements_problem(source, target, given, facts)
    return asked is not None and solved(asked, resources)


def _by_laws(
    source: Sequence[Term], target: Sequence[Term], given: Sequence[Condition], facts: Sequence[Fact], resources: int
) -> Proved | Unknown:
    scope = scope_of(*source, *target)
    verdict = _solved(*problem(source, target, given, facts, laws_in(scope)), resources)
    if isinstance(verdict, Proved) or (wide := widened(scope)) == scope:
        return verdict
    return _solved(*problem(source, target, given, facts, laws_in(wide)), resources)


def _solved(tracked: list[tuple[str, Any]], theory: list[Any], resources: int) -> Proved | Unknown:
    context = CONTEXTS.fresh()
    solver = Z3.SimpleSolver(ctx=context)
    for setting, value in (*SETTINGS.items(), ("rlimit", resources), ("unsat_core", True)):
        solver.set(setting, value)
    labels = [_label(i) for i in range(len(tracked))]
    moved = Z3.AstVector()
    for formula in [*theory, *(axiom for _, axiom in tracked), *labels]:
        moved.push(formula)
    _assert(solver, moved.translate(context), len(theory), len(tracked))
    if solver.check() == Z3.unsat:
        core = {literal.decl().name() for literal in solver.unsat_core()}
        return Proved(tuple(sorted({name for i, (name, _) in enumerate(tracked) if f"law{i}" in core})))
    return Unknown(f"the laws do not tell: {str(solver.reason_unknown()).strip('()')}")


def smtlib(
    source: Sequence[Term],
    target: Sequence[Term],
    given: Sequence[Condition] = (),
    facts: Sequence[Fact] = (),
    by: Sequence[str] = (),
) -> str:
    """What the solver is asked, as SMT-LIB 2: `unsat` is a proof. Axioms go by the names of their laws.

    What was proved `by` elements, or is made of nothing else, is asked of these.
    """
    elements = elements_problem(source, target, given, facts)
    if elements is not None and (is_elementwise(*source, *target) or set(by) & set(elements_laws(*source, *target))):
        return f"{elements}(check-sat)\n"
    laws = laws_in(widened(scope_of(*source, *target)))
    tracked, theory = problem(source, target, given, facts, laws)
    solver, names = Z3.SimpleSolver(), [f"{name}/{i}" for i, (name, _) in enumerate(tracked)]
    solver.add(theory)
    for name, (_, axiom) in zip(names, tracked, strict=True):
        solver.assert_and_track(axiom, name)
    asked = str(solver.to_smt2()).replace("(check-sat)", f"(check-sat-assuming ({' '.join(names)}))")
    settings = {"auto_config": False, **{f"smt.{name}": value for name, value in SETTINGS.items()}}
    return "".join(f"(set-option :{k} {str(v).lower()})\n" for k, v in settings.items()) + asked


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


def _assert(solver: Any, formulas: Any, plain: int, tracked: int) -> None:
    """Assert the first `plain` formulas, and then the `tracked`, whose labels follow them.

    By the functions under z3's classes, which would make an object for each formula: that took a tenth of a proof.
    """
    context = solver.ctx.ref()
    formula = [Z3.Z3_ast_vector_get(context, formulas.vector, i) for i in range(plain + 2 * tracked)]
    for i in range(plain):
        Z3.Z3_solver_assert(context, solver.solver, formula[i])
    for i in range(plain, plain + tracked):
        Z3.Z3_solver_assert_and_track(context, solver.solver, formula[i], formula[i + tracked])


@cache
def _label(number: int) -> Any:
    return Z3.Bool(f"law{number}")


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


_axioms: dict[Law, list[Any]] = {}


def law_axioms(law: Law) -> list[Any]:
    """A law for the solver: guarded by what makes both sides well formed, once for each side that can trigger it."""
    if law not in _axioms:
        with assuming():
            _axioms[law] = [
                a for a in (_triggered(law, law.left, law.right), _triggered(law, law.right, law.left)) if a is not None
            ]
    return _axioms[law]


def _triggered(law: Law, side: Term, other: Term) -> Any | None:
    """The law, instantiated wherever `side` occurs: None where it does not bind all that the law speaks of.

    In the trigger every size that is an expression becomes a fresh integer, bound by the match and equated in the
    guard, since matching knows nothing of arithmetic.
    """
    if side.is_variable or not set(variables(other)) <= set(variables(side)):
        return None
    tensors = {v: Z3.Const(f"?{v.label}", sort(v.type.rank)) for v in variables(side)}
    ints: dict[str, Any] = {}
    guard: list[Any] = []
    later: list[tuple[Any, Dim]] = []
    for v, c in tensors.items():
        for axis, dim in enumerate(v.shape):
            size, name = size_function(v.type.rank, axis)(c), symbol_name(dim)
            if name is None or name in ints:
                later.append((size, dim))
            else:
                ints[name] = size
    bound: list[Any] = []
    pattern = _pattern(side, tensors, ints, bound, guard, later)
    if pattern is None or not set(all_symbols(side, other)) <= set(ints):
        return None
    right = encode_term(other, tensors, ints)
    guard += [well_formed(side.type.rank)(pattern), well_formed(other.type.rank)(right)]
    guard += [encode_condition(c, ints) for c in law.conditions]
    guard += [fact(f.kind, f.of.type.rank)(tensors[f.of]) for f in law.facts]
    body = Z3.Implies(Z3.And(guard), pattern == right)
    return Z3.ForAll([*tensors.values(), *bound], body, patterns=[pattern])


def _pattern(
    term: Term,
    tensors: dict[Term, Any],
    ints: dict[str, Any],
    bound: list[Any],
    guard: list[Any],
    later: list[tuple[Any, Dim]],
) -> Any | None:
    """`term` with a bound integer for every size; equations that are not yet expressible are settled at the end."""

    def build(t: Term) -> Any:
        if t in tensors:
            return tensors[t]
        inputs = [build(i) for i in t.inputs]
        arguments = []
        for dim in t.operator.sizes():  # type: ignore[attr-defined]
            fresh = Z3.Int(f"e{len(bound)}")
            bound.append(fresh)
            arguments.append(fresh)
            name = symbol_name(dim)
            if name is not None and name not in ints:
                ints[name] = fresh
            else:
                later.append((fresh, dim))
        return function(head_of(t))(*arguments, *inputs) if arguments or inputs else function(head_of(t))

    pattern = build(term)
    for fresh, dim in later:
        if not symbols(dim) <= set(ints):
            return None
        guard.append(fresh == encode_dim(dim, ints))
    return pattern
