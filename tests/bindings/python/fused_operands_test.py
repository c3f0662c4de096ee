# SPDX-License-Identifier: Apache-2.0
"""Operands of ONNX Runtime's operators that do not fit are refused, on both backends alike."""

import numpy as np
import pytest
import tenon as tn
from fused_operators_test import array, results

ROWS = np.arange(160, dtype="u1").reshape(2, 80)
ANGLES = {"c": array(9, 2), "s": array(9, 2)}
HEADS = {"q": array(2, 3, 8), "k": array(2, 2, 5, 4), "v": array(2, 2, 5, 4)}
WRONG = {
    "skip": (
        "SkipSimplifiedLayerNormalization",
        {"x": array(1, 2, 4), "k": array(3, 2, 4), "g": array(4)},
        {},
        "skip: expected the shape of x",
    ),
    "positions": (
        "RotaryEmbedding",
        {"x": array(4, 2, 4), "p": np.zeros((1, 2), "i8"), **ANGLES},
        {"num_heads": 1},
        r"position_ids: expected \[batch, s\] of x",
    ),
    "scales": (
        "GatherBlockQuantized",
        {"d": ROWS, "i": np.array([0, 1]), "s": array(3, 5)},
        {"bits": 8, "block_size": 16},
        "scales: expected the rows of data",
    ),
    "zero points": (
        "GatherBlockQuantized",
        {"d": ROWS, "i": np.array([0, 1]), "s": array(2, 5), "z": np.zeros((3, 5), "u1")},
        {"bits": 8, "block_size": 16},
        "zero_points: expected the rows of data",
    ),
    "bias": (
        "MultiHeadAttention",
        HEADS | {"b": array(8)},
        {"num_heads": 2},
        "bias: expected 24 numbers",
    ),
    "mask": (
        "Attention",
        {"x": array(1, 2, 6), "w": array(6, 24), "b": array(24), "m": np.ones((2, 1), "i4")},
        {"num_heads": 2},
        "its pieces give|expected",
    ),
    "heads": (
        "MultiHeadAttention",
        HEADS | {"v": array(2, 1, 5, 4)},
        {"num_heads": 2},
        "key and value: expected 2 heads",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_operands_that_do_not_fit_are_refused(tmp_path, name):
    op, inputs, attributes, message = WRONG[name]
    with pytest.raises(tn.TenonError, match=message):
        results(tmp_path, op, inputs, **attributes)
