"""Attention by heads is folded whatever takes its heads apart, what shares them, and what sizes are."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate_all, sample
from superopt.operators.attention.dot_product import MaskedAttention
from superopt.operators.constant import filled
from superopt.operators.definitions.spellings import attention_cleared
from superopt.operators.layout import Transpose
from superopt.operators.logic import Where
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Softmax
from superopt.operators.reader import read_term
from superopt.term import TRUTH, variable
from superopt.text import read
from tests.search.folding import folded, named, rules_in, terms

HEADS = """
(rule heads-apart-and-joined (given (?q b m 12) (?k b r 12) (?v b r 8))
  (from (reshape (b m 8) (transpose (0 2 1 3) (attention :scale 0.5
    (transpose (0 2 1 3) (reshape (b m 4 3) ?q))
    (transpose (0 2 1 3) (reshape (b r 4 3) ?k))
    (transpose (0 2 1 3) (reshape (b r 4 2) ?v))))))
  (to (attention_of_rows 4 :scale 0.5 ?q ?k ?v)))
(rule keys-transposed-at-once (given (?q b m 12) (?k b r 12) (?v b r 8))
  (from (reshape (b m 8) (transpose (0 2 1 3) (matmul (softmax 3 (matmul
    (mul (transpose (0 2 1 3) (reshape (b m 4 3) ?q)) (expand () (scalar 0.5)))
    (transpose (0 2 3 1) (reshape (b r 4 3) ?k))))
    (transpose (0 2 1 3) (reshape (b r 4 2) ?v))))))
  (to (attention_of_rows 4 :scale 0.5 ?q ?k ?v)))
"""

FLAT_HEADS = """
(rule rows-of-all-batches (given (?q 15 12) (?k 21 12) (?v 21 8))
  (from (reshape (15 8) (transpose (0 2 1 3) (matmul (softmax 3 (mul (matmul
    (transpose (0 2 1 3) (reshape (3 5 4 3) ?q))
    (transpose (0 2 3 1) (reshape (3 7 4 3) ?k))) (expand () (scalar 0.5))))
    (transpose (0 2 1 3) (reshape (3 7 4 2) ?v))))))
  (to (attention_of_flat_rows 4 3 :scale 0.5 ?q ?k ?v)))
(rule rows-of-one-batch (given (?q 5 12) (?k 7 12) (?v 7 8))
  (from (reshape (5 8) (transpose (0 2 1 3) (attention :scale 0.5
    (transpose (0 2 1 3) (reshape (1 5 4 3) ?q))
    (transpose (0 2 1 3) (reshape (1 7 4 3) ?k))
    (transpose (0 2 1 3) (reshape (1 7 4 2) ?v))))))
  (to (attention_of_flat_rows 4 1 :scale 0.5 ?q ?k ?v)))
(rule rows-of-all-batches-with-a-mask (given (?q 15 12) (?k 21 12) (?v 21 8) (?m 3 4 5 7))
  (from (reshape (15 8) (transpose (0 2 1 3) (masked_attention :scale 0.5
    (transpose (0 2 1 3) (reshape (3 5 4 3) ?q))
    (transpose (0 2 1 3) (reshape (3 7 4 3) ?k))
    (transpose (0 2 1 3) (reshape (3 7 4 2) ?v)) ?m))))
  (to (masked_attention_of_flat_rows 4 3 :scale 0.5 ?q ?k ?v ?m)))
"""

GROUPS = """
(rule shared-keys-repeated-and-transposed (given (?q b 6 m c) (?k b 2 r c) (?v b 2 r d))
  (from (matmul (softmax 3 (mul (matmul ?q (transpose (0 1 3 2)
    (reshape (b 6 r c) (expand (0 1 3 4) (b 2 3 r c) ?k)))) (expand () (scalar 0.5))))
    (reshape (b 6 r d) (expand (0 1 3 4) (b 2 3 r d) ?v))))
  (to (grouped_attention :scale 0.5 ?q ?k ?v)))
"""

OTHER_GROUPS = """
(rule groups-over-and-over (given (?q b 6 m c) (?k b 2 r c) (?v b 2 r d))
  (from (matmul (softmax 3 (mul (matmul ?q (transpose (0 1 3 2)
    (reshape (b 6 r c) (expand (0 2 3 4) (b 3 2 r c) ?k)))) (expand () (scalar 0.5))))
    (reshape (b 6 r d) (expand (0 2 3 4) (b 3 2 r d) ?v))))
  (to ?v))
"""

OTHER_HEADS = """
(rule joined-otherwise (given (?q b m 12) (?k b r 12) (?v b r 8))
  (from (reshape (b m 8) (transpose (0 2 3 1) (attention :scale 0.5
    (transpose (0 2 1 3) (reshape (b m 4 3) ?q))
    (transpose (0 2 1 3) (reshape (b r 4 3) ?k))
    (transpose (0 2 1 3) (reshape (b r 4 2) ?v))))))
  (to ?v))
(rule taken-apart-otherwise (given (?q b m 12) (?k b r 12) (?v b r 8))
  (from (reshape (b m 8) (transpose (0 2 1 3) (attention :scale 0.5
    (transpose (0 2 1 3) (reshape (b m 4 3) ?q))
    (transpose (0 3 1 2) (reshape (b r 3 4) ?k))
    (transpose (0 2 1 3) (reshape (b r 4 2) ?v))))))
  (to ?v))
"""


@pytest.mark.parametrize("text", rules_in(HEADS), ids=named)
def test_how_many_heads_there_are_is_read_from_what_takes_them_apart(text: str) -> None:
    before, after = terms(text)
    assert after in folded(before, "attention_of_rows")


@pytest.mark.parametrize("text", rules_in(FLAT_HEADS), ids=named)
def test_how_many_batches_stand_below_each_other_is_read_too(text: str) -> None:
    before, after = terms(text)
    assert after in folded(before, after.operator.name)


@pytest.mark.parametrize("text", rules_in(GROUPS), ids=named)
def test_keys_that_are_repeated_for_several_heads_are_shared(text: str) -> None:
    before, after = terms(text)
    assert after in folded(before, "grouped_attention")


@pytest.mark.parametrize("text", rules_in(OTHER_GROUPS), ids=named)
def test_keys_that_are_repeated_otherwise_are_not_shared(text: str) -> None:
    before, _ = terms(text)
    assert folded(before, "grouped_attention") == []


@pytest.mark.parametrize("text", rules_in(OTHER_HEADS), ids=named)
def test_heads_that_are_taken_apart_otherwise_do_not_fold(text: str) -> None:
    before, _ = terms(text)
    assert folded(before, "attention_of_rows") == []


def test_what_torch_clears_in_a_row_that_attends_to_nothing_attention_clears_too() -> None:
    q, m = variable("q", (1, 2, 3, 4), "float32"), variable("m", (1, 2, 3, 3), "float32")
    before = attention_cleared(MaskedAttention(1.0), q, q, q, m)
    assert before is not None
    found = folded(before, "masked_attention of a sum, cleared")
    values = sample((before,), FLOAT, 0)
    values[m] = np.where(np.arange(3)[:, None] == 1, -np.inf, 0.0) + np.zeros((1, 2, 3, 3))
    with np.errstate(all="ignore"):
        expected, *others = evaluate_all((before, *found), FLOAT, values)
    assert [t.operator.name for t in found] == ["masked_attention"]
    assert not expected[:, :, 1].any()
    for other in others:
        np.testing.assert_allclose(other, expected, rtol=1e-6, atol=1e-7)


def test_a_mask_that_chooses_does_not_fold_where_a_row_may_attend_to_nothing() -> None:
    q, m = variable("q", (1, 2, 3, 4), "float32"), variable("m", (1, 2, 3, 3), TRUTH)
    scores = MatMul()(q, Transpose((0, 1, 3, 2))(q))
    lowest = filled(float(np.finfo("float32").min), scores.shape)
    assert folded(MatMul()(Softmax(3)(Where()(m, scores, lowest)), q), "masked_attention") == []


def test_sizes_that_symbols_leave_open_do_not_end_what_is_looked_for() -> None:
    """Keys are wanted among values that are as many heads of as many rows, whichever of both is more."""
    names = {"x": variable("x", (symbol("n"), symbol("s"), 8)), "y": variable("y", (symbol("n"), symbol("s"), 8))}
    names["z"] = variable("z", (symbol("n"), 4 * symbol("s"), 2))
    (sexp,) = read(
        """(matmul (softmax 3 (mul (matmul (transpose (0 2 1 3) (reshape (n s 4 2) ?x))
          (transpose (0 2 3 1) (reshape (n s 4 2) ?y))) (expand () (n 4 s s) (scalar 0.5)))) (reshape (n 4 s 2) ?z))"""
    )
    with assuming():
        assert [t.operator.name for t in folded(read_term(sexp, names), "attention")] == ["attention"]
