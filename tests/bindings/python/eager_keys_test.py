# SPDX-License-Identifier: Apache-2.0
"""Calls outside of a trace that look alike and are different: each has a graph of its own."""

import numpy as np
import pytest
import tenon as tn

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_a_truth_value_is_not_the_number_one():
    assert tn.sum(X, axis=1).shape == (2,)
    assert tn.sum(X, axis=1, keepdims=True).shape == (2, 1)
    assert tn.sum(X, axis=1, keepdims=False).shape == (2,)
    assert tn.multiply(X, True).dtype == tn.multiply(X, 1).dtype == np.float32
    assert tn.add(np.arange(3), 1.0).dtype.kind == "f"
    assert tn.add(np.arange(3), 1).dtype == np.int64


def test_zeros_of_both_signs_are_different_numbers():
    assert not np.signbit(tn.copysign(X, 0.0)).any()
    assert np.signbit(tn.copysign(X, -0.0)).all()


def test_axes_are_known_however_they_are_given():
    np.testing.assert_array_equal(tn.sum(X, axis=(0, 1)), X.sum())
    np.testing.assert_array_equal(tn.sum(X, axis=(0,)), X.sum(0))
    np.testing.assert_array_equal(tn.sum(X, axis=0), X.sum(0))
    np.testing.assert_array_equal(tn.sum(X, axis=None), X.sum())
    np.testing.assert_array_equal(tn.sum(X, keepdims=True, axis=0), X.sum(0, keepdims=True))
    np.testing.assert_array_equal(tn.sum(X, axis=0, keepdims=True), X.sum(0, keepdims=True))


def test_lists_of_arrays_have_a_length():
    for n in (1, 2, 3):
        assert tn.concat([X] * n).shape == (2 * n, 3)
        assert tn.concat((X,) * n, axis=1).shape == (2, 3 * n)
        assert tn.stack([X] * n).shape == (n, 2, 3)
    np.testing.assert_array_equal(tn.concat([X, X + 1]), np.concatenate([X, X + 1]))


def test_arrays_by_name_and_in_lists_are_arguments():
    np.testing.assert_array_equal(tn.where(X > 2, X, X + 1), np.where(X > 2, X, X + 1))
    np.testing.assert_array_equal(tn.clip(X, min=np.float32(1), max=3), np.clip(X, 1, 3))
    np.testing.assert_array_equal(tn.clip(X, min=np.full((2, 3), 2, "float32")), np.maximum(X, 2))
    np.testing.assert_array_equal(tn.clip(X, min=np.full((2, 3), 3, "float32")), np.maximum(X, 3))


def test_an_argument_of_a_wrong_kind_is_refused_each_time():
    for _ in range(2):
        with pytest.raises((TypeError, ValueError)):
            tn.sum(X, axis="rows")
        with pytest.raises((TypeError, ValueError)):
            tn.reshape(X, [X])
