"""Protobuf's wire format, as far as weights need it (https://protobuf.dev/programming-guides/encoding).

A message is a row of fields: a tag, for bytes a length, and the value. With that a message can be written whose weights
are not in memory, and one be read without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import TypeAlias

Buffer: TypeAlias = bytes | mmap

_VARINT, _FIXED_64, _LENGTH_DELIMITED, _FIXED_32 = 0, 1, 2, 5
_WIDTHS = {_FIXED_64: 8, _FIXED_32: 4}


class Malformed(Exception):
    """Bytes that are no message, or use what is not read here (groups, which nobody has written for long)."""


@dataclass(frozen=True)
class Field:
    """One field of a message: where its tag begins, where its value does, and where both end."""

    number: int
    start: int
    value: int
    end: int


def fields(data: Buffer, start: int, end: int) -> Iterator[Field]:
    """The fields of the message in `data[start:end]`, by their order. Raises `Malformed`."""
    while start < end:
        tag, value = _read_varint(data, start, end)
        kind = tag & 7
        if kind == _VARINT:
            _, stop = _read_varint(data, value, end)
        elif kind == _LENGTH_DELIMITED:
            length, value = _read_varint(data, value, end)
            stop = value + length
        elif kind in _WIDTHS:
            stop = value + _WIDTHS[kind]
        else:
            raise Malformed(f"wire type {kind} at byte {start}")
        if stop > end:
            raise Malformed(f"a field at byte {start} is cut short")
        yield Field(tag >> 3, start, value, stop)
        start = stop


def frame(field: int, length: int) -> bytes:
    """What stands before the value of a field of that many bytes."""
    return b"".join((*_varint(field << 3 | _LENGTH_DELIMITED), *_varint(length)))


def _varint(number: int) -> Iterator[bytes]:
    while number >= 0x80:
        yield bytes([number & 0x7F | 0x80])
        number >>= 7
    yield bytes([number])


def _read_varint(data: Buffer, start: int, end: int) -> tuple[int, int]:
    """A number of up to 64 bits, and where it ends."""
    number = 0
    for i in range(min(10, end - start)):
        byte = data[start + i]
        number |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return number, start + i + 1
    raise Malformed(f"a number at byte {start} does not end")
