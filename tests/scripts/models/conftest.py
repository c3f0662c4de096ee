# SPDX-License-Identifier: Apache-2.0
"""The package `models` is importable; fetched files are where `scripts/fetch` puts them."""

import sys
from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))


@pytest.fixture
def fetched():
    """Path of a fetched file; the test is skipped where it was not fetched."""

    def find(name: str) -> Path:
        path = ROOT / ".cache" / "models" / name
        if not path.exists():
            pytest.skip(f"{name} is not in .cache/models: run scripts/fetch")
        return path

    return find


@pytest.fixture
def run():
    """Runs a model in ONNX's own reference evaluator."""

    def evaluate(model, inputs: dict) -> list[np.ndarray]:
        return ReferenceEvaluator(model).run(None, inputs)

    return evaluate
