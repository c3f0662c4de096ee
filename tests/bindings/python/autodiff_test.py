# SPDX-License-Identifier: Apache-2.0
"""grad, value_and_grad, vjp, jvp, vmap, and the training step."""

import numpy as np
import pytest
import tenon as tn

IDS = {one["id"] for one in tn.components("pass")}
pytestmark = pytest.mark.skipif(
    "autodiff.grad" not in IDS, reason="expected the plugin autodiff, it is not built"
)
needs_vmap = pytest.mark.skipif("autodiff.vmap" not in IDS, reason="expected autodiff.vmap")
rng = np.random.default_rng(3)


def array(*shape):
    return rng.standard_normal(shape).astype("float32")


def same(got, wanted, tolerance=1e-5):
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def test_the_founding_example():
    def sum_of_squares(x, y):
        return x**2 + y**2

    assert tn.grad(sum_of_squares)(1.5, 2.5) == 3.0
    assert tuple(map(float, tn.grad(sum_of_squares, argnums=(0, 1))(1.5, 2.5))) == (3.0, 5.0)


def test_trees_aux_and_values():
    def f(parameters, x):
        y = x @ parameters["w"] + parameters["b"]
        return (y * y).sum(), {"y": y}

    parameters = {"w": array(3, 2), "b": array(2)}
    x = array(4, 3)
    (value, more), gradient = tn.value_and_grad(f, has_aux=True)(parameters, x)
    y = x @ parameters["w"] + parameters["b"]
    same(value, (y * y).sum())
    same(more["y"], y)
    same(gradient["w"], 2 * x.T @ y)
    same(gradient["b"], 2 * y.sum(0))


def test_transforms_compose():
    assert float(tn.grad(tn.grad(lambda x: x**3))(2.0)) == 12.0
    assert float(tn.jit(tn.grad(tn.grad(tn.grad(lambda x: x**4))))(2.0)) == 48.0
    x, y = array(3), array(3)
    outer = tn.jit(lambda y: tn.grad(lambda x: (x * y * y).sum())(x) + 1)  # y is captured
    same(outer(y), y * y + 1)


def test_products_with_jacobians():
    x, weight = array(3), array(3)
    value, pull = tn.vjp(tn.sin, x)
    same(value, np.sin(x))
    same(pull(weight)[0], weight * np.cos(x))
    value, slope = tn.jvp(lambda a, b: a * tn.exp(b), (x, x), (weight, weight))
    same(slope, weight * np.exp(x) + x * np.exp(x) * weight)
    # A Hessian-vector product.
    same(tn.jvp(tn.grad(lambda x: (x**4).sum()), (x,), (weight,))[1], 12 * x**2 * weight, 1e-4)


def test_gradients_that_are_refused():
    with pytest.raises(tn.InvalidArgument, match="expected the function to give one float scalar"):
        tn.grad(lambda x: x)(array(2))
    with pytest.raises(tn.InvalidArgument, match="expected a float type.*int64"):
        tn.grad(lambda x: x.sum())(np.arange(3))
    with pytest.raises(tn.InvalidArgument, match="argnums: expected positions of 1"):
        tn.grad(lambda x: x.sum(), argnums=1)(array(2))
    with pytest.raises(tn.InvalidArgument, match="has_aux"):
        tn.grad(lambda x: x.sum(), has_aux=True)(array(2))


@needs_vmap
def test_vmap():
    same(tn.vmap(lambda a, b: a * b)(np.array([1, 2]), np.array([4, 5])), [4, 10])
    f = lambda x: x.T @ (x - x.mean(0))  # noqa: E731
    x, w = array(5, 4, 3), array(3, 2)
    same(tn.vmap(f)(x), np.stack([f(one) for one in x]), 1e-4)
    same(tn.vmap(tn.matmul, in_axes=(0, None), out_axes=1)(x, w), np.moveaxis(x @ w, 0, 1))
    per_sample = tn.vmap(tn.grad(lambda w, x: ((x @ w) ** 2).sum()), in_axes=(None, 0))
    same(per_sample(w, x)[2], 2 * x[2].T @ (x[2] @ w), 1e-4)
    with pytest.raises(tn.InvalidArgument, match="one size of the axis, got 2 in x0, 3 in x1"):
        tn.vmap(lambda a, b: a * b)(array(2), array(3))
    with pytest.raises(tn.InvalidArgument, match="expected an array with axis 0"):
        tn.vmap(lambda a: a)(1.0)


@needs_vmap
def test_vmap_of_trees_and_other_axes():
    x, y = array(4, 3), array(3)
    f = lambda p: p["x"] * p["y"]  # noqa: E731
    same(tn.vmap(f, in_axes=({"x": 0, "y": None},))({"x": x, "y": y}), x * y)
    pairs = tn.vmap(tn.vmap(tn.multiply, in_axes=(None, 0)), in_axes=(0, None))
    same(pairs(y, y), np.outer(y, y))
    same(tn.vmap(lambda a: a.sum(), in_axes=1)(x), x.sum(0))
    both = tn.vmap(lambda a: (a, a + y), out_axes=(1, 0))(x)
    same(both[0], x.T)
    same(both[1], x + y)
    same(tn.grad(lambda a: tn.vmap(lambda b: b**3)(a).sum())(y), 3 * y**2)
    with pytest.raises(tn.InvalidArgument, match="expected one axis in in_axes"):
        tn.vmap(tn.sin, in_axes=None)(x)
    with pytest.raises(tn.InvalidArgument, match="BatchNormalization.*mix the examples"):
        tn.parse(BATCH_NORM).apply("autodiff.vmap")


BATCH_NORM = """graph {
  input %x: f32[2, 3]
  constant %c: f32[3] = [1, 1, 1]
  %y: f32[2, 3], %m: f32[3], %v: f32[3] =
    BatchNormalization(%x, %c, %c, %c, %c) {training_mode = 1} @bn
  output y = %y
}"""


@needs_vmap
def test_random_numbers_under_vmap():
    ones = np.ones((3, 50), "float32")
    drop = lambda x: tn.dropout(x, 0.5)  # noqa: E731
    with pytest.raises(tn.InvalidArgument, match="Dropout.*option random: expected same"):
        tn.vmap(drop)(ones)
    alike = tn.vmap(drop, random="same")(ones)
    assert (alike == alike[0]).all()
    other = tn.vmap(drop, random="different")(ones)
    assert len({row.tobytes() for row in other}) == 3
    assert set(np.unique(other)) == {0.0, 2.0}
    # A key that differs by example needs no mode.
    keyed = tn.vmap(lambda k: tn.random_normal((50,), key=k))(np.arange(3))
    assert len({row.tobytes() for row in keyed}) == 3
    same(keyed[1], tn.random_normal((50,), key=1))


def test_random_numbers():
    drawn = tn.jit(lambda key: tn.random_uniform((1000,), key=key))
    assert (drawn(np.array([1, 2])) == drawn(np.array([1, 2]))).all()
    assert (drawn(np.array([1, 2])) != drawn(np.array([1, 3]))).any()
    assert 0 <= drawn(np.array([1, 2])).min() and abs(drawn(np.array([1, 2])).mean() - 0.5) < 0.05
    assert abs(tn.random_normal((2000,)).std() - 1) < 0.1
    x = np.ones(100, "float32")
    kept = tn.jit(lambda x, key: tn.dropout(x, 0.25, key=key))(x, 7)
    assert set(np.unique(kept)) == {np.float32(0), np.float32(1) / np.float32(0.75)}
    # The gradient is that of the mask that was drawn.
    value, slope = tn.value_and_grad(lambda x: tn.dropout(x).sum())(x)
    same(value, slope.sum())
    with pytest.raises(ValueError, match="ratio: expected a number in 0..1"):
        tn.dropout(x, 1.0)
    for key in (1.5, [1.5, 2], np.float32(1), 2**64 + 1):  # of which integers would be cut
        with pytest.raises(ValueError, match="expected whole numbers, got float"):
            tn.random_uniform((2,), key=key)


def test_stop_gradient():
    x = array(3)
    same(tn.grad(lambda x: (x * tn.stop_gradient(x)).sum())(x), x)


def test_the_node_that_makes_the_first_nan_is_named():
    f = lambda x: tn.sqrt(tn.log(x)).sum()  # noqa: E731
    strict = tn.jit(f, check_nan=True)
    same(strict(np.array([2.0, 3.0], "float32")), f(np.array([2.0, 3.0], "float32")))
    bad = np.array([2.0, -1.0], "float32")
    assert np.isnan(tn.jit(f)(bad))
    with pytest.raises(FloatingPointError, match="NaN: the first is in the result of operator Log"):
        strict(bad)
    with pytest.raises(FloatingPointError, match="operator Sqrt"):
        strict(np.array([2.0, 0.5], "float32"))
    with pytest.raises(FloatingPointError, match="operator Log"):
        tn.grad(f, check_nan=True)(bad)
    step = tn.Step(lambda p, x: f(p * x), np.ones(2, "float32"), tn.optim.sgd(lr=0), check_nan=True)
    assert step(np.array([2.0, 3.0], "float32")) > 0
    with pytest.raises(FloatingPointError, match="Step: NaN: .* operator Log"):
        step(bad)


def line():
    x = array(64, 3)
    return x, x @ np.array([1, -2, 0.5], "float32") + 0.25


def squares(parameters, x, y):
    return tn.mean((x @ parameters["w"] + parameters["b"] - y) ** 2)


@pytest.mark.parametrize(
    "optimizer", [lambda: tn.optim.sgd(lr=0.1, momentum=0.9), lambda: tn.optim.adamw(lr=0.05)]
)
def test_a_step_trains_and_its_state_moves(optimizer):
    x, y = line()
    start = {"w": np.zeros(3, "float32"), "b": np.float32(0)}
    step = tn.Step(squares, start, optimizer(), backend="reference")
    losses = [float(step(x, y)) for _ in range(60)]
    assert losses[-1] < losses[0] / 20
    assert not start["w"].any()
    # Another shape has a plan of its own and goes on from the same state.
    kept = step.state()
    step(x[:5], y[:5])
    for name, array_ in kept.items():
        assert not np.array_equal(step.state()[name], array_), name
    # From the same state the same step follows, bit by bit.
    step.set_state(kept)
    first = step(x, y), step.state()
    step.set_state(kept)
    second = step(x, y), step.state()
    assert first[0] == second[0]
    for name, array_ in first[1].items():
        assert np.array_equal(second[1][name], array_)


def test_the_first_step_is_the_gradient_times_the_rate():
    x, y = line()
    start = {"w": array(3), "b": np.float32(0.5)}
    gradient = tn.grad(squares)(start, x, y)
    step = tn.Step(squares, start, tn.optim.sgd(lr=lambda i: 0.5 if i == 0 else 0.0))
    step(x, y)
    step(x, y)
    same(step.parameters["w"], start["w"] - 0.5 * gradient["w"])
    same(step.parameters["b"], start["b"] - 0.5 * gradient["b"])
    assert step.count == 2


def test_a_step_before_its_first_batch_has_no_state():
    step = tn.Step(squares, {"w": array(3)}, tn.optim.sgd(lr=0.1))
    with pytest.raises(tn.InvalidArgument, match="at least one step"):
        step.state()
    with pytest.raises(tn.NotFound, match="expected one of .*adam, adamw, adamw_8bit, lamb"):
        tn.optim.adan(lr=1)


def centred_product(x):
    return x.T @ (x - x.mean(0))


def test_gradient_through_a_symmetric_product():
    random = np.random.default_rng(5)
    x = random.standard_normal((256, 512), dtype=np.float32)
    c = random.standard_normal((512, 512), dtype=np.float32)

    both = tn.value_and_grad(lambda x: (centred_product(x) * c).sum())
    value, grad = tn.jit(both)(x)

    wide = x.astype(np.float64)
    centred = wide - wide.mean(0)
    assert np.allclose(value, (wide.T @ centred * c).sum(), rtol=1e-3)
    expected = centred @ (c + c.T)  # d of <c, x^T P x>, with P = P^T = P P
    assert np.linalg.norm(grad - expected) < 1e-5 * np.linalg.norm(expected)


def test_vmap_of_a_symmetric_product():
    x = np.random.default_rng(6).standard_normal((3, 256, 512), dtype=np.float32)
    batched = tn.vmap(centred_product)(x)
    for one, got in zip(x.astype(np.float64), np.asarray(batched)):
        expected = one.T @ (one - one.mean(0))
        assert np.linalg.norm(got - expected) < 1e-5 * np.linalg.norm(expected)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_taken_by_each_examples_own_indices(axis):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((3, 4, 2, 5)).astype("float32")
    at = rng.integers(-2, 2, (3, 2, 2))
    f = lambda x, at: tn.take(x, at, axis=axis)  # noqa: E731
    want = [np.take(a, b, axis=axis) for a, b in zip(x, at)]
    np.testing.assert_array_equal(tn.vmap(f)(x, at), want)

    slopes = np.zeros_like(x)
    for slope, row, made in zip(slopes, at, want):
        back = np.moveaxis(slope, axis, 0)
        front = axis % 3
        for place in np.ndindex(row.shape):
            key = (slice(None),) * front + place
            np.add.at(back, row[place], 2 * np.asarray(made)[key])
    total = lambda x: tn.sum(tn.vmap(f)(x, at) ** 2)  # noqa: E731
    np.testing.assert_allclose(tn.grad(total)(x), slopes, rtol=1e-5)


def test_slopes_of_nothing_are_empty():
    x = np.zeros((2, 0, 3), "float32")
    f = lambda x: tn.sum(tn.log2(tn.stack([x, x])))  # noqa: E731
    assert tn.hessian(f)(x).shape == (2, 0, 3, 2, 0, 3)


def test_softplus_keeps_its_second_slope_where_its_pieces_meet():
    x = np.float32([0, -0.0, 1, -2, 40, -40])
    f = lambda x: tn.sum(tn.op("Softplus", x))  # noqa: E731
    slope = 1 / (1 + np.exp(-x.astype("float64")))
    np.testing.assert_allclose(tn.grad(f)(x), slope, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(
        np.diag(tn.hessian(f)(x)), slope * (1 - slope), rtol=1e-5, atol=1e-12
    )


def test_a_product_of_what_has_no_slope_has_none():
    x = np.float32([2.5, -1.25])
    f = lambda x: tn.einsum("i,j->ij", tn.ceil(x), tn.floor(x))  # noqa: E731
    np.testing.assert_array_equal(tn.jvp(f, (x,), (x,))[1], np.zeros((2, 2)))
    empty = np.zeros(0, "float32")
    assert tn.grad(lambda x: tn.tensordot(x, x, axes=1))(empty).shape == (0,)


def test_slopes_of_products_and_extremes_at_places():
    x, u = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 0.0, 3.0, 0.0, 5.0, 7.0, 1.5])
    at = np.array([0, 1, 1, 2, 2, 0, 3])

    def plain(x, u):
        x = x.copy()
        np.multiply.at(x, at, u)
        return (x**3).sum()

    f = lambda x, u: (x.at[at].multiply(u) ** 3).sum()  # noqa: E731
    made = tn.grad(f, argnums=(0, 1))(x, u)
    h = 1e-5
    by_x = [(plain(x + e, u) - plain(x - e, u)) / (2 * h) for e in h * np.eye(4)]
    by_u = [(plain(x, u + e) - plain(x, u - e)) / (2 * h) for e in h * np.eye(7)]
    np.testing.assert_allclose(made[0], by_x, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(made[1], by_u, rtol=1e-6, atol=1e-5)
    # The same number on both sides: together they have the slope of one.
    same = lambda x: (x.at[:].max(x) * x).sum() + x.at[:].min(x).sum()  # noqa: E731
    np.testing.assert_allclose(tn.grad(same)(x), 2 * x + 1)


@pytest.mark.parametrize("past", [False, True])
def test_attention_of_an_open_batch(tmp_path, past):
    """Slopes of operators that are decomposed for them, where only the batch is not known."""
    from onnx import TensorProto, helper

    shapes = {"q": (4, 3, 8), "k": (2, 5, 8), "v": (2, 5, 6)}
    if past:
        shapes |= {"past_k": (2, 7, 8), "past_v": (2, 7, 6)}
    arrays = {name: array(2, *shape) for name, shape in shapes.items()}
    found = {}
    for batch in ("n", 2):
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, *shape])
            for name, shape in shapes.items()
        ]
        names = ["q", "k", "v", "", *(["past_k", "past_v"] if past else [])]
        nodes = [
            helper.make_node("Attention", names, ["y"], is_causal=1),
            helper.make_node("Mul", ["y", "y"], ["squares"]),
            helper.make_node("ReduceSum", ["squares"], ["loss"], keepdims=0),
        ]
        loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
        graph = helper.make_graph(nodes, "g", inputs, [loss])
        opset = [helper.make_opsetid("", 23)]
        file = helper.make_model(graph, ir_version=10, opset_imports=opset)
        path = tmp_path / f"{batch}.onnx"
        path.write_bytes(file.SerializeToString())
        slopes = tn.load(path.as_posix()).apply("autodiff.grad", wrt=list(shapes))
        found[batch] = slopes.compile()(**arrays)
    assert len(found[2]) == len(shapes) + ("loss" in found[2].names)
    for open_one, fixed in zip(found["n"], found[2], strict=True):
        same(open_one, fixed)


def test_what_is_no_float_does_not_move():
    x = np.float32([1, -2, 3])

    def f(x):
        return x * x, x > 0, tn.argmax(x)

    values, slopes = tn.jvp(f, (x,), (np.ones_like(x),))
    np.testing.assert_array_equal(values[1], x > 0)
    np.testing.assert_array_equal(slopes[0], 2 * x)
    assert not slopes[1].any() and slopes[1].dtype == bool
    assert slopes[2] == 0 and values[2] == 2
    inside = tn.jit(lambda x: tn.jvp(f, (x,), (x,))[1])(x)
    np.testing.assert_array_equal(inside[0], 2 * x * x)
    assert not inside[1].any()


def test_the_pull_of_a_vjp_is_of_the_numbers_that_it_was_made_with():
    x = np.ones(3, "float32")
    _, pull = tn.vjp(lambda x: x * x, x)
    x[:] = 100
    np.testing.assert_array_equal(pull(np.ones(3, "float32"))[0], [2, 2, 2])
