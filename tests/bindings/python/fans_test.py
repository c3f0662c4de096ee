# SPDX-License-Identifier: Apache-2.0
"""The fans that initial values go by, against those of `torch.nn.init`."""

import numpy as np
import pytest
from tenon import nn

IMAGE = {"x": ("N", 64, 8, 8)}


def conv(width, **options):
    return lambda init: nn.build(nn.Conv(width, 3, bias=False, init=init, **options), IMAGE, seed=3)


def embedding(init):
    return nn.build(nn.Embedding(600, 40, init=init), {"x": nn.Input(("N",), "int64")}, seed=3)


def linear(init):
    return nn.build(nn.Linear(200, bias=False, init=init), {"x": ("N", 300)}, seed=3)


class Kernel(nn.Module):
    """A tensor of its own, laid out as the weight of a convolution."""

    def __init__(self, init):
        self.weight = nn.Parameter([96, 64, 3, 3], init=init)

    def forward(self, x):
        return x + self.weight()


def parameter(init):
    return nn.build(Kernel(init), {"x": (96, 64, 3, 3)}, seed=3)


# The layer, shape of the weight, and the fans of torch.nn.init for it.
@pytest.mark.parametrize(
    ("model", "shape", "fan_in", "fan_out"),
    [
        (conv(96), (96, 64, 3, 3), 64 * 9, 96 * 9),
        (conv(96, groups=32), (96, 2, 3, 3), 2 * 9, 96 * 9),
        (conv(64, groups=64), (64, 1, 3, 3), 9, 64 * 9),
        (conv(96, transposed=True), (64, 96, 3, 3), 96 * 9, 64 * 9),
        (conv(96, transposed=True, groups=32), (64, 3, 3, 3), 3 * 9, 64 * 9),
        (linear, (200, 300), 300, 200),
        (embedding, (600, 40), 40, 600),
        (parameter, (96, 64, 3, 3), 64 * 9, 96 * 9),
    ],
)
def test_fans_are_counted_by_the_axes_of_the_weight(model, shape, fan_in, fan_out):
    for mode, fan in (("fan_in", fan_in), ("fan_out", fan_out)):
        weight = np.asarray(model(nn.init.he(mode=mode)).constants()["weight"])
        assert weight.shape == shape
        assert abs(weight.std() / (2 / fan) ** 0.5 - 1) < 5 / weight.size**0.5
