# SPDX-License-Identifier: Apache-2.0
"""Trees that stand beside each other: their items are matched by key, and their shapes are
compared."""

import numpy as np
import pytest
import tenon as tn

P = {"a": np.full(2, 3.0), "b": np.full(2, 5.0)}


def f(p):
    return {"u": p["a"] * 2, "v": p["b"] * 3}


def same(got, wanted):
    assert list(got) == list(wanted)
    for key, value in wanted.items():
        np.testing.assert_allclose(got[key], value, rtol=1e-6)


@pytest.mark.parametrize("under", [lambda f: f, tn.jit])
def test_tangents_and_cotangents_are_found_by_their_keys(under):
    tangent = {"b": np.zeros(2), "a": np.ones(2)}
    same(under(lambda t: tn.jvp(f, (P,), (t,))[1])(tangent), {"u": [2, 2], "v": [0, 0]})
    weight = {"v": np.zeros(2), "u": np.ones(2)}
    same(under(lambda w: tn.vjp(f, P)[1](w)[0])(weight), {"a": [2, 2], "b": [0, 0]})


def test_gradients_of_a_rule_are_found_by_their_keys():
    scaled = tn.custom_vjp(lambda p: (p["a"] * 2 + p["b"] * 3).sum())
    scaled.defvjp(
        lambda p: ((p["a"] * 2 + p["b"] * 3).sum(), None),
        lambda _, g: ({"b": g * np.full(2, 3.0), "a": g * np.full(2, 2.0)},),
    )
    same(tn.grad(scaled)(P), {"a": [2, 2], "b": [3, 3]})


@pytest.mark.parametrize("which", [True, False])
def test_branches_are_matched_by_key(which):
    def ordered(x):
        return {"a": x, "b": x * 2}

    def reordered(x):
        return {"b": x * 2, "a": x}

    given = tn.cond(np.array(which), ordered, reordered, np.ones(2))
    same(given, {"a": [1, 1], "b": [2, 2]})


def test_states_are_matched_by_key():
    def step(c, x):
        return {"b": c["b"] + x, "a": c["a"] * x}, x

    first = {"a": np.array(1.0), "b": np.array(0.0)}
    same(tn.scan(step, first, np.arange(1.0, 4.0))[0], {"a": 6, "b": 6})
    same(tn.fori_loop(1, 4, lambda i, c: step(c, i)[0], first), {"a": 6, "b": 6})
    last = tn.while_loop(lambda c: c["b"] < 2.5, lambda c: step(c, 2.0)[0], first)
    same(last, {"a": 4, "b": 4})


def test_trees_of_another_structure_name_the_key():
    pull = tn.vjp(f, P)[1]
    with pytest.raises(TypeError, match=r"cotangents: expected the keys 'u', 'v', got none.*'u'"):
        pull({"v": np.ones(2), "w": np.ones(2)})
    with pytest.raises(TypeError, match=r"cotangents: .*got one of the name 'w'"):
        pull({"v": np.ones(2), "u": np.ones(2), "w": np.ones(2)})
    with pytest.raises(TypeError, match=r"cotangents\.u: expected an array.*got a tuple"):
        pull({"v": np.ones(2), "u": (np.ones(2),)})
    with pytest.raises(TypeError, match=r"tangents\.0: expected a dict, got a ndarray"):
        tn.jvp(f, (P,), (np.ones(2),))
    with pytest.raises(TypeError, match=r"cond: .*\.b: expected a tuple, got a list"):
        tn.cond(True, lambda: {"b": (1.0,)}, lambda: {"b": [1.0]})


def test_cotangents_and_tangents_have_the_shapes_of_what_they_stand_for():
    x = np.ones(3)
    with pytest.raises(tn.InvalidArgument, match=r"cotangents: .*shape \[3\], got \[2, 3\]"):
        tn.vjp(lambda x: x * 2, x)[1](np.ones((2, 3)))
    with pytest.raises(tn.InvalidArgument, match=r"cotangents: .*shape \[3\], got \[\]"):
        tn.jit(lambda x: tn.vjp(lambda x: x * 2, x)[1](1.0))(x)
    with pytest.raises(tn.InvalidArgument, match=r"tangents: .*shape \[3\], got \[1\]"):
        tn.jvp(lambda x: x * 2, (x,), (np.ones(1),))


def test_integers_do_not_move():
    def picked(x, i):
        return x[i] * 2, i

    x, i = np.arange(4.0), np.array([1, 1])
    value, pull = tn.vjp(picked, x, i)
    np.testing.assert_array_equal(value[0], [2, 2])
    slope, none = pull((np.ones(2), None))
    np.testing.assert_array_equal(slope, [0, 4, 0, 0])
    assert none is None
    _, moved = tn.jvp(picked, (x, i), (np.ones(4), None))
    np.testing.assert_array_equal(moved, [[2, 2], [0, 0]])
    with pytest.raises(tn.InvalidArgument, match="expected None for an argument of int64"):
        tn.jvp(picked, (x, i), (np.ones(4), np.ones(2)))
    with pytest.raises(tn.InvalidArgument, match="an argument of a float type.*got int64"):
        tn.vjp(lambda i: i, i)


def test_axes_of_results_are_found_by_their_keys():
    mapped = tn.vmap(lambda x: {"a": x, "b": x * 2}, out_axes={"b": 1, "a": 0})
    given = mapped(np.ones((3, 2)))
    assert (given["a"].shape, given["b"].shape) == ((3, 2), (2, 3))
    with pytest.raises(ValueError, match="vmap: out_axes: expected one axis for all, or a tree"):
        tn.vmap(lambda x: {"a": x}, out_axes={"b": 1})(np.ones((3, 2)))


def test_positions_may_be_numbers_of_numpy():
    assert tn.grad(lambda x, y: x * y, argnums=np.int64(1))(2.0, 3.0) == 2
