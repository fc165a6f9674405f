"""Networks of torch that no package has: a U-Net, a style transfer network, and one that separates speakers.

Only `benchmarks.exported` imports this, which needs torch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class UNet(nn.Module):
    """Ronneberger, Fischer and Brox 2015 (arXiv 1505.04597), with padding and batch normalization."""

    def __init__(self) -> None:
        super().__init__()
        widths = (64, 128, 256, 512)
        self.down = nn.ModuleList([_twice(c, o) for c, o in zip((3, *widths), widths, strict=False)])
        self.middle = _twice(512, 1024)
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in widths[::-1]])
        self.join = nn.ModuleList([_twice(2 * w, w) for w in widths[::-1]])
        self.last = nn.Conv2d(64, 2, 1)

    def forward(self, x: Tensor) -> Any:
        """A mask for an image."""
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = functional.max_pool2d(x, 2)
        x = self.middle(x)
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([kept.pop(), up(x)], 1))
        return self.last(x)


class Style(nn.Module):
    """Johnson, Alahi and Fei-Fei 2016 (arXiv 1603.08155), with reflections around images and instance normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Sequential(_reflected(3, 32, 9), _reflected(32, 64, 3, 2), _reflected(64, 128, 3, 2))
        self.middle = nn.ModuleList(
            [nn.Sequential(_reflected(128, 128, 3), _reflected(128, 128, 3)[:3]) for _ in "12345"]
        )
        steps = [
            nn.Upsample(scale_factor=2),
            _reflected(128, 64, 3),
            nn.Upsample(scale_factor=2),
            _reflected(64, 32, 3),
        ]
        self.after = nn.Sequential(*steps, nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9))

    def forward(self, x: Tensor) -> Any:
        """An image in another style."""
        x = self.before(x)
        for block in self.middle:
            x = x + block(x)
        return self.after(x)


class ConvTasNet(nn.Module):
    """Luo and Mesgarani 2019 (arXiv 1809.07454): two speakers, one stack of six blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, 256, 16, 8), nn.ConvTranspose1d(256, 1, 16, 8)
        self.narrow = nn.Sequential(nn.GroupNorm(1, 256), nn.Conv1d(256, 128, 1))
        self.blocks = nn.ModuleList([_dilated(2**i) for i in range(6)])
        self.masks = nn.Conv1d(128, 512, 1)

    def forward(self, x: Tensor) -> Any:
        """Two sounds of one."""
        heard = self.encode(x)
        y = self.narrow(heard)
        for block in self.blocks:
            y = y + block(y)
        masks = torch.sigmoid(self.masks(y)).reshape(-1, 2, 256, heard.shape[-1])
        apart = (heard[:, None] * masks).reshape(-1, 256, heard.shape[-1])
        return self.decode(apart).reshape(x.shape[0], 2, -1)


def _twice(c: int, o: int) -> nn.Sequential:
    one = [nn.Conv2d(c, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
    return nn.Sequential(*one, nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


def _reflected(c: int, o: int, kernel: int, stride: int = 1) -> nn.Sequential:
    pad, conv = nn.ReflectionPad2d(kernel // 2), nn.Conv2d(c, o, kernel, stride)
    return nn.Sequential(pad, conv, nn.InstanceNorm2d(o, affine=True), nn.ReLU())


def _dilated(by: int) -> nn.Sequential:
    wide = [nn.Conv1d(128, 256, 1), nn.PReLU(), nn.GroupNorm(1, 256)]
    apart = [nn.Conv1d(256, 256, 3, padding=by, dilation=by, groups=256), nn.PReLU(), nn.GroupNorm(1, 256)]
    return nn.Sequential(*wide, *apart, nn.Conv1d(256, 128, 1))
