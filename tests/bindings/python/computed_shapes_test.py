# SPDX-License-Identifier: Apache-2.0
"""Shapes that a graph computes from shapes by arithmetic are inferred, with and without numbers."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import INT64, constant, info, model_of, ran

INT32 = 6


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def reshaped(tmp_path, arithmetic, constants, type_=INT64):
    """x [m, n] with m as `m` and n as `n`, reshaped to `rows`, which is computed, and -1."""
    nodes = [
        node("Shape", "x", "m64", end=1),
        node("Shape", "x", "n64", start=1),
        node("Cast", "m64", "m", to=type_),
        node("Cast", "n64", "n", to=type_),
        *arithmetic,
        node("Cast", "rows", "rows64", to=INT64),
        node("Concat", "rows64 rest", "to", axis=0),
        node("Reshape", "x to", "y"),
    ]
    numbers = {"rest": np.array([-1]), **constants}
    made = [constant(name, value) for name, value in numbers.items()]
    return ran(tmp_path, model_of(nodes, [info("x", ["m", "n"])], ["y"], made))


CASES = {
    "sum": ([node("Add", "m n", "rows")], {}, lambda m, n: m + n, "m+n"),
    "one more": ([node("Add", "m one", "rows")], {"one": np.array([1])}, lambda m, n: m + 1, "m+1"),
    "difference": ([node("Sub", "m one", "rows")], {"one": np.array([1])},
                   lambda m, n: m - 1, "m-1"),
    "product": ([node("Mul", "two m", "rows")], {"two": np.array([2])}, lambda m, n: 2 * m, "m*2"),
    "half": ([node("Div", "m two", "rows")], {"two": np.array([2])}, lambda m, n: m // 2, "m/2"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_symbols_stay(tmp_path, name) -> None:
    arithmetic, constants, _, text = CASES[name]
    model = reshaped(tmp_path, arithmetic, constants)
    assert model.outputs[0].shape[0] == text


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("type_", [INT64, INT32])
def test_runs_have_these_sizes(tmp_path, name, type_) -> None:
    arithmetic, constants, rows, _ = CASES[name]
    constants = {
        key: value.astype("i8" if type_ == INT64 else "i4") for key, value in constants.items()
    }
    model = reshaped(tmp_path, arithmetic, constants, type_)
    for m, n in ((2, 2), (4, 12), (6, 210)):
        x = np.arange(m * n, dtype="f").reshape(m, n)
        if x.size % rows(m, n) == 0:
            np.testing.assert_array_equal(model(x), x.reshape(rows(m, n), -1))


def test_division_is_toward_zero(tmp_path) -> None:
    """What stands for no size is computed as integers are: -7 / 2 is -3, so that y has 3 rows."""
    arithmetic = [
        node("Sub", "m ten", "less"),
        node("Div", "less two", "quotient"),
        node("Mul", "quotient minus", "rows"),
    ]
    constants = {"ten": np.array([10]), "two": np.array([2]), "minus": np.array([-1])}
    model = reshaped(tmp_path, arithmetic, constants)
    x = np.arange(18, dtype="f").reshape(3, 6)
    assert model(x).shape == (3, 6)


def test_numbers_beyond_32_bits_are_not_taken_for_sizes(tmp_path) -> None:
    """2^16 * 2^16 wraps around to 0 in 32 bits, and one more is 1."""
    arithmetic = [
        node("Mul", "large large", "wrapped"),
        node("Add", "wrapped one", "rows"),
    ]
    constants = {"large": np.array([2**16], "i4"), "one": np.array([1], "i4")}
    model = reshaped(tmp_path, arithmetic, constants, INT32)
    assert model(np.ones((2, 3), "f")).shape == (1, 6)
