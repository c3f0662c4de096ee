# SPDX-License-Identifier: Apache-2.0
"""Operators that take any number of inputs take 1, 2, 16, 17, 33 and 64 of them, in every type, on
every backend of the CPU. ONNX's schemas say which operators there are; one without a case fails."""

import functools

import numpy as np
import onnx
import pytest
import tenon

BACKENDS = ["reference", "onednn"]
COUNTS = [1, 2, 16, 17, 33, 64]
FLOATS = ["float16", "float32", "float64"]
NUMBERS = [*FLOATS, "int32", "int64", "uint8", "uint32", "uint64"]
ROUNDING = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-12}


def folded(function):
    return lambda xs: functools.reduce(function, xs)


def mean(xs):
    total = functools.reduce(np.add, xs)
    return (total / len(xs)).astype(xs[0].dtype) if total.dtype.kind == "f" else total // len(xs)


# The result in NumPy, attributes, types; whether shapes broadcast.
CASES = {
    "Concat": (lambda xs: np.concatenate(xs, 1), {"axis": 1}, [*NUMBERS, "bool"], False),
    "Max": (folded(np.maximum), {}, NUMBERS, True),
    "Mean": (mean, {}, FLOATS, True),
    "Min": (folded(np.minimum), {}, NUMBERS, True),
    "Sum": (folded(np.add), {}, NUMBERS, True),
}
# They take a body, a list or an equation; a test of their own each.
ELSEWHERE = {"Einsum", "FeatureVectorizer", "Loop", "Scan", "SequenceConstruct", "SequenceMap"}


def test_no_operator_is_left_out():
    many = onnx.defs.OpSchema.FormalParameterOption.Variadic
    names = {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if schema.domain in ("", "ai.onnx.ml")
        and schema.inputs
        and schema.inputs[-1].option == many
    }
    assert names == {*CASES, *ELSEWHERE} & names
    assert set(CASES) <= names


def result(backend, op, arrays, attributes, constants=0):
    graph = tenon.Graph()
    inputs = [
        graph.add_constant(x, f"c{i}")
        if i < constants
        else graph.add_input(f"x{i}", x.dtype.name, list(x.shape))
        for i, x in enumerate(arrays)
    ]
    graph.add_output("y", graph.add_node(op, inputs, **attributes))
    plan = graph.build().compile(backend=backend)
    return np.asarray(plan(*arrays[constants:])[0]), plan


def near(got, want):
    assert got.dtype == want.dtype
    if want.dtype.kind == "f":
        bound = ROUNDING[want.dtype.name]
        np.testing.assert_allclose(got, want, rtol=bound, atol=bound)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", CASES)
def test_any_number_of_inputs(op, backend, count):
    numpys, attributes, types, broadcasts = CASES[op]
    rng = np.random.default_rng(count)
    for dtype in types:
        shapes = [(2, 3), (2, 3), (1, 3), (2, 1), (3,)] if broadcasts else [(2, 3), (2, 1)]
        xs = [rng.integers(0, 9, shapes[i % len(shapes)]).astype(dtype) for i in range(count)]
        for constants in {0, count // 2}:
            got, plan = result(backend, op, xs, attributes, constants)
            near(got, np.asarray(numpys(xs), dtype))
            if backend == "onednn" and dtype == "float32":
                assert not plan.describe()["fallback_nodes"], (op, count)


@pytest.mark.parametrize("count", [3, 17, 64])
@pytest.mark.parametrize("backend", BACKENDS)
def test_many_inputs_between_other_nodes(backend, count):
    """What goes into the sum is computed, and so is what reads it; one input comes twice."""
    rng = np.random.default_rng(7)
    xs = [rng.standard_normal((4, 40)).astype("float32") for _ in range(count)]
    f = tenon.jit(
        lambda *x: tenon.exp(-tenon.abs(many("Sum", [*map(tenon.tanh, x), x[0]]))), backend=backend
    )
    want = np.exp(-np.abs(np.sum([*map(np.tanh, xs), xs[0]], axis=0)))
    np.testing.assert_allclose(f(*xs), want, rtol=2e-5, atol=1e-6)


def many(op, values):
    return values[0].trace.node(op, values)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_largest_of_many_has_a_gradient(backend):
    xs = [np.float32([i, -i]) for i in range(33)]
    g = tenon.grad(
        lambda *x: tenon.sum(many("Max", list(x))), argnums=tuple(range(33)), backend=backend
    )(*xs)
    assert np.sum(g, axis=0).tolist() == [1, 1]
    assert g[32].tolist() == [1, 0] and g[0].tolist() == [0, 1]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_products_of_many(backend, count):
    xs = [np.float32([1 + i / 64, 1]) for i in range(count)]
    equation = ",".join(["a"] * count) + "->a"
    got, _ = result(backend, "Einsum", xs, {"equation": equation})
    np.testing.assert_allclose(got, np.prod(xs, axis=0), rtol=1e-5)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_of_many(backend, count):
    graph = tenon.Graph()
    xs = [np.full((2,), i, "float32") for i in range(count)]
    inputs = [graph.add_input(f"x{i}", "float32", [2]) for i in range(count)]
    made = graph.add_node("SequenceConstruct", inputs)
    place = graph.add_constant(np.array(count - 1), "place")
    graph.add_output("y", graph.add_node("SequenceAt", [made, place]))
    plan = graph.build().compile(backend=backend)
    assert plan(*xs)[0].tolist() == [count - 1, count - 1]
