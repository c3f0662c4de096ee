# SPDX-License-Identifier: Apache-2.0
"""custom_vjp: the gradient that is given is the one that is taken, under jit, vmap, and twice."""

import numpy as np
import pytest
import tenon as tn

X = np.float32([0.5, -1.25, 2.0])
ROWS = np.float32([[1, -2, 3], [0.5, 0.25, -1]])


@tn.custom_vjp
def sign(x):  # the straight-through estimator: a step whose gradient is that of clip
    return tn.sign(x)


sign.defvjp(
    lambda x: (tn.sign(x), x), lambda x, g: (tn.where(tn.less(tn.abs(x), 1), g, tn.zeros_like(g)),)
)


@tn.custom_vjp
def scaled(p, x):
    return {"y": p["w"] * x, "sum": x.sum()}


scaled.defvjp(
    lambda p, x: ({"y": p["w"] * x, "sum": x.sum()}, (p, x)),
    lambda kept, g: ({"w": 100 * g["y"]}, 7 * kept[1] * g["sum"]),
)


def loss(x):
    return (sign(x) * x).sum()


def wanted(x):  # of sign(x)*x, with what sign passes on
    return np.sign(x) + np.where(np.abs(x) < 1, x, 0)


def test_values_are_the_functions():
    np.testing.assert_array_equal(sign(X), np.sign(X))
    np.testing.assert_array_equal(tn.jit(sign)(X), np.sign(X))
    np.testing.assert_array_equal(tn.vmap(sign)(ROWS), np.sign(ROWS))


def test_gradients_are_those_given():
    np.testing.assert_allclose(tn.grad(loss)(X), wanted(X))
    np.testing.assert_allclose(tn.jit(tn.grad(tn.jit(loss)))(X), wanted(X))
    made = tn.grad(lambda p, x: scaled(p, x)["y"].sum() + scaled(p, x)["sum"] ** 2, argnums=(0, 1))
    by_p, by_x = made({"w": X}, X)
    np.testing.assert_allclose(by_p["w"], [100] * 3)
    np.testing.assert_allclose(by_x, 7 * X * 2 * X.sum(), rtol=1e-6)


def test_vmap_keeps_them_on_either_side():
    np.testing.assert_allclose(tn.vmap(tn.grad(loss))(ROWS), wanted(ROWS))
    np.testing.assert_allclose(tn.grad(lambda x: tn.vmap(loss)(x).sum())(ROWS), wanted(ROWS))
    twice = tn.grad(lambda x: tn.vmap(tn.vmap(lambda v: sign(v) * v))(x).sum())
    np.testing.assert_allclose(twice(ROWS), wanted(ROWS))
    # An argument that is the same for all examples gets the sum of their gradients.
    one = tn.grad(lambda w: tn.vmap(lambda x: scaled({"w": w}, x)["y"].sum())(ROWS).sum())
    np.testing.assert_allclose(one(X), [200] * 3)


def test_gradients_are_taken_again():
    @tn.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, g: (g * 3 * x**2,))
    second = tn.grad(lambda x: tn.grad(lambda v: cube(v).sum())(x).sum())
    np.testing.assert_allclose(second(X), 6 * X, rtol=1e-6)
    np.testing.assert_allclose(tn.hessian(lambda v: cube(v).sum())(X), np.diag(6 * X), rtol=1e-5)


def test_shapes_and_types_have_graphs_of_their_own():
    both = tn.jit(lambda x, y: (sign(x), sign(y)))
    for x, y in ((X, ROWS), (X, X.astype("float64"))):
        for mine, numpys in zip(both(x, y), (x, y)):
            np.testing.assert_array_equal(mine, np.sign(numpys))


def test_it_works_in_loops():
    f = tn.grad(lambda x: tn.fori_loop(0, 2, lambda i, s: sign(s) * s, x).sum())
    inner = np.abs(X)
    np.testing.assert_allclose(f(X), wanted(inner) * wanted(X), rtol=1e-6)


def test_what_does_not_fit_is_refused():
    @tn.custom_vjp
    def f(x):
        return x * 2

    with pytest.raises(TypeError, match="use defvjp"):
        f(X)
    f.defvjp(lambda x: (x * 2, None), lambda _, g: g)
    with pytest.raises(TypeError, match="expected a tuple of 1 gradients"):
        f(X)
    f.defvjp(lambda x: (x * 2, None), lambda _, g: (g.sum(),))
    with pytest.raises(TypeError, match=r"expected a gradient like <traced float32\[3\]>"):
        f(X)
    f.defvjp(lambda x: (x * 2, None), lambda _, g: (g,))
    with pytest.raises(TypeError, match="make it an argument"):

        def use(x, y):
            captured = tn.custom_vjp(lambda v: v * y)
            captured.defvjp(lambda v: (v * y, None), lambda _, g: (g,))
            return captured(x)

        tn.jit(use)(X, X)


def test_a_checkpoint_may_hold_control_flow_and_another_checkpoint():
    x = np.float32([0.5, -1.0, 2.0])
    loops = lambda x: tn.scan(lambda s, y: (s + y, s * y), x[0], x)[1]  # noqa: E731
    twice = lambda x: tn.checkpoint(loops)(tn.checkpoint(tn.tanh)(x))  # noqa: E731
    for f, plain in ((loops, loops), (twice, lambda x: loops(tn.tanh(x)))):
        kept = tn.checkpoint(f)
        np.testing.assert_allclose(tn.jit(kept)(x), tn.jit(plain)(x), rtol=1e-6)
        total = lambda x, f=kept: f(x).sum()  # noqa: E731
        want = tn.grad(lambda x, f=plain: f(x).sum())(x)
        np.testing.assert_allclose(tn.grad(total)(x), want, rtol=1e-6)


def test_a_number_among_the_arguments_takes_the_type_of_what_it_meets():
    @tn.custom_vjp
    def times(x, a):
        return x * a

    times.defvjp(lambda x, a: (x * a, a), lambda a, g: (g * a, None))
    x = np.array([1.0])
    assert times(x, 0.1) == tn.jit(lambda x: times(x, 0.1))(x) == 0.1
    assert tn.grad(lambda x: times(x, 0.1).sum())(x) == 0.1
    assert times(np.ones(2, "float16"), 0.5).dtype == "float16"


@pytest.mark.parametrize("backend", ["reference", "onednn"])
def test_a_checkpoint_may_hand_its_argument_on(backend):
    handed = tn.jit(tn.checkpoint(lambda x: x), backend=backend)
    assert handed(np.ones(2, "f")).tolist() == [1, 1]
    both = tn.jit(lambda x: tn.checkpoint(lambda v: v)(x) + x, backend=backend)
    assert both(np.ones(2, "f")).tolist() == [2, 2]
