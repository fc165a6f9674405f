"""A published network in the making: its weights go to a file as they are drawn, or are only counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from benchmarks.sketch import Sketch

THROUGH_RELU = 2 / (1 - 1 / math.pi)
"""What keeps a variance through a relu and then weights whose mean is zero, which see nothing of the relu's mean."""
BRANCH = 0.5
"""Of the last layer of a residual branch: without normalization, blocks would else add up to ever larger numbers."""
ATTENTIVE = 0.02
"""What the weights of BERT are drawn with (Devlin et al. 2019): larger ones make all tokens alike, layer by layer."""


class Layers(Sketch):
    """Layers that know how many channels each value has. Only one layer's weights are in memory at a time.

    They are written to `data`, and their tensors name `location` as the file where they lie; without, they are counted.
    """

    def __init__(self, seed: int = 0, data: BinaryIO | None = None, location: str = "") -> None:
        super().__init__(seed)
        self.parameters = 0
        self._data, self._location = data, location
        self._channels: dict[str, int] = {}

    def input(self, name: str, *shape: int) -> str:
        self._channels[name] = shape[1]
        return super().input(name, *shape)

    def __call__(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        output = super().__call__(kind, *inputs, domain=domain, **attributes)
        joined = inputs if kind == "Concat" else inputs[:1]
        self._channels[output] = sum(self._channels[i] for i in joined)
        return output

    def draw(self, *shape: int, scale: float = 1.0, offset: float = 0.0) -> str:
        def made() -> NDArray[np.float32]:
            values = self.rng.standard_normal(shape, dtype=np.float32)
            values *= np.float32(scale)
            values += np.float32(offset)
            return values

        return self._kept(shape, made)

    def linear(self, x: str, c: int, o: int) -> str:
        w = self.draw(c, o, scale=ATTENTIVE)
        return self("Add", self("MatMul", x, w), self.draw(o, scale=ATTENTIVE))

    def kernel(self, *shape: int, gain: float) -> str:
        """Weights by which as many outputs as `shape` begins with see the rest; `gain` times the variance comes out.

        Their mean is zero: see `benchmarks.networks`.
        """
        fan = math.prod(shape[1:])

        def made() -> NDArray[np.float32]:
            values = self.rng.standard_normal(shape, dtype=np.float32)
            values -= values.mean(tuple(range(1, len(shape))), keepdims=True)
            values *= np.float32(math.sqrt(gain / fan))
            return values

        return self._kept(shape, made)

    def _kept(self, shape: tuple[int, ...], made: Callable[[], NDArray[np.float32]]) -> str:
        tensor = TensorProto(name=f"w{len(self.weights)}", data_type=TensorProto.FLOAT, dims=shape)
        self.weights.append(tensor)
        self.parameters += math.prod(shape)
        if self._data is not None:
            tensor.data_location = TensorProto.EXTERNAL
            place = {"location": self._location, "offset": self._data.tell(), "length": 4 * math.prod(shape)}
            tensor.external_data.extend(onnx.StringStringEntryProto(key=k, value=str(v)) for k, v in place.items())
            self._data.write(made().astype("<f4", copy=False).data)
        return tensor.name

    def layer(
        self,
        x: str,
        o: int,
        kernel: int | tuple[int, ...] = 1,
        stride: int | tuple[int, ...] = 1,
        *,
        padded: bool = True,
        groups: int = 1,
        dilation: int = 1,
        gain: float = THROUGH_RELU,
    ) -> str:
        """A convolution with a bias to `o` channels; `padded` so that a stride of 1 keeps the size."""
        sizes = (kernel,) * 2 if isinstance(kernel, int) else kernel
        steps = (stride,) * len(sizes) if isinstance(stride, int) else stride
        pads = [dilation * (k // 2) if padded else 0 for k in sizes] * 2
        w = self.kernel(o, self._channels[x] // groups, *sizes, gain=gain)
        more: dict[str, Any] = {"strides": steps, "pads": pads, "group": groups, "dilations": [dilation] * len(sizes)}
        output = self("Conv", x, w, self.draw(o, scale=0.1), kernel_shape=sizes, **more)
        self._channels[output] = o
        return output

    def relu(self, x: str, o: int, *of: Any, **more: Any) -> str:
        """A convolution, then a relu."""
        return self("Relu", self.layer(x, o, *of, **more))

    def pool(self, kind: str, x: str, kernel: int, stride: int, pad: int = 0, **more: Any) -> str:
        """A pooling of pictures."""
        return self(kind, x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, **more)

    def dense(self, x: str, c: int, o: int, gain: float = 1.0) -> str:
        """A matrix product with a bias."""
        w = self.kernel(o, c, gain=gain)
        return self("Gemm", x, w, self.draw(o, scale=0.1), transB=1)

    def classifier(self, x: str, classes: int) -> str:
        """What ends most networks of pictures: an average over each map, then a matrix product."""
        return self.dense(self("Flatten", self("GlobalAveragePool", x)), self._channels[x], classes)
