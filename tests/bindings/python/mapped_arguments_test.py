# SPDX-License-Identifier: Apache-2.0
"""Arguments of a function under vmap: by keyword, of a size that varies, and no arrays."""

import numpy as np
import pytest
import tenon as tn

X, W = np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(3, 2) + 1


def test_arguments_by_keyword_are_mapped_over_their_first_axis():
    def f(x, w):
        return x @ w["a"]

    np.testing.assert_array_equal(tn.vmap(f)(X, w={"a": W}), (X * W).sum(1))
    np.testing.assert_array_equal(tn.vmap(f)(x=X, w={"a": W}), (X * W).sum(1))
    traced = tn.jit(lambda x, w: tn.vmap(f, in_axes=(1,))(x, w={"a": w}))
    np.testing.assert_array_equal(traced(X.T, W), (X * W).sum(1))
    with pytest.raises(tn.InvalidArgument, match=r"one size of the axis, got 3 in x0, 2 in w\.a"):
        tn.vmap(f)(X, w={"a": W[:2]})
    with pytest.raises(tn.InvalidArgument, match="w: expected an array with axis 0"):
        tn.vmap(lambda x, w: x)(X, w=1.0)


@pytest.mark.parametrize("by_name", [False, True])
def test_static_arguments_reach_the_function_as_they_are(by_name):
    f = tn.vmap(lambda x, how: x * 2 if how == "twice" else x, static_argnums=1)
    call = (lambda how: f(X, how=how)) if by_name else (lambda how: f(X, how))
    np.testing.assert_array_equal(call("twice"), 2 * X)
    np.testing.assert_array_equal(call("once"), X)


def test_the_number_of_examples_may_vary():
    f = tn.vmap(lambda x: x.sum() * 2, batch_axes=0)
    g = tn.jit(tn.vmap(lambda x: x.sum() * 2), batch_axes=0)
    for n in (3, 1, 2):
        np.testing.assert_array_equal(f(X[:n]), X[:n].sum(1) * 2)
        np.testing.assert_array_equal(g(X[:n]), X[:n].sum(1) * 2)
    assert f.stats.compiles == g.stats.compiles == 1


def test_an_axis_may_be_an_integer_of_numpy():
    f = tn.vmap(lambda x, y: x + y, in_axes=(np.int64(1), None), out_axes=np.int32(1))
    np.testing.assert_array_equal(f(X, np.ones(3)), X + 1)
