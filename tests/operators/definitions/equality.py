"""Whether two terms mean the same, exactly: on random elements of a prime field."""

from __future__ import annotations

import numpy as np

from superopt.arithmetic.field import FIELD
from superopt.evaluate import evaluate, sample
from superopt.term import Term


def assert_equal(found: Term | None, wanted: Term) -> Term:
    """That there is a term, of the type and value of another one; gives it."""
    assert found is not None
    assert found.type == wanted.type
    values = sample((found, wanted), FIELD, 0)
    np.testing.assert_array_equal(evaluate(found, FIELD, values), evaluate(wanted, FIELD, values))
    return found
