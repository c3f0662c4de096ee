# SPDX-License-Identifier: Apache-2.0
"""A training step is one partition of the CPU backend: where another backend computes a node in the
middle of it, all that the backward pass reads crosses from one partition to the next."""

import numpy as np
import pytest
import tenon as tn
from tenon import nn
from tenon.component import listed

RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(16, 3, 8, 8)).astype("float32")
LABELS = RANDOM.integers(0, 4, size=16)
NET = nn.Sequential(
    nn.Conv(8, 3, padding=1), nn.BatchNorm(), tn.relu, nn.Dropout(0.25), nn.Conv(8, 3), tn.gelu,
    nn.GlobalAvgPool(), nn.Dropout(0.5), nn.Linear(4),
)  # fmt: skip
OPTIMIZERS = [one["id"] for one in listed("tenon.optimizer/1") if one["id"].startswith("trainer.")]


def is_one_partition(report):
    assert report["fallback_nodes"] == []
    return [p["backend"] for p in report["partitions"]] == ["onednn"]


def cross_entropy(scores):
    return -(tn.log(tn.softmax(scores, axis=-1)) * np.eye(4, dtype="f")[LABELS]).sum()


@pytest.fixture(scope="module")
def model():
    return nn.build(NET, {"image": ("N", 3, 8, 8)})


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_of_each_optimizer_with_draws_by_a_key(model, name):
    def loss(params, x, key):
        return cross_entropy(model(x, parameters=params, training=True, key=key))

    optimizer = getattr(tn.optim, name.removeprefix("trainer."))(lr=1e-3)
    step = tn.Step(loss, model.parameters(), optimizer, backend="onednn")
    step(X, np.array([3, 4]))
    assert is_one_partition(step.describe())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_of_a_function_that_draws(precision):
    weights = [RANDOM.normal(size=(64, 64)).astype("float32") / 8 for _ in range(4)]

    def loss(params, x):
        for w in params:
            x = tn.dropout(tn.relu(x @ w), 0.25)
        return (x * x).mean()

    step = tn.Step(loss, weights, tn.optim.sgd(lr=0.1), backend="onednn", precision=precision)
    step(X.reshape(-1, 64))
    assert is_one_partition(step.describe())


def test_of_a_loss_of_sequences():
    frames = RANDOM.normal(size=(4, 12, 6)).astype("float32")
    targets = np.array([[1, 2, -1], [3, 3, 1], [4, -1, -1], [2, 1, 2]])

    def loss(w, x, y):
        return tn.op("tenon.CtcLoss", x @ w, y).mean()

    w = RANDOM.normal(size=(6, 5)).astype("float32")
    step = tn.Step(loss, w, tn.optim.sgd(lr=0.1), backend="onednn")
    step(frames, targets)
    assert is_one_partition(step.describe())
    both = [tn.grad(loss, backend=b)(w, frames, targets) for b in ("onednn", "reference")]
    np.testing.assert_allclose(*both, rtol=1e-4, atol=1e-6)
    with pytest.raises(tn.TenonError, match="targets: expected 0..4 without 0, the blank, got 5"):
        step(frames, targets + 4)


def test_draws_are_those_of_the_reference():
    x = np.ones((37, 41), "float32")
    drawn = [tn.jit(lambda x: tn.dropout(x, 0.3), backend=b)(x) for b in ("onednn", "reference")]
    np.testing.assert_array_equal(*drawn)
    assert 0.2 < (drawn[0] == 0).mean() < 0.4


@pytest.mark.parametrize("draw", [tn.random_uniform, tn.random_normal])
def test_numbers_are_those_of_the_reference(draw):
    made = []
    for backend in ("onednn", "reference"):
        f = tn.jit(lambda x, key: x + draw((37, 41), key=key), backend=backend)
        made.append(f(np.zeros((37, 41), "f"), np.array([5, 6])))
    np.testing.assert_allclose(*made, rtol=1e-6)
