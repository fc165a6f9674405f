"""Rules that may be used: those of files whose seal says they were proved as they stand, the rest proved afresh.

The seal in a file's header is a digest of the rules, the operators and the laws. It is there so that a file edited by
hand, or proved under other declarations, is proved again before it is used; it is no protection against malice.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from superopt.errors import RuleError
from superopt.operators.declare import CATALOGUE
from superopt.operators.declared import Declared
from superopt.rules.digests import laws_hash, operators_hash
from superopt.rules.format import RuleFile, parse_file, print_file, print_rule, read_rules
from superopt.rules.rule import Rule
from superopt.verify.check import Refuted, Verdict, verify
from superopt.verify.prove import Proved

Told = Callable[[str, float], None]

_LOG = logging.getLogger("superopt")

AT_ONCE_S = 1.0
"""What proving the rules of a file may take without a word; it is of the time that whoever asks has."""


def seal(rules: Sequence[Rule], printed: str | None = None) -> str:
    """A digest of rules, as they are printed, and of what their proofs rest on."""
    printed = "\n".join(map(print_rule, rules)) if printed is None else printed
    text = "\n".join([operators_hash(rules), laws_hash(), printed])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def sealed(rules: Sequence[Rule], facts: dict[str, str]) -> RuleFile:
    """A rule file of proved rules, with the header that says so."""
    header = {"operators": operators_hash(rules), "laws": laws_hash(), **facts, "seal": seal(rules)}
    return RuleFile(tuple(rules), header)


def facts_of(file: RuleFile) -> dict[str, str]:
    """What a header says besides what sealing writes into it."""
    return {key: fact for key, fact in file.header.items() if key not in ("operators", "laws", "seal")}


def trusted_rules(paths: Sequence[Path], progress: Told) -> list[Rule]:
    """The rules of files, each file either sealed or proved now. Raises `RuleError` for a rule that does not prove."""
    found: list[Rule] = []
    for path in paths:
        file, is_sealed = _read(path, *_state(path), frozenset(CATALOGUE.values()))
        if is_sealed:
            found += file.rules
            continue
        start = time.monotonic()
        for i, rule in enumerate(file.rules):
            progress(f"prove {path.name}", i / len(file.rules))
            verdict = verify(rule)
            if not isinstance(verdict, Proved):
                raise RuleError(f"{path}: rule {rule.name} does not prove: {describe(verdict)}; it was not used")
            found.append(replace(rule, by=verdict.laws))
        if (seconds := time.monotonic() - start) > AT_ONCE_S:
            _LOG.warning(
                "%s: its seal is not that of its rules, operators and laws; %d rules were proved again in %.0f s; "
                "superopt rules verify --seal %s spares that",
                path.name,
                len(file.rules),
                seconds,
                path,
            )
    return found


def _state(path: Path) -> tuple[int, int]:
    """What changes where a file does, as nearly as can be told without reading it; nothing where there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=32)  # a process that optimizes many models reads its rules once
def _read(path: Path, changed: int, size: int, operators: frozenset[type[Declared]]) -> tuple[RuleFile, bool]:
    """The rules of a file, and whether its seal says that they were proved as they stand."""
    text = read_rules(path)
    file = parse_file(text, str(path))
    head = print_file(RuleFile((), file.header)) + "\n"
    sealed_as = file.header.get("seal")
    # Most files are as they were printed; nothing else stands before the rules of those.
    if text.startswith(head) and sealed_as == seal(file.rules, text.removeprefix(head)):
        return file, True
    return file, sealed_as == seal(file.rules)


def describe(verdict: Verdict) -> str:
    """A verdict in words."""
    if isinstance(verdict, Proved):
        return f"proved by {', '.join(verdict.laws) or 'congruence alone'}"
    return f"refuted: {verdict}" if isinstance(verdict, Refuted) else f"unknown: {verdict.why}"
