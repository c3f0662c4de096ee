# SPDX-License-Identifier: Apache-2.0
"""Models that are wrong, or ask for too much: one clear error that names the node."""

import numpy as np
import pytest
import tenon
from onnx import helper
from onnx_models import F32, INT64, constant, info, model_of, ran

HUGE = 1 << 38  # floats: a terabyte


def node(op, inputs, output, **attrs):
    return helper.make_node(op, inputs, [output], name=f"make_{output}", **attrs)


@pytest.mark.parametrize("backend", ["reference", "onednn"])
@pytest.mark.parametrize("inner", [False, True])
def test_a_terabyte_is_refused_by_the_nodes_name(backend, inner, tmp_path):
    nodes = [node("Expand", ["x", "s"], "h"), node("Relu", ["h"], "r")]
    nodes += [node("ReduceSum", ["r"], "y")] if inner else []
    model = model_of(
        nodes, [info("x", [1])], ["y" if inner else "h"], [constant("s", np.array([HUGE]))]
    )
    plan = ran(tmp_path, model).compile(backend=backend)

    with pytest.raises(tenon.ResourceExhausted, match=f"make_h.* {4 * HUGE} bytes"):
        plan(np.ones(1, "f"))


@pytest.mark.parametrize("backend", ["reference", "onednn"])
def test_a_size_that_comes_from_data_is_refused_alike(backend, tmp_path):
    model = model_of(
        [node("Range", ["a", "b", "c"], "y")], [info(n, [], INT64) for n in "abc"], ["y"]
    )
    plan = ran(tmp_path, model).compile(backend=backend)

    with pytest.raises(tenon.ResourceExhausted, match="make_y"):
        plan(np.array(0), np.array(1 << 46), np.array(1))
    with pytest.raises(tenon.InvalidArgument, match="limit: expected at most"):
        plan(np.array(0), np.array(1 << 50), np.array(1))

    assert plan(np.array(0), np.array(3), np.array(1))[0].tolist() == [0, 1, 2]


GROWING = {
    "Pad": [np.array([HUGE, 0])],
    "Tile": [np.array([HUGE])],
    "Resize": [None, None, np.array([HUGE])],
    "CenterCropPad": [np.array([HUGE])],
    "OneHot": [np.array(HUGE), np.array([0, 1], "f")],
    "AffineGrid": [np.array([1, 1, HUGE, 4])],
    "DFT": [np.array(HUGE)],
    "ConstantOfShape": [],
    "HannWindow": [],
}
FIRST = {
    "AffineGrid": np.ones((1, 2, 3), "f"),
    "DFT": np.ones((1, 4, 1), "f"),
    "ConstantOfShape": np.array([HUGE]),
    "HannWindow": np.array(HUGE),
}


@pytest.mark.parametrize("backend", ["reference", "onednn"])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("op", GROWING)
def test_sizes_are_looked_at_before_anything_is_made_of_them(op, known, backend, tmp_path):
    more = GROWING[op]
    arrays = {"x": FIRST.get(op, np.ones(4, "f"))}
    arrays |= {f"n{i}": a for i, a in enumerate(more) if a is not None}
    names = ["x", *("" if a is None else f"n{i}" for i, a in enumerate(more))]
    ports, constants = [], []
    for name, array in arrays.items():
        element = INT64 if array.dtype == np.int64 else F32
        if known and (name != "x" or not more):
            constants.append(constant(name, array))
        else:
            ports.append(info(name, array.shape, element))
    model = model_of([node(op, names, "y")], ports, ["y"], constants, opset=20)
    plan = ran(tmp_path, model).compile(backend=backend)

    with pytest.raises(tenon.ResourceExhausted, match="bytes"):
        plan.run({port.name: arrays[port.name] for port in ports})


@pytest.mark.parametrize("backend", ["reference", "onednn"])
def test_results_whose_shape_depends_on_data_may_differ_from_run_to_run(backend, tmp_path):
    nodes = [node("NonZero", ["x"], "at"), node("Cast", ["at"], "f", to=1), node("Neg", ["f"], "y")]
    plan = ran(tmp_path, model_of(nodes, [info("x", [2, 2])], ["y"])).compile(backend=backend)

    for x, n in ((np.eye(2), 2), (np.ones((2, 2)), 4), (np.zeros((2, 2)), 0)):
        assert plan(x.astype("f"))[0].shape == (2, n)


# operator: constants that it reads behind x; an x that gives a small result, one that gives a large
OF_UNKNOWN_SIZE = {
    "NonZero": ([], np.eye(4), np.ones((4, 4))),
    "Unique": ([], np.zeros((5, 5)), np.arange(25).reshape(5, 5)),
    "Compress": ([], np.eye(5), np.ones((5, 5))),
    "Range": ([np.array(3, "f"), np.array(1, "f")], np.array(0), np.array(-97)),
    "ConstantOfShape": ([], np.array([3]), np.array([100])),
    "NonMaxSuppression": (
        [np.zeros((1, 1, 40), "f"), np.array([40]), np.array([0.5], "f"), np.array([-1.0], "f")],
        np.tile(np.array([0, 0, 1, 1.0]), (1, 40, 1)),
        np.stack([np.arange(40), np.arange(40), np.arange(40) + 0.9, np.arange(40) + 0.9], 1)[None],
    ),
}


@pytest.mark.parametrize("backend", ["reference", "onednn"])
@pytest.mark.parametrize("op", OF_UNKNOWN_SIZE)
@pytest.mark.parametrize("is_output", [False, True])
def test_values_whose_size_comes_from_data_can_be_capped(is_output, op, backend, tmp_path):
    more, small, large = OF_UNKNOWN_SIZE[op]
    element = INT64 if op == "ConstantOfShape" else F32
    array = lambda given: given.astype(np.int64 if element == INT64 else "f")  # noqa: E731
    constants = [constant(f"c{i}", value) for i, value in enumerate(more)]
    names = ["x", *(c.name for c in constants)]
    names += ["x_is"] if op == "Compress" else []
    nodes = [node("Cast", ["x"], "b", to=9), node("Reshape", ["b", "flat"], "x_is")]
    nodes = nodes if op == "Compress" else []
    constants += [constant("flat", np.array([-1]))] if op == "Compress" else []
    nodes += [node(op, names, "h")] + ([] if is_output else [node("Shape", ["h"], "y")])
    ports = [info("x", small.shape, element)]
    model = model_of(nodes, ports, ["h" if is_output else "y"], constants, opset=20)
    plan = ran(tmp_path, model).compile(backend=backend, max_value_bytes=64)

    plan(array(small))
    with pytest.raises(tenon.ResourceExhausted, match="make_h.*max_value_bytes"):
        plan(array(large))
    plan(array(small))


@pytest.mark.parametrize("limit", [-1, "64"])
def test_a_cap_is_a_number(limit, tmp_path):
    model = ran(tmp_path, model_of([node("Relu", ["x"], "y")], [info("x", [2])], ["y"]))

    with pytest.raises(tenon.InvalidArgument, match="max_value_bytes"):
        model.compile(max_value_bytes=limit)


def test_an_input_of_another_shape_than_declared_is_named(tmp_path):
    plan = ran(tmp_path, model_of([node("Relu", ["x"], "y")], [info("x", [2, 4])], ["y"])).compile()

    with pytest.raises(tenon.InvalidArgument, match=r"input x: expected float32\[2, 4\], got"):
        plan(np.ones((2, 3), "f"))


def test_where_stated_types_disagree_inference_is_right(tmp_path):
    model = model_of(
        [node("Relu", ["x"], "h"), node("Neg", ["h"], "y")], [info("x", [2, 3])], ["y"]
    )
    model.graph.value_info.append(info("h", [7, 7]))

    assert ran(tmp_path, model).compile()(np.ones((2, 3), "f"))[0].shape == (2, 3)


@pytest.mark.parametrize(
    "nodes, match",
    [
        ([node("Add", ["x", "b"], "a"), node("Relu", ["a"], "b")], "make_a.*cycle"),
        ([node("Relu", ["x"], "a"), node("Neg", ["x"], "a")], "make_a.*two values have the name a"),
    ],
)
def test_cycles_and_double_names_are_refused(nodes, match, tmp_path):
    with pytest.raises(tenon.InvalidArgument, match=match):
        ran(tmp_path, model_of(nodes, [info("x", [2])], ["a"]))
