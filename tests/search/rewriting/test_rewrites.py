"""Where rewrites apply: rules of one output and of several, and definitions."""

from __future__ import annotations

import itertools

import pytest

from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import FURTHER_DEFINITIONS, Meaning
from superopt.operators.normalize import Lrn
from superopt.operators.pointwise import Add, Mul, Relu, Sqrt
from superopt.rules.format import load_rules, parse_file
from superopt.rules.idle import is_idle
from superopt.rules.index import Index
from superopt.rules.rule import Rule
from superopt.search.rewriting.finders import FINDERS
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import ByRule, Rewrite, Unfold, rewrites_of
from superopt.search.rewriting.window import is_leaf
from superopt.search.strategies.space import applied
from superopt.shipped import shipped_rules
from superopt.term import Graph, Term, make, subterms, variable, variables
from superopt.verify.check import verify
from superopt.verify.prove import Proved

SHARE = """
(rule matmul-share-left
  (given (?a m k) (?b k n) (?c k r))
  (from (matmul ?a ?b) (matmul ?a ?c))
  (where (?w (matmul ?a (concat 1 ?b ?c))))
  (to (slice 1 0 n ?w) (slice 1 n (+ n r) ?w)))
"""


def rule(text: str) -> Rule:
    (parsed,) = parse_file(text).rules
    return parsed


def matrix(label: str, *shape: Dim, constant: bool = False) -> Term:
    return variable(label, shape, "float32", constant)


def graph(*outputs: Term) -> Graph:
    return Graph(tuple(variables(*outputs)), outputs)


def results(text: str, start: Graph) -> list[Graph]:
    return all_results(ByRule(rule(text)), start)


def all_results(rewrite: Rewrite, start: Graph) -> list[Graph]:
    return [applied(start, application.new) for application in Matching([rewrite]).applications(start)]


def test_a_rule_of_two_outputs_makes_two_products_one() -> None:
    assert isinstance(verify(rule(SHARE)), Proved)
    a, b, c = matrix("a", 4, 5), matrix("b", 5, 6), matrix("c", 5, 7)
    left, right = results(SHARE, graph(MatMul()(a, b), Relu()(MatMul()(a, c))))
    for found in (left, right):
        assert [t.operator.name for t in subterms(*found.outputs)].count("matmul") == 1
        assert [o.shape for o in found.outputs] == [(4, 6), (4, 7)]


def test_a_rule_of_two_outputs_refuses_to_close_a_cycle() -> None:
    """The second product reads the first: both cannot be parts of one."""
    a, b = matrix("a", 4, 4), matrix("b", 4, 4)
    first = MatMul()(a, b)
    assert results(SHARE, graph(MatMul()(a, Relu()(first)))) == []


def test_a_rule_of_two_outputs_needs_two_places() -> None:
    assert results(SHARE, graph(MatMul()(matrix("a", 4, 5), matrix("b", 5, 6)))) == []


def test_sources_that_others_still_read_stay() -> None:
    x = matrix("x", 2, 3)
    inner = Relu()(x)
    start = graph(Relu()(inner), Add()(inner, inner))
    text = "(rule r (given (?x n c)) (from (relu (relu ?x))) (to (relu ?x)))"
    (found,) = results(text, start)
    assert found.outputs == (inner, Add()(inner, inner))


def test_a_rule_applies_at_every_place() -> None:
    x, y = matrix("x", 2, 3), matrix("y", 2, 3)
    text = "(rule r (given (?x n c) (?y n c)) (from (relu (add ?x ?y))) (to (relu (add ?y ?x))))"
    start = graph(Relu()(Add()(x, y)), Relu()(Add()(y, y)))
    assert {found.outputs for found in results(text, start)} >= {(Relu()(Add()(y, x)), start.outputs[1])}


def test_constants_are_left_to_folding() -> None:
    w = matrix("w", 3, 3, constant=True)
    text = "(rule r (given (?x n c)) (from (relu (relu ?x))) (to (relu ?x)))"
    assert results(text, graph(MatMul()(matrix("x", 2, 3), Relu()(Relu()(w))))) == []


def test_a_definition_unfolds_at_symbolic_sizes_too() -> None:
    n, side = symbol("N"), symbol("side")
    seen = 0
    for shape in ((1, 8, 5, 5), (n, 8, side, side)):
        start = graph(Lrn(5)(variable("x", shape, "float32")))
        for found in all_results(Unfold("lrn"), start):
            seen += 1
            assert "lrn" not in {t.operator.name for t in subterms(*found.outputs)}
            assert found.outputs[0].type == start.outputs[0].type
    assert seen >= 2


def test_a_definition_that_asks_what_symbolic_sizes_leave_open_does_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    def asking(op: Declared, x: Term) -> Term | None:
        return x if x.shape[0] == 1 else None

    monkeypatch.setitem(FURTHER_DEFINITIONS, "relu of one", Meaning("relu", asking))
    found = [list(Unfold("relu of one").at((Relu()(variable("x", (size, 3))),))) for size in (1, 2, symbol("n"))]
    assert [len(f) for f in found] == [1, 0, 0]


def test_a_definition_whose_term_these_inputs_do_not_fit_does_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    times_itself = Meaning("relu", lambda op, x: MatMul()(x, x))
    monkeypatch.setitem(FURTHER_DEFINITIONS, "relu of squares", times_itself)
    found = [list(Unfold("relu of squares").at((Relu()(variable("x", (2, n))),))) for n in (2, 3)]
    assert list(map(len, found)) == [1, 0]


def test_what_stands_above_a_rewrite_is_made_anew_at_symbolic_sizes() -> None:
    n, side = symbol("N"), symbol("side")
    x, k = variable("x", (n, 2, side, side), "float32"), variable("k", (2, 2, 3, 3), "float32", constant=True)
    with assuming():
        above = Conv()(Relu()(Relu()(x)), k)
    text = "(rule r (given (?x n c h w)) (from (relu (relu ?x))) (to (relu ?x)))"
    (found,) = results(text, graph(above))
    assert found.outputs[0].type == above.type
    assert [t.operator.name for t in subterms(*found.outputs)].count("relu") == 1


def test_definitions_come_before_rules() -> None:
    kinds = [r.known for r in rewrites_of([rule(SHARE)], ["lrn", "batchnorm"])]
    # Two forwards and backwards, what is alike, and what looks for less.
    assert kinds == ["definition"] * (5 + len(FINDERS)) + ["proved"]


def test_the_index_finds_every_rule_at_its_own_source() -> None:
    """Also with the inputs of a commutative operator swapped."""
    shipped = rewrites_of([r for path in shipped_rules() for r in load_rules(path).rules], [])
    assert len(shipped) > 1000
    index: Index[str] = Index(is_leaf)
    for r in shipped:
        index.insert(r.patterns[0], r.name)
    for r in shipped:
        first = r.patterns[0]
        assert r.name in index.fitting(first)
        if isinstance(first.operator, Declared) and first.operator.commutative:
            with assuming():
                assert r.name in index.fitting(make(first.operator, first.inputs[::-1]))


def test_what_was_found_at_a_term_is_found_again() -> None:
    x = matrix("x", 2, 3)
    text = "(rule r (given (?x n c)) (from (relu (relu ?x))) (to (relu ?x)))"
    start, seen = graph(Relu()(Relu()(x))), Matching([ByRule(rule(text))])
    first, second = (list(seen.applications(start)) for _ in range(2))
    assert first == second
    assert len(first) == 1


def test_the_index_knows_what_a_pattern_names_twice() -> None:
    x, y = matrix("x", 2, 3), matrix("y", 2, 3)
    index: Index[str] = Index(is_leaf)
    index.insert(rule("(rule r (given (?x n c) (?y n c)) (from (add ?x (mul ?y ?x))) (to (add ?x ?y)))").source[0], "r")
    for term in (Add()(x, Mul()(y, x)), Add()(Mul()(x, y), x), Add()(x, Mul()(x, x))):
        assert index.fitting(term) == ["r"]
    assert index.fitting(Add()(x, Mul()(y, y))) == []


def test_the_index_is_asked_for_what_came_since() -> None:
    x = matrix("x", 2, 3)
    index: Index[str] = Index()
    for name in ("first", "second", "third"):
        index.insert(Relu()(x), name)
    index.insert(Sqrt()(x), "another")
    assert [index.fitting(Relu()(x), since=n) for n in range(5)] == [
        ["first", "second", "third"],
        ["second", "third"],
        ["third"],
        [],
        [],
    ]


def test_of_rewrites_together_none_needs_another() -> None:
    """Replaced together, terms of which one is computed from another would close a cycle."""
    x = matrix("x", 2, 3)
    both = "(rule r (given (?x n c) (?y n c)) (from (relu ?x) (relu ?y)) (to (relu ?y) (relu ?x)))"
    chain = graph(Relu()(Relu()(x)))
    aside = graph(Relu()(x), Relu()(Sqrt()(x)))
    found = [[a.roots for a in Matching([ByRule(rule(both))]).applications(g)] for g in (chain, aside)]
    assert found[0] == []
    assert sorted(found[1], key=repr) == sorted(itertools.permutations(aside.outputs), key=repr)


def test_without_definitions_nothing_is_computed_side_by_side() -> None:
    assert [r.known for r in rewrites_of([rule(SHARE)], [])] == ["proved"]


def test_no_rule_is_a_rewrite_that_is_idle_and_what_merges_enlarged_kernels_is_one() -> None:
    rules = next(load_rules(path).rules for path in shipped_rules() if path.stem == "enlarged")
    searched = {rewrite.name for rewrite in rewrites_of(rules, [])}
    left_out = {r.name for r in rules} - searched
    assert left_out == {r.name for r in rules if is_idle(r)}
    assert any(name.startswith("conv-to-conv-pad") for name in left_out)
    assert any(name.startswith("add-conv-conv-to-conv-add-pad") for name in searched)


def test_an_identity_of_a_size_that_is_a_symbol_is_not_made() -> None:
    text = "(rule r (given (?x n c)) (from (relu ?x)) (to (matmul ?x (band c))))"
    made = [results(text, graph(Relu()(matrix("x", 2, size)))) for size in (3, symbol("c"))]
    assert [len(found) for found in made] == [1, 0]
