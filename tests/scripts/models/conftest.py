# SPDX-License-Identifier: Apache-2.0
"""The package `models` is importable; fetched files are where `scripts/fetch` puts them."""

import sys
from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

from models.pinned import is_pinned  # noqa: E402


@pytest.fixture
def fetched():
    """Path of a fetched file. Where it was not fetched the test is skipped, or fails if it is one
    of those that every run has."""

    def find(name: str) -> Path:
        path = ROOT / ".cache" / "models" / name
        if not path.exists():
            missing = pytest.fail if is_pinned(name) else pytest.skip
            missing(f"{name} is not in .cache/models: run scripts/fetch tests")
        return path

    return find


@pytest.fixture
def run():
    """Runs a model in ONNX's own reference evaluator."""

    def evaluate(model, inputs: dict) -> list[np.ndarray]:
        return ReferenceEvaluator(model).run(None, inputs)

    return evaluate
