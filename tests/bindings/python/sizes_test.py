# SPDX-License-Identifier: Apache-2.0
"""Sizes that no result can have are refused on every backend, known when compiled or when run:
ranges without an end, windows larger than what they look at. Reductions of nothing go by ONNX."""

import logging

import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper

BACKENDS = ["reference", "onednn"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def result(backend, op, arrays, constants=(), shapes=None, **attributes):
    """The node's result; arrays by position, those in `constants` known when it is compiled."""
    graph = tenon.Graph()
    given, inputs = [], []
    for i, x in enumerate(arrays):
        if i in constants:
            inputs.append(graph.add_constant(x, f"c{i}"))
        else:
            shape = shapes[i] if shapes else x.shape
            inputs.append(graph.add_input(f"x{i}", x.dtype.name, list(shape)))
            given.append(x)
    made = graph.add_node(op, inputs, **attributes)
    graph.add_output("y", made)
    return np.asarray(graph.build().compile(backend=backend)(*given)[0])


ALL = (0, 1, 2)
ENDLESS = {
    "float16": [(0, np.inf, 1), (0, np.nan, 1), (0, 5, 0), (np.inf, 0, 1)],
    "float32": [(0, 1e30, 1), (0, np.inf, 1), (np.nan, 5, 1), (0, 5, 0), (0, 1, 1e-30)],
    "float64": [(0, 1e300, 1), (0, 1, 1e-300), (0, -1e30, -1), (0, 5, 0)],
    **{name: [(0, 5, 0)] for name in INTEGERS},
    "int64": [(0, 5, 0), (0, 2**62, 1), (-(2**63), 2**63 - 1, 1), (2**62, -(2**62), -1)],
    "uint64": [(0, 5, 0), (0, 2**64 - 1, 1), (2**63, 2**64 - 1, 2)],
}


@pytest.mark.parametrize("known", [ALL, (), (0, 2)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_range_without_an_end_is_refused(backend, known):
    for dtype, cases in ENDLESS.items():
        for case in cases:
            with pytest.raises(tenon.TenonError, match="expected"):
                result(backend, "Range", [np.array(x, dtype) for x in case], known)


@pytest.mark.parametrize("known", [ALL, (), (0, 2)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_range_has_as_many_numbers_as_python_counts(backend, known):
    for dtype in INTEGERS:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        third = (high - low) // 3
        cases = [
            (0, 5, 1),
            (5, 0, 1),
            (3, 3, 1),
            (low, high, third),
            (high - 3, high, 1),
            (0, 7, 3),
        ]
        if low:
            cases += [(5, -4, -2), (high, low, -third), (-5, 5, -1), (low + 2, low, -1)]
        for start, limit, delta in cases:
            if not low <= delta <= high:
                continue
            made = result(
                backend, "Range", [np.array(x, dtype) for x in (start, limit, delta)], known
            )
            assert made.tolist() == list(range(start, limit, delta)), (dtype, start, limit, delta)
    for dtype in FLOATS:
        for case in ((0, 1, 0.25), (2, -1, -0.5), (0, 5, -1), (1, 1, 1)):
            made = result(backend, "Range", [np.array(x, dtype) for x in case], known)
            np.testing.assert_array_equal(made, np.arange(*case, dtype=dtype))


SHAPES = {"sizes that are known": None, "sizes of the run": [["n", 2, "h", "w"], None]}


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool", "Conv"])
def test_a_window_is_no_larger_than_what_it_looks_at(op, backend, shapes):
    for window in (2, 4, 5, 6, 9):
        for more in (
            {},
            {"strides": [2, 2]},
            {"dilations": [2, 2]},
            {"pads": [1, 1, 1, 1]},
            {"pads": [0, 2, 0, 2]},
            {"auto_pad": "VALID"},
            {"auto_pad": "SAME_UPPER"},
            {"ceil_mode": 1},
        ):
            if op == "Conv" and "ceil_mode" in more:
                continue
            x = np.ones((1, 2, 4, 4), "float32")
            given, known = [x], ()
            if op == "Conv":
                given, known = [x, np.ones((2, 2, window, window), "float32")], (1,)
            reach = (window - 1) * more.get("dilations", [1])[0] + 1
            pads = more.get("pads", [0] * 4)
            padded = min(4 + pads[0] + pads[2], 4 + pads[1] + pads[3])
            fits = more.get("auto_pad") == "SAME_UPPER" or reach <= padded
            if op != "Conv" and max(pads) >= window:
                continue
            more = {"kernel_shape": [window] * 2, **more}
            if fits:
                made = result(backend, op, given, known, SHAPES[shapes], **more)
                assert min(made.shape) > 0
            else:
                with pytest.raises(tenon.TenonError, match="expected a window of at most"):
                    result(backend, op, given, known, SHAPES[shapes], **more)


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_with_ceil_mode_the_only_window_may_be_larger_by_less_than_a_stride(backend, shapes):
    x = np.arange(8, dtype="f").reshape(1, 2, 2, 2) - 9
    window = {"kernel_shape": [3, 3], "ceil_mode": 1}
    for op, wanted in (("MaxPool", [-6, -2]), ("AveragePool", [-7.5, -3.5])):
        made = result(backend, op, [x], (), SHAPES[shapes], strides=[2, 2], **window)
        np.testing.assert_array_equal(made.ravel(), wanted)
        larger = {**window, "kernel_shape": [4, 4]}
        with pytest.raises(tenon.TenonError, match="at most 3, .* a part of a stride, got 4"):
            result(backend, op, [x], (), SHAPES[shapes], strides=[2, 2], **larger)
        made = tenon.Graph()
        at = made.add_input("x", "float32", [1, 2, 2, 2])
        made.add_output("y", made.add_node("ReduceSum", [
            made.add_node(op, [at], strides=[2, 2], **window)], keepdims=0))  # fmt: skip
        slope = tenon.grad(made.build())(x)
        assert slope.sum() == 2 and slope.min() == (0 if op == "MaxPool" else 0.25)


LEAST = {name: np.iinfo(name).min for name in INTEGERS} | {name: -np.inf for name in FLOATS}
MOST = {name: np.iinfo(name).max for name in INTEGERS} | {name: np.inf for name in FLOATS}
OF_NOTHING = {  # as ONNX's text has it; a mean of nothing is open there
    "ReduceL1": lambda dtype: 0,
    "ReduceL2": lambda dtype: 0,
    "ReduceLogSum": lambda dtype: -np.inf,
    "ReduceLogSumExp": lambda dtype: -np.inf,
    "ReduceMax": LEAST.get,
    "ReduceMin": MOST.get,
    "ReduceProd": lambda dtype: 1,
    "ReduceSum": lambda dtype: 0,
    "ReduceSumSquare": lambda dtype: 0,
}


def test_every_reduction_says_what_it_is_of_nothing():
    import onnx

    known = {s.name for s in onnx.defs.get_all_schemas() if s.name.startswith("Reduce")}
    assert known == {*OF_NOTHING, "ReduceMean"}


@pytest.mark.parametrize("shapes", [None, [["n", 3], None]])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", OF_NOTHING)
def test_reductions_of_nothing(op, backend, shapes):
    axes = np.array([0], "int64")
    for dtype in FLOATS + ([] if "Log" in op else ["int32", "int64", "uint32", "uint64"]):
        x = np.zeros((0, 3), dtype)
        made = result(backend, op, [x, axes], (1,), shapes, keepdims=0)
        assert made.dtype == x.dtype
        assert made.tolist() == [OF_NOTHING[op](dtype)] * 3, (op, dtype)


def test_a_computed_shape_is_known_behind_a_node_that_runs_elsewhere():
    """Det is cut out for reference: Expand, a piece of the loss, comes after it, and
    the Shape that it reads in front of it."""
    graph = tenon.Graph()
    x, label = graph.add_input("x", "float32", [2, 2, 3, 3]), graph.add_input("label", "int64", [2])
    shape = graph.add_constant(np.array([2, 2]))
    scores = graph.add_node("Reshape", [graph.add_node("Det", [x]), shape])
    options = {"ignore_index": 1, "reduction": "none"}
    graph.add_output("y", graph.add_node("SoftmaxCrossEntropyLoss", [scores, label], **options))
    model = graph.build()
    given = np.random.default_rng(0).standard_normal((2, 2, 3, 3)).astype("f"), np.array([0, 1])
    want = model.compile(backend="reference")(*given)[0]
    plan = model.compile(backend="onednn")
    np.testing.assert_allclose(plan(*given)[0], want, atol=1e-6)
    assert [node["op"] for node in plan.describe()["fallback_nodes"]] == ["Det"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("op", "numbers", "wanted"),
    [
        ("Reshape", [3, 2], (3, 2)),
        ("Reshape", [2, 3], (2, 3)),
        ("Reshape", [-1, 1], (6, 1)),
        ("Reshape", [7, 1], "shape"),
        ("Expand", [1, 3], (2, 3)),
        ("Expand", [2, 2], "shape"),
        ("Expand", [4, 4], "shape"),
        ("Tile", [2, 1], (4, 3)),
    ],
)
def test_what_a_run_gives_counts_where_the_file_says_that_nothing_changes(
    tmp_path, caplog, backend, op, numbers, wanted
):
    same = [2, 3]
    x = np.arange(6, dtype="f").reshape(same)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "s"], ["t"]), helper.make_node("Neg", ["t"], ["y"])],
        "g",
        [info("x", TensorProto.FLOAT, same), info("s", TensorProto.INT64, [2])],
        [info("y", TensorProto.FLOAT, same)],
        value_info=[info("t", TensorProto.FLOAT, same)],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "m.onnx"
    )
    plan = tenon.load(str(tmp_path / "m.onnx")).compile(backend=backend)
    if wanted == "shape":
        with pytest.raises(tenon.InvalidArgument, match="shape"):
            plan(x, np.array(numbers))
        return
    with caplog.at_level(logging.INFO, logger="tenon"):
        got = plan(x, np.array(numbers))[0]
    given = np.tile(x, numbers) if op == "Tile" else x.reshape(wanted)
    np.testing.assert_array_equal(got, -given)
    assert "(role " not in caplog.text and "(function " not in caplog.text
