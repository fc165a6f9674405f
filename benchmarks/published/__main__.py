"""The command that writes the published networks into a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.published import BATCHES, PUBLISHED, write


def main() -> None:
    """Write those that were asked for."""
    parser = argparse.ArgumentParser(description="Write the networks of TASO, TENSAT and PET, with random weights.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(PUBLISHED)} [default: all]")
    parser.add_argument("--batch", type=int, nargs="+", default=BATCHES, metavar="N", help="[default: 1 16]")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.names} - {*PUBLISHED}):
        parser.error(f"there is no network {', '.join(unknown)}; there are {', '.join(PUBLISHED)}")
    for name in arguments.names or PUBLISHED:
        for batch in arguments.batch:
            print(write(name, batch, arguments.folder, arguments.seed))


if __name__ == "__main__":
    main()
