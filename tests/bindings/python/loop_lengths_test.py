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


SCANNED = """
g (float[L, B] x, float[B] h, float[K, B] old) => (float[B] end, float[L, B] ys, float[M, B] all) {
  end, ys = Scan <num_scan_inputs = 1, body = step (float[P] s, float[P] e)
      => (float[P] next, float[P] y) { next = Add(s, e) y = Neg(next) }> (h, x)
  all = Concat <axis = 0> (old, ys)
}"""
LOOPED = """
g (int64 n, float[A, B] x, float[K, A, B] old)
  => (float[A, B] end, float[L, A, B] ys, float[M, A, B] all) {
  go = Constant <value = bool {1}> ()
  end, ys = Loop <body = step (int64 i, bool c, float[P, Q] s)
      => (bool more, float[P, Q] next, float[P, Q] y) {
          next = Mul(s, x) y = Neg(next) more = Identity(c) }> (n, go, x)
  all = Concat <axis = 0> (old, ys)
}"""


@pytest.mark.parametrize("backend", ["onednn", "reference"])
@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_what_no_step_gives_has_the_sizes_that_a_step_would_give(tmp_path, backend, looped, steps):
    text = LOOPED if looped else SCANNED
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>{text}')
    onnx.save(model, tmp_path / "m.onnx")
    shape = (2, 3) if looped else (3,)
    start, old = np.full(shape, 2, "f"), np.ones((4, *shape), "f")
    x = np.arange(steps * 3, dtype="f").reshape(steps, 3)
    feeds = {"n": np.array(steps), "x": start} if looped else {"x": x, "h": start}
    kept = [start]
    for step in range(steps):
        kept.append(kept[-1] * start if looped else kept[-1] + x[step])
    ys = -np.array(kept[1:], "f").reshape(steps, *shape)
    plan = tn.load(str(tmp_path / "m.onnx")).compile(backend=backend)
    for got, wanted in zip(
        plan.run(feeds | {"old": old}), [kept[-1], ys, np.concatenate([old, ys])]
    ):
        np.testing.assert_array_equal(got, wanted, strict=True)
