# SPDX-License-Identifier: Apache-2.0
"""Integers that a double does not hold keep all of their bits beside arrays of 64-bit integers."""

import numpy as np
import pytest
import tenon as tn

LARGE = 2**63 + 1
GOLDEN = 0x9E3779B97F4A7C15  # of hash functions
X = np.array([1, 2**63 + 5], "uint64")
CALLS = {
    "add": (lambda x: x + LARGE, lambda x: x + np.uint64(LARGE)),
    "multiply": (lambda x: x * GOLDEN, lambda x: x * np.uint64(GOLDEN)),
    "xor": (lambda x: x ^ GOLDEN, lambda x: x ^ np.uint64(GOLDEN)),
    "less": (lambda x: x < LARGE, lambda x: x < np.uint64(LARGE)),
    "where": (lambda x: tn.where(x > 5, x, LARGE), lambda x: np.where(x > 5, x, np.uint64(LARGE))),
    "clip": (lambda x: tn.clip(x, 3, LARGE), lambda x: np.clip(x, 3, LARGE)),
    "full_like": (lambda x: tn.full_like(x, LARGE), lambda x: np.full_like(x, LARGE)),
    "asarray": (lambda x: tn.asarray(LARGE) + x, lambda x: np.uint64(LARGE) + x),
    "at": (lambda x: x.at[0].set(LARGE), lambda x: np.array([LARGE, x[1]], "uint64")),
}


@pytest.mark.parametrize("name", CALLS)
def test_unsigned_integers_keep_their_bits(name):
    ours, numpys = CALLS[name]
    got = tn.jit(ours)(X)
    with np.errstate(over="ignore"):
        wanted = numpys(X)
    assert got.dtype == wanted.dtype and np.array_equal(got, wanted)


@pytest.mark.parametrize("dtype, number", [("int64", 2**63), ("int32", 2**40), ("uint64", -1)])
def test_a_number_that_the_array_cannot_hold_is_refused(dtype, number):
    with pytest.raises(tn.InvalidArgument, match="that the element type can hold, got"):
        tn.jit(lambda x: x + number)(np.array([1], dtype))


def test_beside_floating_point_a_larger_one_is_a_number():
    assert tn.jit(lambda x: x + 2**70)(np.array([1.0])) == [2.0**70]


def test_an_axis_that_no_array_has_is_refused():
    with pytest.raises(tn.InvalidArgument, match="whole number"):
        tn.jit(lambda x: tn.sum(x, axis=2**63))(X)


SIGNED = np.array([2**53 + 1, 2**63 - 1, -1, 0], "int64")
UNSIGNED = np.array([2**53, 2**63, 2**64 - 1, 0], "uint64")
COMPARISONS = ["equal", "greater", "greater_equal", "less", "less_equal", "not_equal"]


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_comparisons_of_signed_and_unsigned_integers_are_exact(name, dtype):
    signed = SIGNED.astype(dtype)[:, None]
    for pair in ((signed, UNSIGNED), (UNSIGNED, signed)):
        assert np.array_equal(tn.jit(getattr(tn, name))(*pair), getattr(np, name)(*pair))
        floats = pair[0].astype("float64"), pair[1]
        assert np.array_equal(getattr(tn, name)(*floats), getattr(np, name)(*floats))
