# SPDX-License-Identifier: Apache-2.0
"""Inputs whose samples are not along their first axis, as the states of recurrent layers."""

import numpy as np
import pytest
import tenon

N = 10
RANDOM = np.random.default_rng(3)
X, H = RANDOM.standard_normal((N, 3)).astype("f"), RANDOM.standard_normal((N, 2, 3)).astype("f")


def model(state: list, x: list) -> tenon.Model:
    """x + the sum of the state's layers, of each sample."""
    graph = tenon.Graph()
    h = graph.add_input("h", "float32", state)
    axis = graph.add_constant(np.array([0], "int64"), "axis")
    summed = graph.add_node("ReduceSum", [h, axis], keepdims=0)
    graph.add_output("y", graph.add_node("Add", [graph.add_input("x", "float32", x), summed]))
    return graph.build()


@pytest.fixture
def data(tmp_path):
    np.savez(tmp_path / "data.npz", x=X, h=H, label=X + H.sum(1))
    return tenon.data.open(tmp_path / "data.npz")


def test_samples_go_along_the_axis_that_has_the_batches_name(data):
    measured = tenon.evaluate(
        model([2, "batch", 3], ["batch", 3]), data, metric="mse", batch=4, backend="reference"
    )

    assert measured["samples"] == N
    assert measured["mse"] < 1e-10


def test_a_field_of_another_type_is_moved_and_converted(tmp_path):
    h = H.astype("float64")
    np.savez(tmp_path / "data.npz", x=X, h=h, label=X + H.sum(1))

    measured = tenon.evaluate(
        model([2, "batch", 3], ["batch", 3]), tenon.data.open(tmp_path / "data.npz"), metric="mse"
    )

    assert measured["mse"] < 1e-10


@pytest.mark.parametrize("x", [["steps", "batch", 3], [-1, 3]])
def test_an_axis_that_cannot_be_known_is_refused(data, x):
    state = [2, "batch" if len(x) == 3 else -1, 3]

    with pytest.raises(tenon.TenonError, match="option data: input h: .* expected samples along"):
        model_of = model(state, x)
        tenon.evaluate(model_of, data, metric="mse")


def test_training_wants_samples_along_the_first_axis(data):
    with pytest.raises(tenon.TenonError, match="training expects them along axis 0"):
        tenon.train(model([2, "batch", 3], ["batch", 3]), data, loss="mse", epochs=1)
