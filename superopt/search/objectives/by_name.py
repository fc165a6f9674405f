"""The objectives by name. A new one is a class as `Objective` says, and a line here."""

from __future__ import annotations

from superopt.search.objectives.bytes_taken import Peak, Size
from superopt.search.objectives.latency import Latency
from superopt.search.objectives.objective import Objective

OBJECTIVES: dict[str, type[Objective]] = {"latency": Latency, "memory": Peak, "size": Size}
