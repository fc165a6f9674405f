"""The verified-rule files that come with superopt: inside an installed package, or in the checkout it is run from."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def shipped_rules() -> list[Path]:
    """Every shipped `.rules` file, sorted by name; none where rules were not generated yet.

    A wheel carries the top-level folder `rules/` as `superopt/data/rules/`; an editable install has only the former.
    """
    for folder in (_PACKAGE / "data" / "rules", _PACKAGE.parent / "rules"):
        found = sorted(folder.glob("*.rules"))
        if found:
            return found
    return []
