"""TASO's rule file as protobuf messages, by their published field numbers, and what its numbers stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from superopt.errors import RuleError

OPERATORS = {
    3: "conv2d",
    6: "max pool",
    7: "average pool",
    8: "relu",
    9: "sigmoid",
    10: "tanh",
    12: "concat",
    13: "split",
    14: "reshape",
    15: "transpose",
    16: "add",
    17: "mul",
    18: "matmul",
    19: "multiply by a scalar",
    20: "enlarge",
    21: "merge groups",
    22: "identity matrix",
    23: "identity convolution",
    24: "ones",
    25: "pooling kernel",
}
OPERATOR_NUMBERS = {name: number for number, name in OPERATORS.items()}

KEYS = {
    "inputs": 1,
    "outputs": 2,
    "group": 3,
    "kernel height": 4,
    "kernel width": 5,
    "stride height": 6,
    "stride width": 7,
    "padding": 8,
    "activation": 9,
    "rank": 10,
    "axis": 11,
    "permutation": 12,
    "shuffle": 13,
}

Place = tuple[int, int]
"""A tensor of a side: the index of an operator and which of its outputs; of a variable a number below 0, and 0."""


@dataclass(frozen=True)
class Node:
    """An operator of one side of a rule."""

    type: int
    inputs: tuple[Place, ...]
    keyed: tuple[tuple[int, int], ...]
    """Parameters by number, in the file's order."""

    @property
    def parameters(self) -> dict[int, int]:
        """Parameters by number."""
        return dict(self.keyed)

    @property
    def name(self) -> str:
        """What it is called here. Raises `RuleError` for a number that has no name."""
        if self.type not in OPERATORS:
            raise RuleError(f"operator type {self.type} is not one of TASO's that are known here")
        return OPERATORS[self.type]

    def parameter(self, key: str, default: int | None = None) -> int:
        """A parameter. Raises `RuleError` where it is missing and has no default."""
        value = self.parameters.get(KEYS[key], default)
        if value is None:
            raise RuleError(f"{self.name} lacks its parameter {KEYS[key]} ({key})")
        return value


@dataclass(frozen=True)
class Published:
    """A rule as TASO publishes it; each output is a place in the source and one in the target."""

    source: tuple[Node, ...]
    target: tuple[Node, ...]
    outputs: tuple[tuple[Place, Place], ...]


def decode(data: bytes, name: str) -> list[Published]:
    """The rules of a file. Raises `RuleError` for what is cut short or no such file."""
    collection = _message("RuleCollection")()
    try:
        collection.ParseFromString(data)
    except DecodeError:
        raise RuleError(
            f"{name}: no file of TASO's rules, or cut short: {len(data)} bytes are no whole message"
        ) from None
    if not collection.rule or len(unknown_fields.UnknownFieldSet(collection)):
        raise RuleError(f"{name}: no file of TASO's rules: a protobuf with a field 1 that holds rules is expected")
    return [
        Published(
            tuple(map(_node, rule.srcOp)),
            tuple(map(_node, rule.dstOp)),
            tuple(((o.srcOpId, o.srcTsId), (o.dstOpId, o.dstTsId)) for o in rule.mappedOutput),
        )
        for rule in collection.rule
    ]


def encode(rules: Sequence[Published]) -> bytes:
    """The file of these rules; `decode` gives them back."""
    collection = _message("RuleCollection")()
    for rule in rules:
        made = collection.rule.add()
        for side, nodes in ((made.srcOp, rule.source), (made.dstOp, rule.target)):
            for node in nodes:
                _write(side.add(), node)
        for (s, i), (t, j) in rule.outputs:
            made.mappedOutput.add(srcOpId=s, dstOpId=t, srcTsId=i, dstTsId=j)
    return bytes(collection.SerializeToString(deterministic=True))


def _node(message: Any) -> Node:
    inputs = tuple((t.opId, t.tsId) for t in message.input)
    return Node(message.type, inputs, tuple((p.key, p.value) for p in message.para))


def _write(message: Any, node: Node) -> None:
    message.type = node.type
    for op, output in node.inputs:
        message.input.add(opId=op, tsId=output)
    for key, value in node.keyed:
        message.para.add(key=key, value=value)


_FIELDS: dict[str, list[tuple[str, int, str]]] = {
    "Parameter": [("key", 1, ""), ("value", 2, "")],
    "Tensor": [("opId", 1, ""), ("tsId", 2, "")],
    "Operator": [("type", 1, ""), ("input", 2, "Tensor"), ("para", 3, "Parameter")],
    "MapOutput": [("srcOpId", 1, ""), ("dstOpId", 2, ""), ("srcTsId", 3, ""), ("dstTsId", 4, "")],
    "Rule": [("srcOp", 1, "Operator"), ("dstOp", 2, "Operator"), ("mappedOutput", 3, "MapOutput")],
    "RuleCollection": [("rule", 1, "Rule")],
}
"""Of each message its fields: name, number and, where it is repeated, the message that it holds."""


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"taso.{name}"))


def _pool() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="taso.proto", package="taso", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, of in fields:
            made = message.field.add(
                name=field, number=number, label=kinds.LABEL_REPEATED if of else kinds.LABEL_OPTIONAL
            )
            made.type = kinds.TYPE_MESSAGE if of else kinds.TYPE_INT32
            if of:
                made.type_name = f".taso.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool
