# SPDX-License-Identifier: Apache-2.0
"""The losses of 50 training steps beside PyTorch's, from the same weights and batches."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import tenon as tn

GOLDEN = Path(__file__).parents[2] / "golden"
IDS = {one["id"] for one in tn.components("pass")}


def golden_script():
    spec = importlib.util.spec_from_file_location("curves", GOLDEN / "curves.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif("trainer.step" not in IDS, reason="expected the plugin trainer")
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize(
    ("kind", "dtype", "tolerance"),
    [("mlp", "f4", 1e-4), ("cnn", "f4", 1e-4), ("mlp", "f8", 1e-10)],
)
def test_fifty_steps_follow_pytorch(kind, optimizer, dtype, tolerance):
    script = golden_script()
    expected = json.loads((GOLDEN / "curves.json").read_text())["curves"][f"{kind}/{optimizer}"]
    network, parameters = script.example().NETWORKS[kind]

    def loss(p, images, labels):
        picked = tn.log_softmax(network(p, images)) * tn.one_hot(labels, 10)
        return -picked.sum(-1).mean()

    update = getattr(tn.optim, optimizer)(**script.OPTIMIZERS[optimizer])
    begin = parameters(np.random.default_rng(0))
    step = tn.Step(loss, {name: value.astype(dtype) for name, value in begin.items()}, update)
    losses = [float(step(x.astype(dtype), y)) for x, y in script.batches()]

    assert len(losses) == len(expected) == 50
    np.testing.assert_allclose(losses, expected, rtol=0, atol=tolerance)
