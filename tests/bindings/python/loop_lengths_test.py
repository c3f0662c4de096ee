# SPDX-License-Identifier: Apache-2.0
"""Loops whose number of steps is known say how long is what they stack."""

import numpy as np
import onnx
import pytest
import tenon as tn
from onnx import TensorProto, helper


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_products_with_a_state_that_begins_alike_for_all_examples(steps):
    """What each step kept is as long as the loop, also where only a product reads it."""
    a = np.random.default_rng(5).standard_normal((2, 3, 3)).astype("f")

    def looped(a):
        state = tn.eye(3)
        return tn.scan(lambda t, _: (t @ a, None), state, None, length=steps)[0].sum()

    def unrolled(a):
        state = tn.eye(3) + 0 * a
        for _ in range(steps):
            state = state @ a
        return state.sum()

    got, wanted = tn.vmap(tn.grad(looped))(a), tn.vmap(tn.grad(unrolled))(a)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("count", "goes_on", "size"), [(5, True, 5), (5, False, 1), (-2, True, 0)])
def test_the_length_of_a_loop_whose_steps_are_known(tmp_path, count, goes_on, size):
    true = helper.make_tensor("true", TensorProto.BOOL, [], [goes_on])
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Cast", ["i"], ["number"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["number", "outer"], ["out"]),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, [])],
        [value("true", TensorProto.BOOL, []), value("out", TensorProto.FLOAT, [])],
        [true],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["count", ""], ["y"], body=body)],
        "g",
        [value("outer", TensorProto.FLOAT, [])],
        [value("y", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor("count", TensorProto.INT64, [], [count])],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, path := tmp_path / "loop.onnx")
    loaded = tn.load(path)
    got = loaded.compile()(np.float32(3))[0]
    np.testing.assert_array_equal(got, 3 + np.arange(size, dtype="f"))
