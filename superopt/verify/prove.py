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

from superopt.dim import Condition
from superopt.operators.laws.collected import Law, laws_in, scope_of, widened
from superopt.term import Fact, Term
from superopt.verify.contexts import CONTEXTS
from superopt.verify.elements import elements_laws, elements_problem, is_elementwise, solved
from superopt.verify.function_symbols import Z3
from superopt.verify.problem import problem

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
