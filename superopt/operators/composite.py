"""What composite operators have in common: they mean what their definition means."""

from __future__ import annotations

from superopt.arithmetic.carrier import Array, Carrier
from superopt.evaluate import evaluate
from superopt.operators.declared import Declared
from superopt.term import variable


class Composite(Declared):
    """Base of the operators that mean what their definition means."""

    enumerated = False

    def eval(self, ring: Carrier, *arrays: Array) -> Array:
        """The value of the definition."""
        inputs = [variable(f"x{i}", a.shape) for i, a in enumerate(arrays)]
        meaning = self.definition(*inputs)
        assert meaning is not None, f"{self} has no definition"
        return evaluate(meaning, ring, dict(zip(inputs, arrays, strict=True)))
