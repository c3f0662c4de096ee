# SPDX-License-Identifier: Apache-2.0
"""jacfwd, jacrev and hessian against closed forms; x.at[...] against NumPy's assignment."""

import numpy as np
import pytest
import tenon as tn

rng = np.random.default_rng(3)
W = rng.standard_normal((4, 3)).astype("float32")
X = rng.standard_normal(3).astype("float32")


@pytest.mark.parametrize("jacobian", [tn.jacfwd, tn.jacrev])
def test_the_jacobian_of_a_layer(jacobian):
    y = np.tanh(W @ X)
    want = (1 - y**2)[:, None] * W
    f = lambda x: tn.tanh(W @ x)  # noqa: E731
    np.testing.assert_allclose(jacobian(f)(X), want, rtol=1e-5)
    np.testing.assert_allclose(tn.jit(jacobian(tn.jit(f)))(X), want, rtol=1e-5)
    rows = rng.standard_normal((5, 3)).astype("float32")
    many = tn.vmap(jacobian(f))(rows)
    np.testing.assert_allclose(many, [jacobian(f)(row) for row in rows], rtol=1e-5)


@pytest.mark.parametrize("jacobian", [tn.jacfwd, tn.jacrev])
def test_arguments_and_results_of_several_axes_and_in_trees(jacobian):
    def f(p, x):
        return {"y": p["w"] @ x + p["b"], "s": (x * x).sum()}

    p = {"w": W, "b": np.ones(4, "float32")}
    made = jacobian(f, argnums=(0, 1))(p, X)
    by_p, by_x = made["y"]
    want = np.einsum("ik,j->ikj", np.eye(4), X)
    np.testing.assert_allclose(by_p["w"], want, rtol=1e-6)
    np.testing.assert_allclose(by_p["b"], np.eye(4))
    np.testing.assert_allclose(by_x, W, rtol=1e-6)
    np.testing.assert_allclose(made["s"][1], 2 * X, rtol=1e-6)
    np.testing.assert_allclose(made["s"][0]["w"], 0 * W)


def test_the_hessian_of_a_cubic_form():
    f = lambda x: (x**2 * (W @ x).sum()).sum()  # noqa: E731
    c = W.sum(0)
    want = 2 * np.diag(np.full(3, c @ X)) + 2 * np.outer(X, c) + 2 * np.outer(c, X)
    np.testing.assert_allclose(tn.hessian(f)(X), want, rtol=1e-4, atol=1e-5)


def test_what_has_no_slopes_is_refused():
    with pytest.raises(TypeError, match="jacrev: result: expected floats"):
        tn.jacrev(lambda x: x > 0)(X)
    with pytest.raises(tn.InvalidArgument, match="jacrev: argument: expected floats"):
        tn.jacrev(lambda x, i: x * i, argnums=(0, 1))(X, np.int64([1, 2, 3]))
    with pytest.raises(tn.InvalidArgument, match="jacfwd: argument: expected floats"):
        tn.jacfwd(lambda x: x * 2.0)(np.int64([1, 2]))


IMAGE = rng.standard_normal((3, 4, 5)).astype("float32")
KEYS = {
    "an integer": (1,),
    "integers": (1, -2, 0),
    "slices": (slice(None, None, 2), slice(1, 3)),
    "a step back": (slice(None, None, -1), 2),
    "an ellipsis": (..., 1),
    "a new axis": (None, 2),
    "an array": (np.int64([2, 0]),),
    "arrays": (np.int64([2, 0]), slice(None), np.int64([1, 1])),
    "a place twice": (np.int64([2, 0, -1]),),
    "arrays of the first axes": (np.int64([[2], [0]]), np.int64([1, 3, 1])),
    "arrays of all axes": (np.int64([2, 2]), np.int64([1, 1]), np.int64([-1, 4])),
    "arrays behind an ellipsis": (..., np.int64([1, 0])),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_at_is_an_assignment(key):
    want = {name: IMAGE.copy() for name in ("set", "add", "multiply", "max", "min")}
    want["set"][key] = 7
    np.add.at(want["add"], key, 0.5)
    np.multiply.at(want["multiply"], key, 3)
    np.maximum.at(want["max"], key, 0.25)
    np.minimum.at(want["min"], key, 0.25)
    given = {"set": 7, "add": 0.5, "multiply": 3, "max": 0.25, "min": 0.25}
    for name, value in given.items():
        f = tn.jit(lambda x, n=name, v=value: getattr(x.at[key], n)(v))
        np.testing.assert_allclose(f(IMAGE), want[name], rtol=1e-6, err_msg=name)
    np.testing.assert_array_equal(tn.jit(lambda x: x.at[key].get())(IMAGE), IMAGE[key])


def test_at_takes_traced_places_and_arrays_of_values():
    rows = rng.standard_normal((2, 5)).astype("float32")
    want = IMAGE[0].copy()
    want[[3, 1]] = rows
    f = tn.jit(lambda x, i, v: x.at[i].set(v))
    np.testing.assert_array_equal(f(IMAGE[0], np.int64([3, 1]), rows), want)


# Threads share the columns of wide rows; each element has its updates in order.
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "float64"])
def test_at_joins_wide_rows_in_order(dtype):
    places = rng.integers(-50, 50, 400)
    x = rng.integers(0, 100, (50, 300)).astype(dtype)
    new = rng.integers(0, 100, (400, 300)).astype(dtype)
    if dtype == "uint64":
        new += np.uint64(2**63)  # beyond int64: an unsigned comparison
    want = {name: x.copy() for name in ("set", "add", "max", "min")}
    want["set"][places] = new
    np.add.at(want["add"], places, new)
    np.maximum.at(want["max"], places, new)
    np.minimum.at(want["min"], places, new)
    for name, value in want.items():
        f = tn.jit(lambda x, i, v, n=name: getattr(x.at[i], n)(v))
        np.testing.assert_array_equal(f(x, places, new), value, err_msg=name)


def test_at_of_rows_has_gradients_and_works_under_vmap():
    places = np.int64([1, 2, 1])
    x, v = rng.standard_normal((4, 3)), rng.standard_normal((3, 3))

    def f(x, v):
        return (x.at[places].add(v) ** 2).sum() + (x.at[np.int64([0, 3, 1])].set(v) ** 3).sum()

    added = x.copy()
    np.add.at(added, places, v)
    kept = np.float64([0, 0, 1, 0])[:, None]
    by_x, by_v = tn.grad(f, argnums=(0, 1))(x, v)
    np.testing.assert_allclose(by_x, 2 * added + kept * 3 * x**2)
    np.testing.assert_allclose(by_v, 2 * added[places] + 3 * v**2)
    many = np.stack([x, 2 * x])
    got = tn.vmap(lambda x, i: x.at[i].add(v[:2]))(many, np.int64([[0, 0], [3, 1]]))
    want = many.copy()
    np.add.at(want[0], [0, 0], v[:2])
    np.add.at(want[1], [3, 1], v[:2])
    np.testing.assert_allclose(got, want)


def test_at_has_gradients_and_works_under_vmap():
    v = np.float32([2, 3])
    f = lambda x, v: (x.at[1:].set(v) ** 3).sum() + (x.at[np.array([0, 0])].add(v) ** 2).sum()  # noqa: E731
    by_x, by_v = tn.grad(f, argnums=(0, 1))(X, v)
    first = X[0] + v.sum()
    np.testing.assert_allclose(by_x, [3 * X[0] ** 2 + 2 * first, 2 * X[1], 2 * X[2]], rtol=1e-5)
    np.testing.assert_allclose(by_v, 3 * v**2 + 2 * first, rtol=1e-5)
    many = rng.standard_normal((4, 3)).astype("float32")
    got = tn.vmap(lambda x: x.at[1].set(x[0]))(many)
    np.testing.assert_array_equal(got, many[:, [0, 0, 2]])
    slopes = tn.vmap(tn.grad(lambda x: (x.at[1].add(x[0]) ** 2).sum()))(many)
    second = 2 * (many[:, 0] + many[:, 1])
    want = np.stack([2 * many[:, 0] + second, second, 2 * many[:, 2]], 1)
    np.testing.assert_allclose(slopes, want, rtol=1e-5)


def test_at_refuses_what_an_index_refuses():
    with pytest.raises(IndexError, match="index 9 of axis 0"):
        tn.jit(lambda x: x.at[9].set(0))(X)
    with pytest.raises(tn.TracedValueError, match=r"use tn\.where"):
        tn.jit(lambda x: x.at[x > 0].set(0))(X)
    with pytest.raises(tn.TracedValueError, match=r"x\.at\[i\]\.set"):
        tn.jit(lambda x: x.__setitem__(0, 1))(X)


def test_numpys_functions_are_tenons_of_the_same_name():
    f = tn.jit(
        lambda x: (
            np.sum(x, axis=0),
            np.concatenate([x, x]),
            np.where(x > 0, x, 0),
            np.clip(x, -1, 1),
            np.cumsum(x, axis=0),
            np.transpose(x[None]),
        )
    )
    want = (X.sum(0), np.concatenate([X, X]), np.where(X > 0, X, 0), np.clip(X, -1, 1))
    want += (np.cumsum(X, 0), X[:, None])
    for mine, numpys in zip(f(X), want):
        np.testing.assert_allclose(mine, numpys, rtol=1e-6)


def test_those_that_there_are_not_say_so():
    with pytest.raises(tn.TracedValueError, match=r"np\.correlate: .*none of that name"):
        tn.jit(lambda x: np.correlate(x, x))(X)
    with pytest.raises(tn.TracedValueError, match=r"np\.percentile: .*use tn\.quantile"):
        tn.jit(lambda x: np.percentile(x, 50))(X)
    with pytest.raises(tn.TracedValueError, match=r"np\.sum became tn\.sum"):
        tn.jit(lambda x: np.sum(x, where=X > 0))(X)


def test_a_product_of_nothing_bends_nowhere():
    nothing = np.zeros(0, "float32")
    assert np.asarray(tn.hessian(lambda x: tn.sum(x @ x))(nothing)).shape == (0, 0)

    stack, weights = np.zeros((3, 2, 0), "float32"), np.zeros((0, 4), "float32")
    by_weights = tn.grad(lambda w: tn.sum(stack @ w))(weights)
    assert np.asarray(by_weights).shape == (0, 4)


@pytest.mark.parametrize("backend", ["reference", "onednn"])
def test_the_second_slope_of_a_maximum_is_of_each_example(backend):
    slope = tn.grad(lambda x: tn.sum(tn.max_pool(x, 2, stride=2) ** 3))
    bend = tn.grad(lambda x: tn.sum(slope(x) ** 2), backend=backend)
    images = rng.standard_normal((3, 1, 2, 4, 4)).astype("float32")
    many = tn.vmap(bend, backend=backend)(images)
    np.testing.assert_allclose(many, [bend(image) for image in images], rtol=1e-4)
