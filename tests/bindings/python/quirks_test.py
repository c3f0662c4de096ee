# SPDX-License-Identifier: Apache-2.0
"""What exporters write, run on both backends: NumPy or onnx's reference evaluator is the judge."""

import numpy as np
import onnx
import pytest
import tenon
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import F32, INT64, both, constant, info, model_of, ran

RANDOM = np.random.default_rng(3)


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs, outputs, name=outputs[0], **attrs)


def test_weights_in_constant_nodes(tmp_path):
    w = RANDOM.standard_normal((4, 3)).astype("f")
    value = onnx.numpy_helper.from_array(w)
    nodes = [node("Constant", [], ["w"], value=value), node("MatMul", ["x", "w"], ["y"])]
    x = RANDOM.standard_normal((2, 4)).astype("f")

    for y in both(tmp_path, model_of(nodes, [info("x", [2, 4])], ["y"]), x=x):
        np.testing.assert_allclose(y, x @ w, rtol=1e-5)


def test_hard_swish_spelled_out_is_one_operator(tmp_path):
    nodes = [
        node("Add", ["x", "three"], ["a"]),
        node("Clip", ["a", "zero", "six"], ["c"]),
        node("Mul", ["x", "c"], ["m"]),
        node("Div", ["m", "six"], ["y"]),
    ]
    numbers = [constant("three", 3.0), constant("zero", 0.0), constant("six", 6.0)]
    model = model_of(nodes, [info("x", ["n", 5])], ["y"], numbers, opset=12)
    x = np.linspace(-5, 5, 10, dtype="f").reshape(2, 5)

    loaded = ran(tmp_path, model)
    for y in both(tmp_path, model, x=x):
        np.testing.assert_allclose(y, x * np.clip(x + 3, 0, 6) / 6, atol=1e-6)

    assert "HardSwish(" in loaded.apply("fusion.default").text()


def test_a_batch_of_minus_one_is_any_batch(tmp_path):
    model = model_of([node("Relu", ["x"], ["y"])], [info("x", [1, 3, "?", "?"])], ["y"], opset=11)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    x = RANDOM.standard_normal((5, 3, 2, 7)).astype("f")

    for y in both(tmp_path, model, x=x):
        np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_initializers_listed_as_inputs_need_not_be_given(tmp_path):
    w = constant("w", np.arange(4, dtype="f"))
    model = model_of(
        [node("Add", ["x", "w"], ["y"])],
        [info("x", [4]), info("w", [4])],
        ["y"],
        [w],
        opset=8,
        ir=3,
    )

    assert [port.name for port in ran(tmp_path, model).inputs] == ["x"]
    for y in both(tmp_path, model, x=np.ones(4, "f")):
        assert y.tolist() == [1, 2, 3, 4]


def test_nested_ifs_over_a_rate_and_a_state(tmp_path):
    def branch(name, factor, inner=None):
        scaled = [
            node("Mul", ["state", f"{name}_k"], [f"{name}_s"]),
            node("Add", ["x", f"{name}_s"], [f"{name}_y"]),
        ]
        out = [info(f"{name}_y", [2]), info(f"{name}_s", [2])]
        graph = helper.make_graph(scaled, name, [], out, [constant(f"{name}_k", factor)])
        if inner is None:
            return graph
        pick = helper.make_node(
            "If", ["is_odd"], [f"{name}_iy", f"{name}_is"], then_branch=graph, else_branch=inner
        )
        out = [info(f"{name}_iy", [2]), info(f"{name}_is", [2])]
        return helper.make_graph([pick], f"{name}_outer", [], out)

    nodes = [
        node("Equal", ["sr", "rate"], ["is_rate"]),
        node("Mod", ["sr", "two"], ["rest"]),
        node("Cast", ["rest"], ["is_odd"], to=onnx.TensorProto.BOOL),
        helper.make_node(
            "If",
            ["is_rate"],
            ["y", "next"],
            then_branch=branch("a", 2.0),
            else_branch=branch("b", 3.0, branch("c", 4.0)),
        ),
    ]
    inputs = [info("x", [2]), info("state", [2]), info("sr", [], INT64)]
    numbers = [constant("rate", 16000), constant("two", 2)]
    model = model_of(nodes, inputs, ["y", "next"], numbers, opset=16)
    inspected = ran(tmp_path, model).inspect()
    assert inspected["operators"]["Mul"] == 3 and inspected["operators"]["If"] == 2
    assert inspected["parameters"] == 5  # two of the graph, three in bodies
    for backend in ("reference", "onednn"):
        plan = ran(tmp_path, model).compile(backend=backend)
        for rate, factor in ((16000, 2), (8001, 3), (8000, 4)):
            state = np.ones(2, "f")
            for _ in range(3):
                y, state = plan(np.ones(2, "f"), state, np.array(rate))
            assert state.tolist() == [factor**3] * 2 and y.tolist() == [1 + factor**3] * 2


def test_models_that_are_quantized_already(tmp_path):
    weight = RANDOM.integers(-127, 128, (16, 8)).astype(np.int8)
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", ["q", "w", "z"], ["i"]),
        node("Cast", ["i"], ["f"], to=F32),
        node("Mul", ["s", "ws"], ["scale"]),
        node("Mul", ["f", "scale"], ["y"]),
    ]
    numbers = [constant("w", weight), constant("ws", np.float32(0.02))]
    model = model_of(nodes, [info("x", ["n", 16])], ["y"], numbers, opset=18)
    x = RANDOM.standard_normal((5, 16)).astype("f")
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})

    for y in both(tmp_path, model, x=x):
        np.testing.assert_allclose(y, wanted, rtol=1e-5)
    with pytest.raises(tenon.TenonError, match="already quantized"):
        ran(tmp_path, model).apply("quantizer.dynamic")


def test_doubles_with_sines_and_scattered_elements(tmp_path):
    nodes = [
        node("Cast", ["x"], ["d"], to=onnx.TensorProto.DOUBLE),
        node("Sin", ["d"], ["s"]),
        node("Cos", ["d"], ["c"]),
        node("ScatterElements", ["s", "at", "c"], ["y"], axis=1),
    ]
    at = np.array([[2, 0, 1], [1, 2, 0]])
    model = model_of(nodes, [info("x", [2, 3])], ["y"], [constant("at", at)], opset=18)
    x = RANDOM.standard_normal((2, 3)).astype("f")
    wanted = np.sin(x.astype(float))
    np.put_along_axis(wanted, at, np.cos(x.astype(float)), 1)

    for y in both(tmp_path, model, x=x):
        assert y.dtype == np.float64
        np.testing.assert_allclose(y, wanted, rtol=1e-12)


def test_channels_last_origins_lose_their_transposes(tmp_path):
    w = RANDOM.standard_normal((6, 3, 3, 3)).astype("f")
    nodes = [
        node("Transpose", ["x"], ["nchw"], perm=[0, 3, 1, 2]),
        node("Conv", ["nchw", "w"], ["c1"], pads=[1] * 4),
        node("Transpose", ["c1"], ["nhwc"], perm=[0, 2, 3, 1]),
        node("Relu", ["nhwc"], ["r"]),
        node("Transpose", ["r"], ["back"], perm=[0, 3, 1, 2]),
        node("MaxPool", ["back"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Transpose", ["p"], ["y"], perm=[0, 2, 3, 1]),
    ]
    model = model_of(nodes, [info("x", ["n", 8, 8, 3])], ["y"], [constant("w", w)], opset=15)
    x = RANDOM.standard_normal((2, 8, 8, 3)).astype("f")
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})

    for y in both(tmp_path, model, x=x):
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
    plan = ran(tmp_path, model).compile(backend="onednn")
    plan(x)
    # Channels last is how onednn keeps images: no transpose moves memory.
    assert sum(part.get("reorders", 0) for part in plan.describe()["partitions"]) == 0


def test_norm_and_gelu_in_pieces_are_one_operator_each(tmp_path):
    nodes = [
        node("ReduceMean", ["x"], ["mean"], axes=[-1]),
        node("Sub", ["x", "mean"], ["d"]),
        node("Pow", ["d", "two"], ["sq"]),
        node("ReduceMean", ["sq"], ["var"], axes=[-1]),
        node("Add", ["var", "eps"], ["ve"]),
        node("Sqrt", ["ve"], ["sd"]),
        node("Div", ["d", "sd"], ["n"]),
        node("Mul", ["n", "gamma"], ["g"]),
        node("Add", ["g", "beta"], ["h"]),
        node("Div", ["h", "root"], ["u"]),
        node("Erf", ["u"], ["e"]),
        node("Add", ["e", "one"], ["e1"]),
        node("Mul", ["h", "e1"], ["he"]),
        node("Mul", ["he", "half"], ["y"]),
    ]
    numbers = [constant(n, v) for n, v in (("two", 2.0), ("eps", 1e-5), ("one", 1.0))]
    numbers += [constant("root", np.float32(2**0.5)), constant("half", 0.5)]
    numbers += [constant("gamma", np.arange(1, 9, dtype="f")), constant("beta", np.ones(8, "f"))]
    model = model_of(nodes, [info("x", ["n", 8])], ["y"], numbers, opset=17)
    x = RANDOM.standard_normal((3, 8)).astype("f")
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})

    text = ran(tmp_path, model).apply("fusion.default").text()
    for y in both(tmp_path, model, x=x):
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)

    assert "LayerNormalization(" in text and "Gelu(" in text and "Erf(" not in text


def in_the_form_of(opset: int):
    """relu, resize, pad, slice, mean, squeeze, clip, softmax: written as the opset wants them."""
    names, numbers = iter("abcdefgh"), []
    nodes = [node("Relu", ["x"], ["a"])]
    last = [next(names)]

    def add(op, old_below, name, value, attrs=None, more=()):
        out = next(names)
        inputs = [last[0]]
        attrs = dict(attrs or {})
        if opset < old_below:
            attrs[name] = np.asarray(value).tolist()
        else:
            inputs += [*more, f"{out}_{name}"]
            numbers.append(constant(f"{out}_{name}", np.asarray(value)))
        nodes.append(node(op, inputs, [out], **attrs))
        last[0] = out

    if opset < 9:
        add("Upsample", 99, "scales", [1.0, 1.0, 2.0, 2.0])
    elif opset < 10:
        add("Upsample", 9, "scales", np.array([1, 1, 2, 2], "f"))
    else:
        # floor and asymmetric, as Upsample and the first Resize do it
        old = {} if opset < 11 else {"nearest_mode": "floor"}
        old |= {} if opset < 11 else {"coordinate_transformation_mode": "asymmetric"}
        add("Resize", 0, "scales", np.array([1, 1, 2, 2], "f"), old, ("",) if opset > 10 else ())
    add("Pad", 11, "pads", np.array([0, 0, 1, 0, 0, 0, 0, 1]))
    add("ReduceMean", 18, "axes", np.array([3]), {"keepdims": 1})
    add("Squeeze", 13, "axes", np.array([3]))
    out = next(names)
    if opset < 11:
        nodes.append(node("Clip", [last[0]], [out], min=0.1, max=0.6))
    else:
        numbers.extend([constant("low", 0.1), constant("high", 0.6)])
        nodes.append(node("Clip", [last[0], "low", "high"], [out]))
    # Before 13 all axes from this one on are one.
    nodes.append(node("Softmax", [out], ["y"], axis=2))
    return model_of(nodes, [info("x", [1, 2, 3, 4])], ["y"], numbers, opset=opset)


@pytest.mark.parametrize("opset", range(7, 28))
def test_one_network_in_the_form_of_every_opset(opset, tmp_path):
    x = RANDOM.random((1, 2, 3, 4), np.float32)
    wide = np.pad(np.maximum(x, 0).repeat(2, 2).repeat(2, 3), ((0, 0), (0, 0), (1, 0), (0, 1)))
    clipped = wide.mean(3).clip(0.1, 0.6)
    e = np.exp(clipped - clipped.max(2, keepdims=True))

    for y in both(tmp_path, in_the_form_of(opset), x=x):
        np.testing.assert_allclose(y, e / e.sum(2, keepdims=True), rtol=1e-5)


def test_errors_name_no_role_or_function_of_a_plugin(tmp_path):
    with pytest.raises(tenon.InvalidArgument, match="expected -3..2, got 7") as raised:
        tenon.jit(lambda x, i: x.at[i].set(9.0))(np.zeros(3, "f"), np.int64(7))
    assert "(role" not in str(raised.value) and "(function" not in str(raised.value)
    assert "(role tenon.backend/1)" in raised.value.whole
    with pytest.raises(
        tenon.NotFound, match="option loss: component trainer.crossentropy: not found"
    ):
        model = tenon.jit(lambda x: x + 1).trace(np.zeros((2, 3), "f"))
        np.savez(tmp_path / "d.npz", x0=np.zeros((4, 3), "f"), label=np.zeros(4, "i8"))
        tenon.train(model, data=tenon.data.npz(tmp_path / "d.npz"), loss="crossentropy")


def test_lengths_of_grams_that_the_pool_has_not_cost_nothing(tmp_path):
    """Pairs with up to 4 numbers left out and triples, in a row of thousands; NumPy counts."""
    x = RANDOM.integers(0, 9, 4000)
    pairs, triples, skipped = [[1, 2], [3, 3]], [[1, 2, 3]], 4
    attrs = {"min_gram_length": 1, "max_gram_length": 1000, "max_skip_count": skipped, "mode": "TF",
             "ngram_counts": [0, 0, 4], "ngram_indexes": [0, 1, 2],
             "pool_int64s": np.ravel(pairs).tolist() + np.ravel(triples).tolist()}  # fmt: skip
    model = model_of(
        [node("TfIdfVectorizer", ["x"], ["y"], **attrs)], [info("x", [4000], INT64)], ["y"]
    )

    def stands(gram, step):
        last = (len(gram) - 1) * step
        parts = [x[k * step : len(x) - last + k * step] for k in range(len(gram))]
        return np.all([part == one for part, one in zip(parts, gram)], axis=0).sum()

    def count(gram):
        return sum(stands(gram, step) for step in range(1, skipped + 2))

    for y in both(tmp_path, model, x=x):
        np.testing.assert_array_equal(y, [count(gram) for gram in pairs + triples])


def test_boxes_of_an_image_without_pixels_are_refused(tmp_path):
    roi = node("RoiAlign", ["x", "boxes", "image"], ["y"], output_height=3, output_width=2)
    inputs = [info("x", [1, 2, "h", 5]), info("boxes", [1, 4]), info("image", [1], INT64)]
    model = model_of([roi], inputs, ["y"])
    boxes, image = np.array([[0, 0, 3, 3]], "f"), np.zeros(1, np.int64)
    for y in both(tmp_path, model, x=np.ones((1, 2, 4, 5), "f"), boxes=boxes, image=image):
        assert y.shape == (1, 2, 3, 2)
    with pytest.raises(tenon.TenonError, match="at least one pixel, got 0x5"):
        both(tmp_path, model, x=np.ones((1, 2, 0, 5), "f"), boxes=boxes, image=image)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_powers_of_integers_to_fractions_are_cut(tmp_path, kind):
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    inputs = [info("x", [5], INT64), info("e", [5], element)]
    model = model_of([node("Pow", ["x", "e"], ["y"])], inputs, ["y"])
    feeds = {"x": np.array([2, 3, 4, 10, -2]), "e": np.array([0.5, 1.5, 2.5, -1, 3], kind)}

    for y in both(tmp_path, model, **feeds):
        assert (y.dtype, y.tolist()) == (np.int64, [1, 5, 32, 0, -8])
