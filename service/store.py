"""The reports of past requests, in a bounded part of memory."""

import secrets
from collections import OrderedDict


class ReportStore:
    """Reports by their id, which cannot be guessed: who has it was given it. The oldest go when memory is full."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._reports: OrderedDict[str, bytes] = OrderedDict()

    def keep(self, report: bytes) -> str:
        """Keep a report and return its new id. One that is larger than the whole store is gone at once."""
        key = secrets.token_urlsafe(16)
        self._reports[key] = report
        self._bytes += len(report)
        while self._bytes > self._max_bytes:
            _, oldest = self._reports.popitem(last=False)
            self._bytes -= len(oldest)
        return key

    def find(self, key: str) -> bytes | None:
        """The report with this id; None where it never was, or is no longer kept."""
        return self._reports.get(key)
