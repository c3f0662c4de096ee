# SPDX-License-Identifier: Apache-2.0
"""Operators by name, models as functions, and names that resolve alike."""

import numpy as np
import pytest
import tenon as tn

X = np.array([-1.0, 2.0, 3.0], "float32")


def square_plus_one() -> tn.Model:
    return tn.jit(lambda v: v * v + 1).trace(np.zeros(3, "float32"))


def test_any_operator_is_called_by_its_name():
    assert tn.op("Relu", X).tolist() == [0, 2, 3]
    assert tn.op("LeakyRelu", X, alpha=0.5).tolist() == [-0.5, 2, 3]


def test_numbers_of_numpy_are_attributes():
    assert tn.op("LeakyRelu", X, alpha=np.float32(0.5)).tolist() == [-0.5, 2, 3]
    assert tn.op("Softmax", X[None], axis=np.int64(0)).tolist() == [[1, 1, 1]]
    assert tn.op("Transpose", X[None], perm=[np.int64(1), np.int64(0)]).shape == (3, 1)


def test_an_operator_of_several_outputs_gives_a_tuple():
    values, places = tn.op("TopK", X, np.array([2], "int64"), outputs=2)
    assert (values.tolist(), places.tolist()) == ([3, 2], [2, 1])


def test_an_optional_input_may_be_left_out():
    assert tn.op("Clip", X, None, np.float32(2.5)).tolist() == [-1, 2, 2.5]


def test_an_operator_is_traced_and_has_its_gradient():
    assert tn.jit(lambda v: tn.op("Relu", v) * 2)(X).tolist() == [0, 4, 6]
    assert tn.grad(lambda v: tn.op("Relu", v).sum())(X).tolist() == [0, 1, 1]


def test_a_model_is_a_function():
    model = square_plus_one()
    assert model(X).tolist() == [2, 5, 10]
    assert tn.jit(model)(X).tolist() == [2, 5, 10]
    assert tn.grad(lambda v: model(v).sum())(X).tolist() == [-2, 4, 6]
    np.testing.assert_array_equal(tn.vmap(model)(np.stack([X, -X])), [[2, 5, 10], [2, 5, 10]])


def test_a_model_names_the_inputs_that_it_misses():
    with pytest.raises(tn.InvalidArgument, match=r"expected 1 inputs \(v\), got 2"):
        square_plus_one()(X, X)


@pytest.mark.parametrize("kind", [tn.loss, tn.optim])
def test_losses_and_optimizers_resolve_alike(kind):
    rate = {"lr": 0.1} if kind is tn.optim else {}
    name = "sgd" if kind is tn.optim else "mse"
    for word in (name, f"trainer.{name}"):
        assert f"trainer.{name}" in repr(getattr(kind, word)(**rate))
    with pytest.raises(tn.NotFound, match=rf"expected one of .*{name}.*, got 'no_such'"):
        kind.no_such(**rate)


@pytest.mark.parametrize(
    ("short", "long"), [("fp16", "float16"), ("f32", "float32"), ("i8", "int8")]
)
def test_a_type_has_a_short_and_a_long_name(short, long):
    assert tn.zeros((2,), dtype=short).dtype == tn.zeros((2,), dtype=long).dtype == long


def test_a_precision_has_a_short_and_a_long_name():
    model = square_plus_one()
    for name in ("bf16", "bfloat16"):
        assert model.compile(precision=name)(X)[0].tolist() == [2, 5, 10]


@pytest.mark.parametrize(
    ("name", "near"), [("Relux", "Relu"), ("tenon.ConvInputGard", "tenon.ConvInputGrad")]
)
def test_an_unknown_operator_is_reported_with_the_nearest(name, near):
    with pytest.raises(tn.Unimplemented, match=f"did you mean '{near}'"):
        tn.op(name, np.ones((2, 3), "float32"))


def test_indices_of_an_unpool_are_of_each_example():
    x = np.random.default_rng(3).standard_normal((3, 2, 1, 2, 2)).astype("float32")
    at = np.int64([[[0, 3], [9, 14]], [[16, 19], [26, 30]]])[:, None]
    many_at = np.stack([at, at[:, :, ::-1, ::-1], at])
    unpool = lambda one, at: tn.op(  # noqa: E731
        "MaxUnpool", one, at, kernel_shape=[2, 2], strides=[2, 2]
    )
    want = [unpool(one, at) for one, at in zip(x, many_at)]
    np.testing.assert_array_equal(tn.vmap(unpool)(x, many_at), want)
    alike = tn.vmap(lambda one: unpool(one, at))(x)
    np.testing.assert_array_equal(alike, [unpool(one, at) for one in x])


def masked_attention(q, k, v, seen):
    mask = np.where(seen, 0, -np.inf)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.nan_to_num(e / e.sum(-1, keepdims=True)) @ v


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_query_that_no_key_may_answer_is_zero_and_so_are_its_slopes(kind):
    random = np.random.default_rng(5)
    q, k, v = (random.standard_normal((1, 2, n, 4)) for n in (3, 5, 5))
    seen = random.integers(0, 2, (3, 5)).astype(bool)
    seen[0], seen[1] = False, True
    mask = seen if kind == "bool" else np.where(seen, 0, -np.inf)

    def total(q, k, v):
        return tn.sum(tn.op("Attention", q, k, v, mask) * np.arange(4.0))

    np.testing.assert_allclose(
        tn.op("Attention", q, k, v, mask), masked_attention(q, k, v, seen), atol=1e-12
    )
    for i, slopes in enumerate(tn.grad(total, argnums=(0, 1, 2))(q, k, v)):
        wanted, step = np.zeros_like(slopes), 1e-6
        for at in np.ndindex(*wanted.shape):
            values = []
            for sign in (1, -1):
                given = [q.copy(), k.copy(), v.copy()]
                given[i][at] += sign * step
                values.append((masked_attention(*given, seen) * np.arange(4.0)).sum())
            wanted[at] = (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(slopes, wanted, atol=1e-7)


@pytest.mark.parametrize("axis", [0, 1])
def test_scales_of_blocks_have_slopes(axis):
    random = np.random.default_rng(8)
    stored = random.integers(-8, 8, (10, 6)).astype("i1")
    shape = (3, 6) if axis == 0 else (10, 2)  # of 4 rows, the last block of 2; of 4 columns
    scales, weight = random.random(shape), random.standard_normal((10, 6))

    def total(s):
        y = tn.op("DequantizeLinear", stored, s, axis=axis, block_size=4)
        return tn.sum(y * weight)

    wanted = np.add.reduceat(stored * weight, np.arange(0, stored.shape[axis], 4), axis)
    np.testing.assert_allclose(tn.grad(total)(scales), wanted, rtol=1e-9)
