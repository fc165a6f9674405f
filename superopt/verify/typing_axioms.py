"""What the solver is told of operators: when an application is well formed, its sizes, and facts of its elements.

What is well formed is stated as an *equivalence*: an application is well formed exactly when its inputs are and its
shape rule's condition holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from superopt.demands import assuming
from superopt.dim import Condition, symbol
from superopt.operators.declared import Declared
from superopt.operators.facts import given_facts
from superopt.term import Term, Type, variable
from superopt.verify.encode import encode_condition, encode_dim
from superopt.verify.function_symbols import Z3, Head, Ints, applied, fact, head_of, size_function, sort, well_formed


def fact_axioms(example: Term) -> list[Any]:
    """What is known of the elements of what the example's operator gives: always, or where it is of its inputs."""
    head, op = head_of(example), example.operator
    assert isinstance(op, Declared)
    if head not in _facts:
        arguments = [Z3.Int(f"a{i}") for i in range(head.sizes)]
        inputs = [Z3.Const(f"x{i}", sort(r)) for i, r in enumerate(head.ranks)]
        whole = applied(head, [*arguments, *inputs])
        bodies = [fact(kind, head.rank)(whole) for kind in sorted(given_facts(op))]
        for kind in sorted(op.keeps) if inputs else ():
            known = [fact(kind, rank)(x) for rank, x in zip(head.ranks, inputs, strict=True)]
            bodies.append(Z3.Implies(Z3.And(known), fact(kind, head.rank)(whole)))
        _facts[head] = [_everywhere([*arguments, *inputs], body, whole) for body in bodies]
    return _facts[head]


_facts: dict[Head, list[Any]] = {}


def _everywhere(arguments: list[Any], body: Any, trigger: Any) -> Any:
    return Z3.ForAll(arguments, body, patterns=[trigger]) if arguments else body


def typing_axiom(example: Term) -> Any:
    """When an application of the example's operator is well formed (an equivalence), and which sizes it then has."""
    return _typing_axiom(head_of(example), type(example.operator), example.operator)


_typing: dict[Head, Any] = {}


def _typing_axiom(head: Head, cls: type, op: Any) -> Any:
    if head not in _typing:
        names = [f"a{i}" for i in range(head.sizes)]
        inputs = [variable(f"x{i}", [symbol(f"x{i}_{j}") for j in range(r)]) for i, r in enumerate(head.ranks)]
        general = op.with_sizes([symbol(n) for n in names])
        with assuming() as conditions:
            type_: Type = general.type_of(tuple(i.type for i in inputs))
        tensors = {v: Z3.Const(v.label, sort(v.type.rank)) for v in inputs}
        ints = {n: Z3.Int(n) for n in names}
        ints |= {
            f"x{i}_{j}": size_function(r, j)(tensors[inputs[i]]) for i, r in enumerate(head.ranks) for j in range(r)
        }
        _typing[head] = _equivalence(head, tensors, ints, names, conditions, type_)
    return _typing[head]


def _equivalence(
    head: Head, tensors: Mapping[Term, Any], ints: Ints, names: list[str], conditions: list[Condition], type_: Type
) -> Any:
    arguments = [*(ints[n] for n in names), *tensors.values()]
    whole = applied(head, arguments)
    good = [well_formed(v.type.rank)(c) for v, c in tensors.items()] + [encode_condition(c, ints) for c in conditions]
    sizes = [size_function(head.rank, j)(whole) == encode_dim(d, ints) for j, d in enumerate(type_.shape)]
    wf = well_formed(head.rank)(whole)
    body = Z3.And(wf == Z3.And(good), Z3.Implies(wf, Z3.And(sizes)))
    return _everywhere(arguments, body, whole)
