"""Plots of a page, as Mermaid draws them."""

from __future__ import annotations

from collections.abc import Sequence


def chart(
    title: str, names: Sequence[str], axis: str, bars: Sequence[float], lines: Sequence[Sequence[float]] = ()
) -> str:
    """A bar for each name, and lines across them; a number that is none counts as 0."""
    most = max([*bars, *(y for line in lines for y in line)], default=0.0)
    drawn = [f"  bar [{_row(bars)}]", *(f"  line [{_row(line)}]" for line in lines)]
    return "\n".join(
        (
            "```mermaid",
            "xychart-beta",
            f'  title "{title}"',
            f"  x-axis [{', '.join(names)}]",
            f'  y-axis "{axis}" 0 --> {1.1 * most:.1f}',
            *drawn,
            "```",
        )
    )


def _row(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers)
