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


def chosen():
    """A model whose constants have the names of a state dict with a scalar, indices and a mask."""
    g = tn.Graph()
    x = g.add_input("x", "float32", [2, 3])
    scale = g.add_constant(np.array(2, "f"), "scale")
    index = g.add_constant(np.array([2, 0, 1]), "index")
    mask = g.add_constant(np.array([True, False, True]), "mask")
    taken = g.add_node("Gather", [x, index], axis=1)
    g.add_output("y", g.add_node("Where", [mask, g.add_node("Mul", [taken, scale]), x]))
    return g.build()


def test_buffers_of_a_state_dict_are_loaded_whatever_their_type():
    state = {
        "scale": np.array(5, "f"),
        "index": np.arange(3),
        "mask": np.array([False, True, True]),
    }
    x = np.arange(6, dtype="f").reshape(2, 3)
    loaded = nn.load(chosen(), state)
    assert loaded.report["loaded"] == 3
    np.testing.assert_array_equal(
        loaded.compile()(x)[0], np.where(state["mask"], x * state["scale"], x)
    )
    with pytest.raises(tn.InvalidArgument, match="index: expected int64.* got int32"):
        nn.load(chosen(), {"index": np.arange(3, dtype="int32")})


def test_a_tensor_that_is_called_as_an_input_is_refused():
    state = {n: np.asarray(one) for n, one in chosen().constants().items()}
    with pytest.raises(tn.InvalidArgument, match="x: the model has no constant of this name"):
        nn.load(chosen(), state | {"x": np.zeros((2, 3), "f")})


def test_weights_of_a_model_in_float16_are_loaded_and_missed():
    g = tn.Graph()
    x = g.add_input("x", "float16", [2, 3])
    w = g.add_constant(np.ones((3, 4), "float16"), "w")
    g.add_output("y", g.add_node("MatMul", [x, w]))
    model, wanted = g.build(), np.full((3, 4), 2, "float16")
    assert np.array_equal(numbers(nn.load(model, {"w": wanted}))["w"], wanted)
    with pytest.raises(tn.InvalidArgument, match="expected w among"):
        nn.load(model, {})
