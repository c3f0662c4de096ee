# SPDX-License-Identifier: Apache-2.0
"""Functions traced to graphs: values, the cache, and what is refused."""

import collections
import functools
import logging
import threading

import numpy as np
import pytest
import tenon as tn

rng = np.random.default_rng(7)


def array(*shape):
    return rng.standard_normal(shape).astype("float32")


def same(compiled, wanted):
    np.testing.assert_allclose(compiled, wanted, rtol=2e-5, atol=2e-6)


def test_the_founding_function():
    f = lambda x: x.T @ (x - x.mean(0))  # noqa: E731
    x = array(10, 10)
    same(tn.jit(f)(x), f(x))


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: np.pi * a + b / 2 - 1,
        lambda a, b: 2 - a * b[0],
        lambda a, b: (a > b).astype("float32") + abs(-a),
        lambda a, b: a**2 + abs(b) ** 0.5 + abs(a) ** 1.5,
        lambda a, b: a[1:, ::-1] + b[:-1],
        lambda a, b: a[None, ..., 0] - b[-1, :3],
        lambda a, b: a[:, 1, None] * b[[0, 2, 2]],
        lambda a, b: a[np.arange(3), np.array([2, 0, -1])] + b[:, 0],
        lambda a, b: a.reshape(4, -1) @ b.reshape((-1, 4)),
        lambda a, b: a.T.sum(1, keepdims=True) + b.std() + b.var(0).max(),
        lambda a, b: (a // 0.3) + (b % 0.7),
        lambda a, b: a.argmax(1) * 2 + b.argmin(axis=0)[:3],
        lambda a, b: a.transpose(1, 0).ravel()[3:9] + b.prod(axis=(0, 1)),
    ],
)
def test_numpy_and_the_graph_agree(f):
    a, b = array(3, 4), array(3, 4)
    same(tn.jit(f)(a, b), f(a, b))


@pytest.mark.parametrize(
    "name", "exp tanh sin cos sqrt log1p expm1 floor ceil sign square log2 log10 round".split()
)
def test_functions_are_numpys_by_name(name):
    x = np.abs(array(3, 5)) + 0.1
    same(getattr(tn, name)(x), getattr(np, name)(x))


def test_shapes_and_joins():
    a, b = array(2, 3), array(2, 3)
    same(tn.concat([a, b], axis=1), np.concatenate([a, b], 1))
    same(tn.stack([a, b], axis=-1), np.stack([a, b], -1))
    same(tn.split(a, 3, axis=1)[2], a[:, 2:])
    same(tn.flip(a, axis=1), a[:, ::-1])
    same(tn.where(a > b, a, 0), np.where(a > b, a, 0))
    same(tn.clip(a, -0.5, 0.5), np.clip(a, -0.5, 0.5))
    same(tn.tril(a), np.tril(a))
    same(tn.take_along_axis(a, np.array([[0], [2]]), axis=1), a[[0, 1], [0, 2]][:, None])
    same(tn.jit(lambda x: tn.full_like(x, 2) + tn.zeros((2, 1)))(a), np.full((2, 3), 2))
    same(tn.one_hot(np.array([1, 0]), 3), np.eye(3)[[1, 0]])
    same(tn.softmax(a).sum(-1), np.ones(2))


def test_convolution_and_pool():
    x, w, b = array(2, 3, 8, 8), array(5, 3, 3, 3), array(5)
    y = tn.jit(lambda x: tn.max_pool(tn.conv(x, w, b, padding="same"), 2))(x)
    assert y.shape == (2, 5, 4, 4)
    centre = (x[0, :, 1:4, 1:4] * w[2]).sum() + b[2]
    same(tn.conv(x, w, b, padding=1)[0, 2, 2, 2], centre)


def test_types_meet_as_documented():
    def dtype(f, *args):
        return tn.jit(f)(*args).dtype.name

    one, half, whole = np.ones(2, "float32"), np.ones(2, "float16"), np.ones(2, "int32")
    assert dtype(lambda x: x * 2.5, half) == "float16"
    assert dtype(lambda x: x * 2, whole) == "int32"
    assert dtype(lambda x: x / 2, whole) == "float32"
    assert dtype(lambda x, y: x + y, half, one) == "float32"
    assert dtype(lambda x, y: x + y, whole, half) == "float16"
    assert dtype(lambda x, k: x * k, half, 3.0) == "float16"
    assert dtype(lambda x: x + np.ones(2), one) == "float64"
    assert tn.jit(lambda a, b: a + b)(1.5, 2) == 3.5


def test_trees_go_in_and_out():
    Pair = collections.namedtuple("Pair", "low high")

    def f(parameters, pair, *, scale):
        return {"y": parameters["w"] * scale, "pair": Pair(pair.high, (pair.low, None))}

    out = tn.jit(f)({"w": array(2)}, Pair(1.0, array(3)), scale=2.0)
    assert isinstance(out["pair"], Pair) and out["pair"].high[1] is None
    assert out["y"].shape == (2,) and out["pair"].low.shape == (3,)


def test_one_compile_for_each_shape_and_type():
    f = tn.jit(lambda x: x + 1)
    for x in (array(2), array(2), array(3), array(2).astype("float64"), array(3)):
        f(x)
    assert f.stats == (3, 2, 3)
    f.clear()
    assert f.stats.entries == 0


def test_the_cache_is_bounded_with_one_warning():
    f = tn.jit(lambda x: x + 1, cache_size=2)
    f(array(1)), f(array(2))
    with pytest.warns(RuntimeWarning, match="more than 2 sets of shapes"):
        f(array(3))
    f(array(4))
    assert f.stats.entries == 2
    f(array(3))
    assert f.stats.hits == 1


def test_a_symbolic_batch_is_traced_once():
    f = tn.jit(lambda x, w: (x @ w).reshape(x.shape[0], 2, -1).sum(2), batch_axes=(0, None))
    w = array(3, 4)
    for n in (1, 5, 2):
        x = array(n, 3)
        same(f(x, w), (x @ w).reshape(n, 2, -1).sum(2))
    assert f.stats == (1, 2, 1)


def test_static_arguments_are_part_of_the_key():
    f = tn.jit(lambda x, how: x.sum() if how == "sum" else x.max(), static_argnums=1)
    x = array(5)
    same(f(x, "sum"), x.sum())
    same(f(x, "max"), x.max())
    assert f.stats.compiles == 2


def test_static_arguments_are_known_with_their_types():
    alike = [1, True, 1.0, np.float64(1), np.int64(1), (1,), (True,), ((1.0,),), 0.0, -0.0]
    seen = []
    f = tn.jit(lambda x, how: seen.append(how) or x, static_argnums=1)
    for _ in range(2):
        for how in alike:
            f(1.0, how)
    assert [(type(how), repr(how)) for how in seen] == [(type(how), repr(how)) for how in alike]


def test_static_arguments_by_name_and_from_the_end():
    def scaled(x, how):
        return x * 2 if how == "twice" else x

    x = array(3)
    for position in (1, -1, np.int64(1)):
        f = tn.jit(scaled, static_argnums=position)
        same(f(x, "twice"), 2 * x)
        same(f(x, how="twice"), 2 * x)
        same(f(how="once", x=x), x)
    with pytest.raises(ValueError, match="static_argnums: expected positions of 2 .*got -3"):
        tn.jit(scaled, static_argnums=-3)
    with pytest.raises(ValueError, match="positions from 0, as the number of arguments may vary"):
        tn.jit(lambda *x: x[0], static_argnums=-1)


def test_results_stay_when_buffers_are_used_again():
    f = tn.jit(lambda x: x + 1)
    x = np.zeros((256, 256), "float32")
    kept = [f(np.full_like(x, i)) for i in range(5)]
    view = f(x)[3:4]
    for _ in range(6):
        f(np.full_like(x, 9))
    assert [k[0, 0] for k in kept] == [1, 2, 3, 4, 5]
    assert view[0, 0] == 1


def test_inputs_of_every_layout():
    f = tn.jit(lambda x: x * 2)
    x = array(4, 6)
    same(f(x.T), x.T * 2)
    same(f(x[::2, ::3]), x[::2, ::3] * 2)
    same(f(x.astype(">f4")), x * 2)
    same(f(np.float32(2)), 4)
    same(f(f.trace(x).compile().tensors(x)[0]), x * 4)


def test_if_on_a_traced_value_names_line_and_remedy():
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(tn.TracedValueError, match=r"jit_test\.py:\d+: `if x\.sum.*tn\.where"):
        tn.jit(f)(array(2))
    for wrong in (float, int, np.sort, np.cbrt, lambda x: x.item(), lambda x: [1, 2][x]):
        with pytest.raises(tn.TracedValueError, match="jit_test"):
            tn.jit(lambda x: wrong(x))(1.5)  # noqa: B023


def test_numpys_own_functions_of_elements_work_on_traced_values():
    a = array(3, 3)
    f = lambda x: np.tanh(a @ x) + np.maximum(a, x) * np.float32(2)  # noqa: E731
    same(tn.jit(f)(a), f(a))


def test_errors_name_the_line_in_the_function():
    def f(a, b):
        return a @ b

    with pytest.raises(tn.InvalidArgument, match=r"jit_test\.py:\d+: `return a @ b`"):
        tn.jit(f)(array(2, 3), array(2, 3))
    with pytest.raises(IndexError, match="index 2 of axis 0"):
        tn.jit(lambda x: x[2])(array(2))
    with pytest.raises(TypeError, match="got str.*static_argnums"):
        tn.jit(lambda x: x)("text")
    with pytest.raises(TypeError, match="jit_test.*got str"):
        tn.jit(lambda x: "text")(1.0)
    with pytest.raises(tn.TracedValueError, match="do not change"):
        tn.jit(lambda x: x.__setitem__(0, 1))(array(2))
    with pytest.raises(tn.TracedValueError, match="truth values"):
        tn.jit(lambda x: x[x > 0])(array(2))


def test_a_value_that_outlives_its_function_is_refused():
    kept = []
    tn.jit(lambda x: kept.append(x) or x)(array(2))
    with pytest.raises(tn.TracedValueError, match="outlived"):
        tn.jit(lambda x: x + kept[0])(array(2))
    with pytest.raises(tn.TracedValueError, match="outlived"):
        tn.exp(kept[0])
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="64"):
        tn.jit(lambda x: x)(loop)


def test_jit_inside_jit_is_one_graph():
    inner = tn.jit(lambda x: x * 2)
    outer = tn.jit(lambda x: inner(x) + 1)
    same(outer(array(2) * 0), [1, 1])
    assert inner.stats.compiles == 0
    assert outer.__name__ == "<lambda>"


def test_a_failed_trace_leaves_nothing_behind(caplog):
    with caplog.at_level(logging.ERROR), pytest.raises(ZeroDivisionError):
        tn.jit(lambda x: 1 / 0)(array(2))
    same(tn.exp(np.zeros(2, "float32")), [1, 1])


def test_an_array_that_is_filled_anew_is_another_constant():
    def weighted(x):
        mask, total = np.zeros(3, "float32"), 0.0
        for i in range(3):
            mask[:] = 0
            mask[i] = 10**i
            total = total + (x * mask).sum() + tn.linear(x, mask[:, None])[0]
        return total

    assert tn.jit(weighted)(np.float32([1, 2, 3])) == 2 * 321


@pytest.mark.parametrize("transform", [tn.jit, tn.grad, tn.vmap, tn.value_and_grad])
def test_what_is_no_function_is_refused_at_once(transform):
    with pytest.raises(TypeError, match="expected a function or a loaded model, got int"):
        transform(5)


def test_functions_without_a_name_are_named_by_what_they_are():
    half = tn.jit(functools.partial(tn.multiply, np.float32(0.5)), cache_size=1)
    with pytest.warns(RuntimeWarning, match="partial: more than 1 sets of shapes"):
        assert float(half(np.float32(3))) == 1.5 and half(np.ones(2, "f")).tolist() == [0.5, 0.5]
    assert repr(half) == "<tenon function partial, 1 compiled>"


def test_integers_beyond_64_bits_are_numbers_beside_floats():
    assert float(tn.jit(lambda x: x + 2**70)(np.float64(1))) == 2.0**70
    with pytest.raises(tn.InvalidArgument, match="number that float64 can hold"):
        tn.jit(lambda x: x + 10**400)(np.float64(1))


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.setflags(write=False),
        lambda y: setattr(y, "shape", (-1,)),
        lambda y: setattr(y, "dtype", "int32"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_result_that_was_changed_in_place_is_not_handed_out_again(change):
    f, x = tn.jit(lambda x: x * 2), np.ones((200, 200), "float32")
    y = f(x)
    change(y)
    del y
    for _ in range(3):
        y = f(x)
        assert y.shape == (200, 200) and y.dtype == "float32" and y.flags.writeable
        same(y, 2 * x)


@pytest.mark.filterwarnings("ignore:.*sets of shapes:RuntimeWarning")
def test_a_function_is_compiled_forgotten_and_described_from_several_threads():
    f = tn.jit(lambda x: x + 1, cache_size=2)
    f(array(1))
    right = []

    def call():
        for i in range(150):
            x = np.full(i % 5 + 1, i, "float32")
            right.append(np.array_equal(f(x), x + 1))
            f.describe()

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 4 * 150
