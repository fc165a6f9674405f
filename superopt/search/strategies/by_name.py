"""The strategies by name. A new one is a function like these (see `space.strategy`), and a line here."""

from __future__ import annotations

from superopt.search.strategies.backtrack import backtrack
from superopt.search.strategies.beam import beam
from superopt.search.strategies.found import Strategy

STRATEGIES: dict[str, Strategy] = {"backtrack": backtrack, "beam": beam}
