"""Multi-linear contractions: matrix product and convolution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape, at_most, equal, product
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand, common_shape, reshaped
from superopt.operators.nodes import NotUnderstood, Source, concrete, present
from superopt.operators.pointwise import Add
from superopt.relations import divides, is_one
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


_BLOCK = 2**19
"""How many elements of windows are laid out at a time: 4 MB."""


@operator("conv", onnx="Conv")
class Conv(Declared):
    """`y[n,o,p,q] = Σ_cij x[n,c,p·s+i·d,q·s+j·d] · k[o,c,i,j]`, zero padded; channels fall into groups."""

    keeps = frozenset({"nonnegative"})
    linear = (0, 1)
    zero = True
    named_axes = "n c (h) (w), o c (i) (j) -> n o (h) (w)"
    undivided = {"c": {"group": 1}, "o": {"group": 1}}  # noqa: RUF012 - a constant table
    laws = """
    (law conv-pad (given (?x n c h w) (?k o e i j))
      (= (conv :strides (s t) :pads (p q u v) :dilations (d f) :group g (pad (0 0 a b 0 0 y z) ?x) ?k)
         (conv :strides (s t) :pads ((+ p a) (+ q b) (+ u y) (+ v z)) :dilations (d f) :group g ?x ?k)))
    (law conv-enlarge (given (?x n c h w) (?k o e i j))
      (= (conv :strides (s t) :pads (p q u v) :dilations (d f) :group g ?x (pad (0 0 a b 0 0 y z) ?k))
         (conv :strides (s t) :pads ((- p (* d a)) (- q (* f b)) (- u (* d y)) (- v (* f z))) :dilations (d f) :group g
           ?x ?k)))
    (law conv-point-pad (given (?x n c h w) (?k o d 1 1))
      (= (conv :group g (pad (0 0 a b 0 0 y z) ?x) ?k) (pad (0 0 a b 0 0 y z) (conv :group g ?x ?k))))
    (law conv-shuffle (given (?x n c h w) (?k o (* a b) i j)) (if (= c (* a b)))
      (= (conv :strides (s t) :pads (p q u v) :dilations (d f)
           (reshape (n (* b a) h w) (transpose (0 2 1 3 4) (reshape (n a b h w) ?x))) ?k)
         (conv :strides (s t) :pads (p q u v) :dilations (d f)
           ?x (reshape (o (* a b) i j) (transpose (0 2 1 3 4) (reshape (o b a i j) ?k))))))
    (law shuffle-conv (given (?x n c h w) (?k (* a b) c i j))
      (if (= y (+ (div (+ h p u d (* -1 d i) -1) s) 1)) (= z (+ (div (+ w q v f (* -1 f j) -1) t) 1)))
      (= (reshape (n (* b a) y z) (transpose (0 2 1 3 4) (reshape (n a b y z)
           (conv :strides (s t) :pads (p q u v) :dilations (d f) ?x ?k))))
         (conv :strides (s t) :pads (p q u v) :dilations (d f)
           ?x (reshape ((* b a) c i j) (transpose (1 0 2 3 4) (reshape (a b c i j) ?k))))))
    (law conv-point-repeat (given (?x n c h w) (?k o d 1 1))
      (= (conv :group g (reshape (n c (* h a) (* w b)) (expand (0 2 4 6) (n 1 c 1 h a w b) ?x)) ?k)
         (reshape (n o (* h a) (* w b)) (expand (0 2 4 6) (n 1 o 1 h a w b) (conv :group g ?x ?k)))))
    (law conv-point-slice (given (?x n c h w) (?k o d 1 1))
      (= (conv :group g (slice 2 start stop ?x) ?k) (slice 2 start stop (conv :group g ?x ?k))))
    (law conv-point-slice (given (?x n c h w) (?k o d 1 1))
      (= (conv :group g (slice 3 start stop ?x) ?k) (slice 3 start stop (conv :group g ?x ?k))))
    (law conv-point-assoc (given (?x n c h w) (?k o c 1 1) (?l r o 1 1))
      (= (conv (conv ?x ?k) ?l) (conv ?x (reshape (r c 1 1) (matmul (reshape (r o) ?l) (reshape (o c) ?k))))))
    (law conv-point-pads (given (?x n c h w) (?k o d 1 1) (?l r m i j))
      (= (conv :strides (s t) :pads (p q u v) :dilations (e f) :group b (conv :group g ?x ?k) ?l)
         (conv :strides (s t) :dilations (e f) :group b (conv :pads (p q u v) :group g ?x ?k) ?l)))
    (law conv-point-strides (given (?x n c h w) (?l o d i j) (?k r m 1 1))
      (= (conv :strides (s t) :group b
           (conv :strides (y z) :pads (p q u v) :dilations (e f) :group g ?x ?l) ?k)
         (conv :group b
           (conv :strides ((* s y) (* t z)) :pads (p q u v) :dilations (e f) :group g ?x ?l) ?k)))
    (law conv-identity (given (?x n c h w)) (= (conv ?x (reshape (c c 1 1) (band c))) ?x))
    (law conv-identity (given (?x n c h w)) (= (conv :group c ?x (expand () (c 1 1 1) (scalar 1.0))) ?x))
    (law conv-groups (given (?x n a h w) (?k o c i j) (?y n b h w) (?l r c i j)) (if (= (* o e) (* r g)))
      (= (concat 1 (conv :strides (s t) :pads (p q u v) :dilations (d f) :group g ?x ?k)
                   (conv :strides (s t) :pads (p q u v) :dilations (d f) :group e ?y ?l))
         (conv :strides (s t) :pads (p q u v) :dilations (d f) :group (+ g e) (concat 1 ?x ?y) (concat 0 ?k ?l))))
    """
    strides: Shape = attr(default=(1, 1), size=True, least=1, sample=[(1, 1), (2, 2)], onnx="strides")
    pads: Shape = attr(default=(0, 0, 0, 0), size=True, sample=[(0, 0, 0, 0), (1, 1, 1, 1)], onnx="pads")
    dilations: Shape = attr(default=(1, 1), size=True, least=1, onnx="dilations")
    group: Dim = attr(default=1, size=True, least=1, onnx="group")

    def shape(self, x: Shape, k: Shape) -> Shape:  # type: ignore[override]
        """`⌊(h + pads − d·(i − 1) − 1) / s⌋ + 1` along each window axis, of which there are one to three."""
        axes = len(x) == len(k) and len(x) in (3, 4, 5)
        require(axes, f"conv: input and kernel have three to five axes each, not {x} and {k}")
        require(x[1] == k[1] * self.group, f"conv: channels differ: x is {x}, kernel is {k}, group {self.group}")
        require(divides(self.group, k[0]), f"conv: {k[0]} output channels do not fall into {self.group} groups")
        window = window_sizes("conv", x, k[2:], self.strides, self.pads, self.dilations)
        return (x[0], k[0], *window)

    def eval(self, ring: Carrier, x: Array, k: Array) -> Array:  # type: ignore[override]
        """Matrix products of the kernel and the windows, cut along their longest axis into what a cache holds."""
        group, n, o = self.group, x.shape[0], k.shape[0]
        assert isinstance(group, int)
        views = [v for _, v in windows(x, k.shape[2:], self.strides, self.pads, self.dilations, ring.constant(0))]
        kernel = k.reshape(1, group, o // group, -1).astype(np.result_type(x, k), copy=False)
        longest = max(range(2, x.ndim), key=lambda axis: views[0].shape[axis])
        count = views[0].shape[longest]
        step = count if len(views) == 1 else max(_BLOCK * count // max(views[0].size * len(views), 1), 1)
        whole: Array | None = None  # made once: beside all its parts it would be in memory twice
        laid_out: Array | None = None  # one for all blocks of a size: new memory takes as long as its copies
        for i in range(0, max(count, 1), step):
            block = [v[(slice(None),) * longest + (slice(i, i + step),)] for v in views]
            if len(block) > 1:
                fits = laid_out is not None and laid_out.shape[3:] == block[0].shape[2:]
                laid_out = columns = np.stack(block, axis=2, out=laid_out if fits else None)
            else:
                columns = block[0]
            size = block[0].shape[2:]
            part = ring.matmul(kernel, columns.reshape(n, group, kernel.shape[-1], math.prod(size)))
            if step >= count:
                return part.reshape(n, o, *size)
            whole = np.empty((n, o, *views[0].shape[2:]), part.dtype) if whole is None else whole
            whole[(slice(None),) * longest + (slice(i, i + step),)] = part.reshape(n, o, *size)
        assert whole is not None, "there is a block at least"
        return whole

    def flops(self, result: Shape, *shapes: Shape) -> Dim:
        """A multiplication and an addition for each place of the kernel and result."""
        return 2 * product(result) * product(shapes[1][1:])

    @classmethod
    def from_onnx(cls, node: Source) -> Term:
        """One to three window axes; the bias is an `add`."""
        x, k, bias = (*node.inputs, None)[:3]
        if x is None or k is None or x.type.rank not in (3, 4, 5):
            raise NotUnderstood("only convolutions with one to three window axes are declared")
        given, ones = node.attributes, (1,) * (x.type.rank - 2)
        strides, dilations = (tuple(given.get(n, ones)) for n in ("strides", "dilations"))
        pads = explicit_pads(node, x.shape, k.shape[2:], strides, dilations)
        group = int(given.get("group", 1))
        demand_kernel(node, k.shape[2:])
        y = make(cls(strides, pads, dilations, group), (x, k))
        return y if bias is None else make(Add(), (y, make(Expand((1,), y.shape), (bias,))))


def window_sizes(what: str, x: Shape, kernel: Shape, strides: Shape, pads: Shape, dilations: Shape) -> tuple[Dim, ...]:
    """How often a window fits along each axis after the first two. Raises `ShapeError` where it does not fit once."""
    axes = len(x) - 2
    lengths = (len(kernel), len(strides), len(dilations), len(pads) // 2)
    require(lengths == (axes,) * 4, f"{what}: {kernel}, {strides}, {pads}, {dilations} are not for {axes} window axes")
    sizes = []
    for axis in range(axes):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        room = x[axis + 2] + pads[axis] + pads[axis + axes]
        require(at_most(reach, room), f"{what}: a window {kernel} (dilated {dilations}) does not fit {x}, pads {pads}")
        sizes.append((room - reach) // strides[axis] + 1)
    return tuple(sizes)


def windows(
    x: Array, kernel: Shape, strides: Shape, pads: Shape, dilations: Shape, fill: Array
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """For each place in the window, what stands there for all results: an array `n c p q …`."""
    widths, axes = concrete(pads, "window"), x.ndim - 2
    around = [(0, 0), (0, 0), *zip(widths[:axes], widths[axes:], strict=True)]
    padded = np.pad(x, around, constant_values=fill) if any(widths) else x
    counts = concrete(window_sizes("window", x.shape, kernel, strides, pads, dilations), "window")
    steps, gaps = concrete(strides, "window"), concrete(dilations, "window")
    for place in itertools.product(*map(range, concrete(kernel, "window"))):
        starts = [i * d for i, d in zip(place, gaps, strict=True)]
        cuts = [slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, counts, steps, strict=True)]
        yield place, padded[(slice(None), slice(None), *cuts)]


def demand_kernel(node: Source, shape: Shape) -> None:
    """Raise `NotUnderstood` for a `kernel_shape` that is not that of the kernel."""
    given = node.attributes.get("kernel_shape")
    if given is not None and any(equal(a, b) is False for a, b in zip(given, shape, strict=True)):
        raise NotUnderstood(f"the kernel is {shape}, kernel_shape {given}")


def explicit_pads(node: Source, x: Shape, kernel: Shape, strides: Shape, dilations: Shape) -> Shape:
    """The pads of a node, with ONNX's `auto_pad` worked out: SAME gives ⌈h / s⌉ results, the last for what remains of
    an axis in steps of s. Raises `NotUnderstood` where they depend on how much that is, and nobody knows.
    """
    mode = node.attributes.get("auto_pad", "NOTSET")
    none = (0,) * (2 * len(kernel))
    if mode == "NOTSET":
        return tuple(node.attributes.get("pads", none))
    if mode == "VALID":
        return none
    before, after = [], []
    for h, k, s, d in zip(x[2:], kernel, strides, dilations, strict=True):
        window, step, gap = concrete((k, s, d), f"auto_pad {mode}")
        last = range(1, step + 1) if not isinstance(h, int) else ((h - 1) % step + 1,)
        totals = {gap * (window - 1) + 1 - elements for elements in last}
        if min(totals) < -1:
            raise NotUnderstood(f"auto_pad {mode} of windows that leave {-min(totals)} elements out: runtimes differ")
        total, *others = {max(total, 0) for total in totals}
        if others:
            raise NotUnderstood(f"auto_pad {mode} in steps of {step} along an axis of {h}")
        small = total // 2
        before.append(small if mode == "SAME_UPPER" else total - small)
        after.append(total - before[-1])
    return (*before, *after)
