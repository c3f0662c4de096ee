# SPDX-License-Identifier: Apache-2.0
"""What `nn.load` puts where: each parameter of a model, or a message."""

import numpy as np
import pytest
import tenon as tn
from tenon import nn


class Scaled(nn.Module):
    def __init__(self):
        self.linear = nn.Linear(2)
        self.scale = nn.Parameter([])

    def forward(self, x):
        return self.linear(x) * self.scale()


def scaled():
    return nn.build(Scaled(), {"x": ("N", 2)})


def moved(model, dtype=None):
    """Its constants, each number one more."""
    return {n: np.asarray(one).astype(dtype or one.dtype) + 1 for n, one in numbers(model).items()}


def numbers(model):
    return {name: np.array(one) for name, one in model.constants().items()}


def test_a_single_number_that_is_trained_is_loaded_too():
    wanted = moved(scaled())
    loaded = nn.load(scaled(), wanted)
    assert loaded.report["loaded"] == 3
    assert all(np.array_equal(one, wanted[name]) for name, one in numbers(loaded).items())
    del wanted["scale"]
    with pytest.raises(tn.InvalidArgument, match="expected scale among"):
        nn.load(scaled(), wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_a_model_in_float64_takes_weights_that_it_holds_exactly(dtype):
    model = scaled().apply("precision.widen", to="float64", interface="float64")
    wanted = moved(model, dtype)
    loaded = nn.load(model, wanted)
    assert loaded.report["loaded"] == 3
    for name, one in numbers(loaded).items():
        assert one.dtype == "float64" and np.array_equal(one, wanted[name])


def test_a_model_in_float32_takes_no_weights_in_float64():
    with pytest.raises(tn.InvalidArgument, match="expected float32.* got float64"):
        nn.load(scaled(), moved(scaled(), "float64"))
