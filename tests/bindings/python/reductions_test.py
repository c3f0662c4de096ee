# SPDX-License-Identifier: Apache-2.0
"""Reductions of every type over every set of axes against NumPy; sums that threads share."""

import itertools

import numpy as np
import pytest
import tenon as tn

rng = np.random.default_rng(11)
SHAPES = [(7, 5, 300), (70, 513), (300, 16), (90, 37), (1, 200, 24), (3, 0, 4), (100_003,)]
SHAPES += [(2, 1, 600, 3)]
AXES = [axes for n in range(1, 5) for axes in itertools.combinations(range(4), n)]
DTYPES = ["float32", "int8", "uint8", "int32", "int64", "uint64", "float16", "float64"]
CASES = [(shape, axes) for shape in SHAPES for axes in AXES if axes[-1] < len(shape)]


def numbers(shape, dtype):
    if dtype == "bool":
        return rng.random(shape) < 0.01
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    low = 0 if dtype.startswith("u") else -100
    return rng.integers(low, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_and_extremes_are_numpys(dtype):
    tolerance = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-12}.get(dtype, 0)
    for shape, axes in CASES:
        x = numbers(shape, dtype)
        wide = x.astype("float64") if dtype == "float16" else x
        got = tn.jit(lambda x, a=axes: tn.sum(x, axis=a))(x)
        want = np.sum(wide, axis=axes)
        np.testing.assert_allclose(got, want, tolerance, tolerance, err_msg=f"{shape} {axes}")
        if all(shape[axis] > 0 for axis in axes):
            f = tn.jit(lambda x, a=axes: (tn.max(x, axis=a), tn.min(x, axis=a)))
            np.testing.assert_array_equal(f(x)[0], x.max(axis=axes), err_msg=f"{shape} {axes}")
            np.testing.assert_array_equal(f(x)[1], x.min(axis=axes), err_msg=f"{shape} {axes}")


def test_any_all_and_counts_are_numpys():
    for shape, axes in CASES:
        x = numbers(shape, "bool")
        f = tn.jit(
            lambda x, a=axes: (tn.any(x, axis=a), tn.all(~x, axis=a), tn.count_nonzero(x, axis=a))
        )
        for got, want in zip(
            f(x), (x.any(axes), (~x).all(axes), np.count_nonzero(x, axes)), strict=True
        ):
            np.testing.assert_array_equal(got, want, err_msg=f"{shape} {axes}")


def test_a_sum_is_the_same_with_any_number_of_threads():
    x = rng.standard_normal(3_000_001)
    one, two = (tn.jit(tn.sum, threads=n)(x) for n in (1, 2))
    assert one == two
    np.testing.assert_allclose(one, x.sum(), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8"])
def test_the_place_of_an_extreme_is_numpys(dtype):
    for n in (1, 7, 300, 1000):
        x = (numbers((3, n), dtype) // 20).astype(dtype)  # with equal ones, and -0 beside 0
        for name in ("argmax", "argmin"):
            find, numpys = getattr(tn, name), getattr(np, name)
            for axis in (None, 0, 1):
                got = tn.jit(lambda x, a=axis, find=find: find(x, axis=a))(x)
                np.testing.assert_array_equal(got, numpys(x, axis), f"{name} {n} {axis}")
            if np.dtype(dtype).kind == "f":
                x[1, n // 2] = x[1, n - 1] = np.nan
                np.testing.assert_array_equal(tn.jit(find)(x), numpys(x), f"{name} {n}")
                x[1] = 1
