"""The convolution: images and kernels of one to three window axes, in groups."""

from __future__ import annotations

import math

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape, product
from superopt.operators.attributes import attr
from superopt.operators.declare import operator
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand
from superopt.operators.nodes import NotUnderstood, Source
from superopt.operators.pointwise import Add
from superopt.operators.windows import demand_kernel, explicit_pads, window_sizes, windows
from superopt.relations import divides
from superopt.term import Term, make

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
