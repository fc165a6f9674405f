"""The carriers in which two terms of one value agree exactly, and a disagreement is a counterexample."""

from __future__ import annotations

from superopt.arithmetic.carrier import Carrier
from superopt.arithmetic.field import FIELD
from superopt.arithmetic.order import ORDER

EXACT: tuple[Carrier, ...] = (FIELD, ORDER)
