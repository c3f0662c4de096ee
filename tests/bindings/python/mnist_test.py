# SPDX-License-Identifier: Apache-2.0
"""The example that trains on MNIST's digits, shortened; needs `scripts/fetch mnist`."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DATA = ROOT / ".cache" / "models"


def example():
    path = ROOT / "bindings" / "python" / "examples" / "mnist.py"
    spec = importlib.util.spec_from_file_location("mnist", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not (DATA / "mnist_train.npz").exists(), reason="scripts/fetch mnist")
@pytest.mark.parametrize(("network", "epochs", "floor"), [("mlp", 4, 0.90), ("cnn", 1, 0.85)])
def test_digits_are_learned(network: str, epochs: int, floor: float) -> None:
    assert example().train(network, 0, epochs, "onednn", DATA) >= floor
