# SPDX-License-Identifier: Apache-2.0
"""Passes over weights, where a layer reads its weight through other nodes."""

import numpy as np
import pytest
import tenon as tn
from tenon import nn


@pytest.mark.parametrize("name", ["pruner.structured", "pruner.unstructured", "quantizer.weights"])
def test_passes_over_weights_say_that_constants_are_to_be_folded_first(name):
    """A linear layer of sequences reads its weight transposed."""
    net = nn.Sequential(nn.Linear(8), tn.relu, nn.Linear(4))
    model = nn.build(net, {"x": ("N", 5, 6)})
    with pytest.raises(tn.TenonError, match="computed from constants.*apply fusion.default first"):
        model.apply(name)
    model.apply("fusion.default").apply(name)


def test_they_say_so_beside_other_reasons():
    net = nn.Sequential(nn.Linear(8), lambda x: tn.relu(x).mean(1), nn.Linear(4))
    with pytest.raises(
        tn.TenonError, match="model's output.*those of MatMul: apply fusion.default"
    ):
        nn.build(net, {"x": ("N", 5, 6)}).apply("pruner.structured")


@pytest.mark.parametrize("name", ["quantizer.smooth", "quantizer.awq"])
def test_scaled_inputs_say_which_layers_wait_for_folded_constants(name):
    model = nn.build(nn.Linear(8), {"x": ("N", 5, 6)})
    x = np.ones((4, 5, 6), "float32")
    left = model.apply(name, data={"x": x}).report["left"]
    assert [one["why"].split(":")[0] for one in left] == ["its weight is computed from constants"]
    assert "left" not in model.apply("fusion.default").apply(name, data={"x": x}).report


def test_a_decomposition_says_which_layers_wait_for_folded_constants():
    model = nn.build(nn.Linear(8), {"x": ("N", 5, 6)})
    left = model.apply("decomposer.svd").report["left"]
    assert [one["why"].split(":")[0] for one in left] == ["its weight is computed from constants"]
