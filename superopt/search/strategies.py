"""The strategies by name. A new one is a function like these (see `space.strategy`), and a line here."""

from __future__ import annotations

from superopt.search.backtrack import backtrack
from superopt.search.beam import beam
from superopt.search.found import Strategy

STRATEGIES: dict[str, Strategy] = {"backtrack": backtrack, "beam": beam}
