"""`superopt`, and `python -m superopt`: Ctrl-C ends the command quietly from its first moment on."""

from __future__ import annotations

import sys

from superopt.interrupts import INTERRUPTED, heed_signals


def main() -> None:
    """Run the command."""
    heed_signals()  # before what takes a second to be imported
    try:
        from superopt.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("superopt: interrupted\n")
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
