"""What tests of whole searches share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from superopt.cost.bench import Bench
from superopt.cost.measured import MeasuredCost
from superopt.cost.ort import OnnxRuntime
from superopt.cost.table import Table


@pytest.fixture(scope="module")
def cost(timings: Path) -> Iterator[MeasuredCost]:
    with Table(timings) as table:
        yield MeasuredCost(Bench(OnnxRuntime(1), table, 17))
