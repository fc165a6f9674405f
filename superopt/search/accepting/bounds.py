"""How much outputs of a candidate may differ from the original's, and from what they are in 64 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from superopt.search.accepting.distance import REFERENCE_EPS

NOISE_FACTOR = 16.0
ABSOLUTE_EPS = 1024.0
REFERENCE_FACTOR = 8.0
ROUNDED_EPS = 4.0
MOST_NOISE = 1e-2
SAME_FACTOR = 2.0
MOST_SAME_NOISE = 0.1
"""The bounds, in units of the machine epsilon of an output's type; errors are relative to its largest magnitude.

Against the original: 1024 ε, 1.2e-4 for float32. Rounding errors of a sum of k products grow like √k ε and pass on
from layer to layer: networks of a hundred layers show 10 to 100 ε between two correct orders of summation, wrong
programs nearly always 10⁻² or more. Some samples are ill conditioned, as a softmax over logits of a thousand: there,
16 times the *noise* is allowed, the change of the original itself under the runtime's optimizations and under inputs
changed in their last bit; it is looked at only where the bound without it is passed. Wrong programs are off by as much
as 0.01, mostly: a sample with more noise than that tells nothing of an output, unless the candidate gives the same as
the original to the last bit where neither is optimized by the runtime, or where both are. Models whose values are
quantized on the way are so: by the runtime's optimizations some of these are other steps, in both. What a candidate
gives in the other case is to be off by twice the noise at most; and by what both give that is not optimized nothing is
told where there is ten times as much noise. Nor does it tell anything where another sample with so much noise shows a
candidate that is off by more than twice that, and by more than any other may be.

Against the 64-bit evaluation: 8 times the original's own error, and 32 ε where that happens to be nearly exact. This is
the sharper bound, and tells a program that is wrong by little from one that rounds differently.

Outputs of 16 bits are rounded to these in the end, and what is computed in 16 bits on the way is moved at most: there,
4 ε are allowed in both, 0.4 %."""


def allowed_of(dtype: np.dtype[Any]) -> tuple[float, float]:
    """How far an output of a type may be from the original's, and from its value in 64 bits, where noise is none."""
    eps = float(np.finfo(dtype).eps)
    if dtype.itemsize <= 2:
        return ROUNDED_EPS * eps, ROUNDED_EPS * eps
    return ABSOLUTE_EPS * eps, REFERENCE_EPS * eps
