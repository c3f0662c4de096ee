# SPDX-License-Identifier: Apache-2.0
"""Single functions of arrays on `onednn`: how many steps they take, and NumPy's numbers."""

import numpy as np
import pytest
import tenon as tn

rng = np.random.default_rng(3)


def kernels_of(function):
    layers = [p.get("layers", []) for p in function.describe()["partitions"]]
    return [layer["kernel"] for part in layers for layer in part]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_a_stack_is_one_copy(axis, dtype):
    x, y = rng.integers(0, 2, (2, 30, 40)).astype(dtype)
    stacked = tn.jit(lambda x, y: tn.stack([x, y], axis=axis))
    np.testing.assert_array_equal(stacked(x, y), np.stack([x, y], axis))
    if axis in (0, 1):
        assert kernels_of(stacked) == ["tenon:concat"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 1001])
def test_slices_with_negative_steps_are_numpys(n, dtype):
    x = rng.integers(0, 100, (3, n)).astype(dtype)
    got = tn.jit(lambda x: (x[:, ::-1], x[::-1, ::-2], x[0, ::-1], x[:, -2:0:-3]))(x)
    want = x[:, ::-1], x[::-1, ::-2], x[0, ::-1], x[:, -2:0:-3]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_places_of_what_is_not_zero_are_numpys():
    for shape in ((0,), (1,), (10_000,), (3, 0), (70, 90), (5, 6, 7)):
        for dtype in ("bool", "int8", "int64", "uint64", "float16", "float32", "float64"):
            x = rng.integers(0, 3, shape).astype(dtype)
            if dtype.startswith("float") and x.size:
                x.flat[0], x.flat[-1] = np.nan, -0.0
            for got, want in zip(tn.nonzero(x), np.nonzero(x), strict=True):
                np.testing.assert_array_equal(got, want, f"{shape} {dtype}")
