# SPDX-License-Identifier: Apache-2.0
"""Traced values are indexed as NumPy's arrays are."""

import numpy as np
import pytest
import tenon as tn

X = np.random.default_rng(3).standard_normal((3, 4, 5)).astype("float32")
ROW = np.array([2, 0, -1])
TABLE = np.array([[2, 0], [1, 1]])
ONE = np.array(1)

KEYS = {
    "an array beside None": (TABLE, None),
    "an array between slices and None": (None, slice(1, None), TABLE, None),
    "an integer beside an array": (slice(None), 0, ROW),
    "an integer apart from an array": (0, slice(None), ROW),
    "an integer apart, and None": (0, None, slice(None), ROW),
    "an integer kept apart by nothing": (slice(None), 0, ..., ROW),
    "two arrays apart": (ROW, slice(None), ROW),
    "two arrays on the last axes": (slice(1, 3), ROW, ROW),
    "arrays that are broadcast": (TABLE, ROW[:2]),
    "an array without axes": (slice(None), ONE, None),
    "an array without axes, apart": (ONE, slice(None), ROW),
    "a list without numbers": (slice(None), []),
    "truth values": (np.array([True, False, True]),),
    "a list of truth values": (slice(None), [True, False, True, True]),
    "truth values of two axes": (np.arange(12).reshape(3, 4) % 5 < 2,),
    "truth values beside an array": (np.array([True, False, True]), slice(1, 3), ROW[:2]),
    "truth values behind others": (..., None, np.arange(5) > 2),
    "no true one": (np.zeros(3, bool),),
    "int8": (slice(None), ROW.astype("int8")),
    "uint8": (np.abs(ROW).astype("uint8"),),
    "int16": (np.int16(1), ROW.astype("int16")),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_arrays_put_their_axes_where_numpy_does(key):
    got = tn.jit(lambda x: x[key])(X)
    assert got.shape == X[key].shape
    np.testing.assert_array_equal(got, X[key])


def test_a_traced_number_is_an_index():
    np.testing.assert_array_equal(tn.jit(lambda x, i: x[i, None])(X, ONE), X[1, None])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "uint64"])
def test_places_to_take_have_any_integer_type(dtype):
    places = np.array([2, 0], dtype)
    np.testing.assert_array_equal(tn.take(X, places, axis=1), np.take(X, places, axis=1))
    along = places.reshape(1, 1, 2)
    got = tn.jit(lambda x, i: tn.take_along_axis(x, i))(X[:1, :1], along)
    np.testing.assert_array_equal(got, X[:1, :1, [2, 0]])


def test_floats_are_no_index():
    with pytest.raises(IndexError, match="expected an index of integers, got float32"):
        tn.jit(lambda x: x[np.float32([1.5])])(X)


WRITTEN = {  # a key, and the shape of what is written there
    "one axis": ((np.array([2, 0, 2, 2]),), (4,)),
    "rows": ((np.array([1, -2, 1]),), (3, 2)),
    "pairs": ((np.array([0, 1, 0]), np.array([1, 1, -1])), (3,)),
    "behind a slice": ((slice(None), np.array([1, 0, 1])), (3, 3)),
    "own places": ((np.array([0, 2]),), (2, 2)),
}


@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize(("key", "shape"), WRITTEN.values(), ids=WRITTEN.keys())
def test_of_what_is_written_to_one_place_only_what_stays_has_a_slope(key, shape, is_traced):
    rng = np.random.default_rng(7)
    x = rng.standard_normal(4 if len(shape) == 1 and len(key) == 1 else (3, 2)).astype("f")
    weights, y = rng.standard_normal(x.shape).astype("f"), rng.standard_normal(shape).astype("f")
    arrays = [item for item in key if not isinstance(item, slice)] if is_traced else []

    def f(y, *arrays):
        items = iter(arrays)
        own = [item if isinstance(item, slice) else next(items, item) for item in key]
        return (tn.asarray(x).at[tuple(own)].set(y) * weights).sum()

    numbers = np.full(x.shape, -1)
    numbers[key] = np.arange(y.size).reshape(shape)
    kept = np.zeros(y.size, "f")
    for place in np.ndindex(x.shape):
        if numbers[place] >= 0:
            kept[numbers[place]] = weights[place]
    kept = kept.reshape(shape)
    np.testing.assert_array_equal(tn.grad(f)(y, *arrays), kept)
    moved = tn.jit(lambda y, *a: tn.jvp(lambda y: f(y, *a), (y,), (y,))[1])(y, *arrays)
    np.testing.assert_allclose(moved, (kept * y).sum(), 1e-5, 1e-6)
    many = tn.vmap(tn.grad(f), in_axes=(0, *[None] * len(arrays)))(np.stack([y, 2 * y]), *arrays)
    np.testing.assert_array_equal(many, np.stack([kept, kept]))


def test_elements_where_truth_values_that_are_known_are_true():
    mask = X > 0.5
    got = tn.jit(lambda x: x.at[mask].set(0))(X)
    np.testing.assert_array_equal(got, np.where(mask, 0, X))
    with pytest.raises(IndexError, match=r"expected \[3\] truth values, got \[2\]"):
        tn.jit(lambda x: x[np.array([True, False])])(X)


def test_a_slice_from_a_traced_number_names_what_to_use():
    with pytest.raises(tn.TracedValueError, match=r"tn\.take\(x, i \+ tn\.arange\(2\), axis=1\)"):
        tn.jit(lambda x, i: x[:, i : i + 2])(X, ONE)
    got = tn.jit(lambda x, i: tn.take(x, i + tn.arange(2), axis=1))(X, ONE)
    np.testing.assert_array_equal(got, X[:, 1:3])


def test_limits_of_a_slice_are_integers():
    with pytest.raises(IndexError, match="expected integers as limits of a slice, got float"):
        tn.jit(lambda x: x[1.5:])(X)


def test_axes_of_size_1_in_front_of_what_is_put_somewhere_count_for_nothing():
    row = np.ones((1, 1, *X.shape[1:]), "float32")
    got = tn.jit(lambda x, row: x.at[0].set(row))(X, row)
    np.testing.assert_array_equal(got, np.concatenate([row[0], X[1:]]))
