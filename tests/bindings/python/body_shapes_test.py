# SPDX-License-Identifier: Apache-2.0
"""Shapes behind If, Loop and Scan where the batch is known only when a plan is made."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import INT64, constant, info, model_of, ran

X = np.random.default_rng(2).standard_normal((3, 8)).astype("f")
W = np.random.default_rng(4).standard_normal((8, 8)).astype("f")
BOOL = 9


def looping():
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["state", "w"], ["m"]),
            helper.make_node("Tanh", ["m"], ["next"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [info("i", [], INT64), info("go", [], BOOL), info("state", ["n", 8])],
        [info("on", [], BOOL), info("next", ["n", 8])],
    )
    return helper.make_node("Loop", ["times", "", "x"], ["h"], body=body)


def scanning():
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "one"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["next"]),
        ],
        "body",
        [info("state", ["n", 8]), info("one", ["n", 8])],
        [info("next", ["n", 8])],
    )
    return helper.make_node("Scan", ["x", "xs"], ["h"], body=body, num_scan_inputs=1)


def choosing():
    def branch(op):
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node(op, ["p"], ["o"])]
        return helper.make_graph(nodes, op, [], [info("o", None)])

    return helper.make_node(
        "If", ["flag"], ["h"], then_branch=branch("Relu"), else_branch=branch("Tanh")
    )


@pytest.mark.parametrize("kind", ["Loop", "Scan", "If"])
def test_layers_behind_bodies_run_on_the_backend(tmp_path, kind):
    before = {"Loop": [looping()], "If": [choosing()]}.get(kind) or [
        helper.make_node("Unsqueeze", ["x", "zero"], ["xs"]),
        scanning(),
    ]
    nodes = [*before, helper.make_node("MatMul", ["h", "w"], ["y"], "behind")]
    inputs = [info("x", ["n", 8])]
    feeds = {"x": X}
    if kind == "Loop":
        inputs.append(info("times", [], INT64))
        feeds["times"] = np.array(2)
    if kind == "If":
        inputs.append(info("flag", [], BOOL))
        feeds["flag"] = np.array(True)
    model = ran(tmp_path, model_of(nodes, inputs, ["y"], [constant("w", W), constant("zero", [0])]))

    plan = model.compile(backend="onednn")
    (found,) = plan.run(feeds)
    (wanted,) = model.compile(backend="reference").run(feeds)

    left = [one["node"] for one in plan.describe().get("fallback_nodes", [])]
    assert "behind" not in left
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("carried", "made"),
    [
        (["r", 8], ["q", 8]),
        (["r", 8], ["r", 8]),
        ([3, 8], [6, 8]),
        ([3, 8], ["q", 8]),
        ([1, 8], [1, 8]),
        (["r", "r"], ["q", 8]),
    ],
)
@pytest.mark.parametrize("backend", ["onednn", "reference"])
def test_a_loop_may_grow_what_its_body_states_sizes_for(tmp_path, carried, made, backend):
    body = helper.make_graph(
        [
            helper.make_node("Concat", ["state", "x"], ["next"], axis=0),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [info("i", [], INT64), info("go", [], BOOL), info("state", carried)],
        [info("on", [], BOOL), info("next", made)],
    )
    nodes = [helper.make_node("Loop", ["times", "", "x"], ["y"], body=body)]
    model = model_of(nodes, [info("x", ["r", 8])], ["y"], [constant("times", np.array(3))])

    (found,) = ran(tmp_path, model).compile(backend=backend).run({"x": X})

    np.testing.assert_array_equal(found, np.concatenate([X] * 4))
