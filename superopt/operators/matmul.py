"""The matrix product."""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape, product
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand, common_shape, reshaped
from superopt.operators.nodes import Source, present
from superopt.relations import is_one
from superopt.term import Term, make


@operator("matmul", onnx="MatMul")
class MatMul(Declared):
    """`z[m,n] = Σ_k x[m,k] · y[k,n]`, with equal batch axes before them."""

    keeps = frozenset({"nonnegative"})
    of_weights = True
    linear = (0, 1)
    zero = True
    named_axes = "m k, k n -> m n"
    batched = True
    laws = """
    (law matmul-assoc (given (?x m k) (?y k n) (?z n r))
      (= (matmul (matmul ?x ?y) ?z) (matmul ?x (matmul ?y ?z))))
    (law matmul-assoc (given (?x b m k) (?y b k n) (?z b n r))
      (= (matmul (matmul ?x ?y) ?z) (matmul ?x (matmul ?y ?z))))
    (law matmul-assoc (given (?x b h m k) (?y b h k n) (?z b h n r))
      (= (matmul (matmul ?x ?y) ?z) (matmul ?x (matmul ?y ?z))))
    (law matmul-number (given (?x m k) (?a))
      (= (matmul ?x (expand () (k n) ?a)) (mul (expand (0) (m n) (sum (1) ?x)) (expand () (m n) ?a))))
    (law number-matmul (given (?x k n) (?a))
      (= (matmul (expand () (m k) ?a) ?x) (mul (expand (1) (m n) (sum (0) ?x)) (expand () (m n) ?a))))
    (law matmul-identity (given (?x m n)) (= (matmul ?x (band n)) ?x))
    (law identity-matmul (given (?x m n)) (= (matmul (band m) ?x) ?x))
    (law matmul-transpose (given (?x m k) (?y k n))
      (= (transpose (1 0) (matmul ?x ?y)) (matmul (transpose (1 0) ?y) (transpose (1 0) ?x))))
    (law matmul-transpose (given (?x b m k) (?y b k n))
      (= (transpose (0 2 1) (matmul ?x ?y)) (matmul (transpose (0 2 1) ?y) (transpose (0 2 1) ?x))))
    (law matmul-transpose (given (?x b h m k) (?y b h k n))
      (= (transpose (0 1 3 2) (matmul ?x ?y)) (matmul (transpose (0 1 3 2) ?y) (transpose (0 1 3 2) ?x))))
    (law matmul-rows (given (?x b m k) (?y k n))
      (= (reshape (r n) (matmul ?x (expand (1 2) (b k n) ?y))) (matmul (reshape (r k) ?x) ?y)))
    (law matmul-rows (given (?x b h m k) (?y k n))
      (= (reshape (r n) (matmul ?x (expand (2 3) (b h k n) ?y))) (matmul (reshape (r k) ?x) ?y)))
    (law matmul-stacks (given (?x r k) (?y k n))
      (= (reshape (b m n) (matmul ?x ?y)) (matmul (reshape (b m k) ?x) (expand (1 2) (b k n) ?y))))
    (law matmul-stacks (given (?x r k) (?y k n))
      (= (reshape (b h m n) (matmul ?x ?y)) (matmul (reshape (b h m k) ?x) (expand (2 3) (b h k n) ?y))))
    """

    def shape(self, x: Shape, y: Shape) -> Shape:  # type: ignore[override]
        """Rows of the one, columns of the other."""
        require(len(x) == len(y) >= 2, f"matmul: ranks differ or are below 2: {x} and {y}")
        require(x[-1] == y[-2], f"matmul: inner sizes differ: {x} and {y}")
        for a, b in zip(x[:-2], y[:-2], strict=True):
            require(a == b, f"matmul: batch sizes differ: {x} and {y}")
        return (*x[:-1], y[-1])

    def eval(self, ring: Carrier, x: Array, y: Array) -> Array:  # type: ignore[override]
        """The product."""
        return ring.matmul(x, y)

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """A multiplication and an addition for each term of each sum."""
        return 2 * product(result) * shapes[0][-1]

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """Batch axes are broadcast; a vector is a row on the left, a column on the right, and gone from the result."""
        x, y = present(node.inputs, 2)
        row, column = x.type.rank == 1, y.type.rank == 1
        x = reshaped(x, (1, *x.shape)) if row else x
        y = reshaped(y, (*y.shape, 1)) if column else y
        batch = common_shape([x.shape[:-2], y.shape[:-2]])
        z = make(cls(), (_with_batch(x, batch), _with_batch(y, batch)))
        kept = [d for d, gone in zip(z.shape[-2:], (row, column), strict=True) if not gone]
        return reshaped(z, (*z.shape[:-2], *kept))


def _with_batch(x: Term, batch: Shape) -> Term:
    """A stack of matrices repeated along batch axes; those of size 1 that are repeated are dropped first."""
    to = (*batch, *x.shape[-2:])
    offset = len(to) - x.type.rank
    kept = [a for a, d in enumerate(x.shape) if a >= x.type.rank - 2 or not is_one(d) or is_one(to[a + offset])]
    if not offset and len(kept) == x.type.rank:
        return x
    return make(Expand(tuple(a + offset for a in kept), to), (reshaped(x, tuple(x.shape[a] for a in kept)),))
