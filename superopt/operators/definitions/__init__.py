"""What operators may be written as beside their declarations: steps that runtimes compute faster, and spellings."""

from superopt.operators.definitions import (
    blocks,
    exponents,
    frames,
    moves,
    norm_rows,
    parts,
    phases,
    pictures,
    pools,
    powers,
    shares,
    short_rows,
    spellings,
    sums,
    tiles,
    views,
)

__all__ = [
    "blocks",
    "exponents",
    "frames",
    "moves",
    "norm_rows",
    "parts",
    "phases",
    "pictures",
    "pools",
    "powers",
    "shares",
    "short_rows",
    "spellings",
    "sums",
    "tiles",
    "views",
]
