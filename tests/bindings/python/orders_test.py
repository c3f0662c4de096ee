# SPDX-License-Identifier: Apache-2.0
"""Orders and extremes of short and of long rows, by whichever way they are found, as NumPy's."""

import numpy as np
import pytest
import tenon as tn

KINDS = ("float32", "float64", "float16", "int8", "uint8", "int32", "uint32", "int64", "uint64")


def numbers(kind, *shape):
    """Few of them, so that many are equal, and both ends of the type."""
    random = np.random.default_rng(7)
    x = random.integers(0, 9, shape).astype(kind)
    if np.dtype(kind).kind == "f":
        x = x - np.asarray(4, kind)
        x[random.random(shape) < 0.05] = np.inf
        x[random.random(shape) < 0.05] = -np.inf
        x[random.random(shape) < 0.1] = -0.0
    else:
        x[random.random(shape) < 0.1] = np.iinfo(kind).max
        x[random.random(shape) < 0.1] = np.iinfo(kind).min
    return x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 100), (5, 2), (17, 33), (2, 9, 256), (9, 257), (4, 1)])
def test_sorts_keep_the_order_of_equal_numbers(kind, shape):
    x = numbers(kind, *shape)
    for axis in range(len(shape)):
        order = np.argsort(x, axis=axis, stable=True)
        got = tn.argsort(x, axis=axis)
        np.testing.assert_array_equal(got, order)
        # Bit for bit: zeros keep their sign.
        want = np.take_along_axis(x, order, axis)
        assert np.asarray(tn.sort(x, axis=axis)).tobytes() == want.tobytes()
        np.testing.assert_array_equal(
            tn.sort(x, axis=axis, descending=True), np.flip(np.sort(x, axis=axis), axis)
        )


@pytest.mark.parametrize("kind", ("float16", "float32", "float64"))
def test_sorts_put_nan_last(kind):
    x = numbers(kind, 20, 90)
    x[:, 5::7] = np.nan
    np.testing.assert_array_equal(tn.sort(x, axis=1), np.sort(x, axis=1))
    np.testing.assert_array_equal(tn.argsort(x, axis=1), np.argsort(x, axis=1, stable=True))
    np.testing.assert_array_equal(tn.sort(x, axis=0), np.sort(x, axis=0))


@pytest.mark.parametrize("kind", (*KINDS, "bool"))
@pytest.mark.parametrize("n", (1, 127, 128, 129, 1024, 1025, 5000))
def test_the_first_of_equal_extremes_is_found(kind, n):
    x = numbers(kind, 3, n) if kind != "bool" else np.arange(3 * n).reshape(3, n) % 5 == 3
    for ours, theirs in ((tn.argmax, np.argmax), (tn.argmin, np.argmin)):
        np.testing.assert_array_equal(ours(x, axis=1), theirs(x, axis=1))
        np.testing.assert_array_equal(ours(x), theirs(x))


@pytest.mark.parametrize("kind", ("float16", "float32", "float64"))
@pytest.mark.parametrize("at", (0, 900, 1024, 2999))
def test_nan_is_the_extreme_of_a_long_row(kind, at):
    x = np.ones(3000, kind)
    x[at:] = np.nan
    assert int(tn.argmax(x)) == int(tn.argmin(x)) == at


def test_the_last_of_equal_extremes_is_found_on_demand():
    for kind in ("float32", "int64", "float64"):
        x = numbers(kind, 2, 3000)
        for op, extreme in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
            got = tn.op(op, x, axis=1, keepdims=0, select_last_index=1)
            np.testing.assert_array_equal(got, 2999 - extreme(x[:, ::-1], axis=1))


@pytest.mark.parametrize("kind", (*KINDS, "bool"))
@pytest.mark.parametrize("n", (1, 2, 4, 16, 17))
def test_short_rows_reduce_as_long_ones_do(kind, n):
    x = numbers(kind, 700, n) if kind != "bool" else np.arange(700 * n).reshape(700, n) % 5 == 3
    if np.dtype(kind).kind == "f":
        x[3, n // 2] = np.nan
    for axis in (0, 1):
        np.testing.assert_array_equal(tn.any(x, axis=axis), np.any(x, axis=axis))
        np.testing.assert_array_equal(tn.all(x, axis=axis), np.all(x, axis=axis))
        if kind == "bool":
            continue
        np.testing.assert_array_equal(tn.max(x, axis=axis), np.max(x, axis=axis))
        np.testing.assert_array_equal(tn.min(x, axis=axis), np.min(x, axis=axis))
    if np.dtype(kind).kind != "f":
        np.testing.assert_array_equal(tn.sum(x, axis=1), np.sum(x, axis=1))
