# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX Runtime's graph optimizer writes, on both backends: NumPy is the judge."""

import math

import numpy as np
import onnx
import onnx.reference
import pytest
import tenon as tn
from onnx import helper
from onnx_models import info

RANDOM = np.random.default_rng(7)
erf = np.vectorize(math.erf)


def array(*shape):
    return RANDOM.standard_normal(shape).astype("f")


def results(folder, op, inputs, n_outputs=1, skipped=(), constants=(), **attributes):
    """What both backends give of one node; inputs: arrays by name, None where one is absent;
    constants: the names of those that stand in the file."""
    names = [name if value is not None else "" for name, value in inputs.items()]
    outputs = ["" if i in skipped else f"y{i}" for i in range(n_outputs)]
    node = helper.make_node(op, names, outputs, domain="com.microsoft", name="n", **attributes)
    given = {name: value for name, value in inputs.items() if value is not None}
    fixed = [onnx.numpy_helper.from_array(given.pop(name), name) for name in constants]
    types = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in given.items()}
    graph = helper.make_graph(
        [node],
        "g",
        [info(name, value.shape, types[name]) for name, value in given.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs if name],
        fixed,
    )
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), path)
    model = tn.load(path)
    return [model.compile(backend=name).run(given) for name in ("reference", "onednn")]


def expect(made, *wanted):
    for one in made:
        assert len(one) == len(wanted)
        for got, want in zip(one, wanted):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def test_gelu_and_its_relatives(tmp_path):
    x, bias = array(2, 3, 8), array(8)
    expect(results(tmp_path, "Gelu", {"x": x}), gelu(x))
    expect(results(tmp_path, "BiasGelu", {"x": x, "b": bias}), gelu(x + bias))
    expect(results(tmp_path, "FastGelu", {"x": x}), fast_gelu(x))
    expect(results(tmp_path, "FastGelu", {"x": x, "b": bias}), fast_gelu(x + bias))
    expect(results(tmp_path, "QuickGelu", {"x": x}), x / (1 + np.exp(-1.702 * x)))
    expect(results(tmp_path, "QuickGelu", {"x": x}, alpha=1.0), x / (1 + np.exp(-x)))


@pytest.mark.parametrize("has_bias", [False, True])
def test_the_normalization_of_a_sum(tmp_path, has_bias):
    x, skip, scale, shift, bias = array(2, 3, 8), array(2, 3, 8), array(8), array(8), array(8)
    total = x + skip + (bias if has_bias else 0)
    mean, variance = total.mean(-1, keepdims=True), total.var(-1, keepdims=True)
    wanted = (total - mean) / np.sqrt(variance + 1e-3) * scale + shift
    inputs = {"x": x, "s": skip, "g": scale, "b": shift} | ({"c": bias} if has_bias else {})
    norm = "SkipLayerNormalization"
    expect(results(tmp_path, norm, inputs, epsilon=1e-3), wanted)
    expect(results(tmp_path, norm, inputs, 4, skipped=(1, 2), epsilon=1e-3), wanted, total)
    inverse = 1 / np.sqrt(variance + 1e-3)
    expect(results(tmp_path, norm, inputs, 4, epsilon=1e-3), wanted, mean, inverse, total)

    root = np.sqrt((total**2).mean(-1, keepdims=True) + 1e-3)
    inputs = {"x": x, "s": skip, "g": scale} | ({"c": bias} if has_bias else {})
    norm = "SkipSimplifiedLayerNormalization"
    made = results(tmp_path, norm, inputs, 4, skipped=(1, 2), epsilon=1e-3)
    expect(made, total / root * scale, total)
    with pytest.raises(tn.TenonError, match="its statistics as results"):
        results(tmp_path, norm, inputs, 4)


@pytest.mark.parametrize("a_across, b_across", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_product_of_transposed_operands(tmp_path, a_across, b_across):
    a, b = array(2, 3, 4), array(2, 4, 5)
    given = {"a": a.swapaxes(1, 2).copy() if a_across else a}
    given["b"] = b.swapaxes(1, 2).copy() if b_across else b
    made = results(tmp_path, "FusedMatMul", given, transA=a_across, transB=b_across, alpha=0.25)
    expect(made, 0.25 * (a @ b))


def test_the_older_name_of_a_product(tmp_path):
    a, b = array(2, 3, 4), array(2, 5, 4)
    expect(results(tmp_path, "TransposeMatMul", {"a": a, "b": b}, transB=1), a @ b.swapaxes(1, 2))


def test_a_product_whose_batch_is_transposed_is_refused(tmp_path):
    with pytest.raises(tn.TenonError, match="transBatchA: expected 0, got 1"):
        results(tmp_path, "FusedMatMul", {"a": array(2, 3, 4), "b": array(2, 4, 5)}, transBatchA=1)


ACTIVATIONS = {
    "Relu": ((), lambda y: np.maximum(y, 0)),
    "Sigmoid": ((), lambda y: 1 / (1 + np.exp(-y))),
    "Tanh": ((), np.tanh),
    "LeakyRelu": ((0.2,), lambda y: np.where(y < 0, 0.2 * y, y)),
    "HardSigmoid": ((0.3, 0.4), lambda y: np.clip(0.3 * y + 0.4, 0, 1)),
    "Clip": ((-0.5, 0.75), lambda y: np.clip(y, -0.5, 0.75)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_convolution_with_sum_and_activation(tmp_path, name):
    x, w, bias, z = array(1, 3, 4, 4), array(2, 3, 1, 1), array(2), array(1, 2, 4, 4)
    parameters, function = ACTIVATIONS[name]
    more = {"activation_params": list(parameters)} if parameters else {}
    plain = np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]) + bias[:, None, None]
    given = {"x": x, "w": w, "b": bias}
    expect(results(tmp_path, "FusedConv", given, activation=name, **more), function(plain))
    given = {"x": x, "w": w, "b": None, "z": z}
    wanted = function(plain - bias[:, None, None] + z)
    expect(results(tmp_path, "FusedConv", given, activation=name, **more), wanted)


GEMM_ACTIVATIONS = {
    "Relu": ({}, lambda y: np.maximum(y, 0)),
    "Softplus": ({}, lambda y: np.log1p(np.exp(y))),
    "LeakyRelu": ({"activation_alpha": 0.2}, lambda y: np.where(y < 0, 0.2 * y, y)),
    "Elu": ({"activation_alpha": 0.3}, lambda y: np.where(y < 0, 0.3 * np.expm1(y), y)),
    "HardSigmoid": (
        {"activation_alpha": 0.3, "activation_beta": 0.4},
        lambda y: np.clip(0.3 * y + 0.4, 0, 1),
    ),
}


@pytest.mark.parametrize("name", GEMM_ACTIVATIONS)
def test_a_gemm_with_an_activation(tmp_path, name):
    a, b, c = array(3, 4), array(5, 4), array(5)
    more, function = GEMM_ACTIVATIONS[name]
    made = results(tmp_path, "FusedGemm", {"a": a, "b": b, "c": c}, activation=name, transB=1,
                   alpha=0.5, beta=2.0, **more)  # fmt: skip
    expect(made, function(0.5 * (a @ b.T) + 2 * c))
    made = results(tmp_path, "FusedGemm", {"a": a, "b": b.T.copy()}, activation=name, **more)
    expect(made, function(a @ b.T))


def test_an_activation_whose_parameter_is_missing(tmp_path):
    with pytest.raises(tn.TenonError, match="with their parameters .* got Elu with 0 parameters"):
        results(tmp_path, "FusedGemm", {"a": array(2, 3), "b": array(3, 2)}, activation="Elu")


def test_an_activation_that_is_unknown(tmp_path):
    with pytest.raises(tn.TenonError, match="expected Relu, Sigmoid, .* got Swish"):
        results(tmp_path, "FusedConv", {"x": array(1, 3, 4, 4), "w": array(2, 3, 1, 1)},
                activation="Swish")  # fmt: skip


@pytest.mark.parametrize("per_column", [False, True])
def test_products_of_dynamic_quantization(tmp_path, per_column):
    a = RANDOM.integers(0, 256, (2, 3, 4)).astype("u1")
    b = RANDOM.integers(-128, 128, (4, 5)).astype("i1")
    columns = (5,) if per_column else ()
    b_scale, b_zero = np.abs(array(*columns)) + np.float32(0.1), np.full(columns, 3, "i1")
    bias, a_scale, a_zero = array(5), np.float32(0.5).reshape(()), np.array(7, "u1")
    sums = (a.astype("i4") - 7) @ (b.astype("i4") - b_zero.astype("i4"))
    given = {"a": a, "b": b, "as": a_scale, "bs": b_scale, "az": a_zero, "bz": b_zero, "c": bias}
    expect(results(tmp_path, "MatMulIntegerToFloat", given), sums * 0.5 * b_scale + bias)
    given |= {"bz": None, "c": None}
    sums = (a.astype("i4") - 7) @ b.astype("i4")
    expect(results(tmp_path, "MatMulIntegerToFloat", given), sums * 0.5 * b_scale)

    x = array(2, 3, 4)
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32((high - low) / 255)
    zero = np.round(-low / scale)
    quantized = np.clip(np.round(x / scale) + zero, 0, 255) - zero
    wanted = quantized @ b.astype("f") * scale * b_scale
    given = {"x": x, "b": b, "bs": b_scale}
    expect(results(tmp_path, "DynamicQuantizeMatMul", given), wanted)
    given |= {"bz": None, "c": bias}
    expect(results(tmp_path, "DynamicQuantizeMatMul", given), wanted + bias)


@pytest.mark.parametrize("by_column", [False, True])
def test_an_lstm_whose_weights_are_stored_in_8_bits(tmp_path, by_column):
    directions, hidden, x, bias = 2, 3, array(5, 2, 4), array(2, 24)
    shape = (directions, 4 * hidden) if by_column else (directions,)
    given, floats = {"x": x}, {"x": x}
    more = {}
    for name, size in (("w", 4), ("r", hidden)):
        stored = RANDOM.integers(-128, 128, (directions, size, 4 * hidden)).astype("i1")
        scale = np.abs(array(*shape)) * np.float32(0.01)
        zero = RANDOM.integers(-9, 9, shape).astype("i1")
        wide = [np.expand_dims(v, (1,) if by_column else (1, 2)) for v in (scale, zero)]
        floats[name] = ((stored.astype("f") - wide[1]) * wide[0]).transpose(0, 2, 1).copy()
        given[name] = stored
        more |= {name + "s": scale, name + "z": zero}
    given |= {"b": bias, "n": None, "h": None, "c": None, "p": None} | more
    attributes = {"hidden_size": hidden, "direction": "bidirectional"}
    made = results(tmp_path, "DynamicQuantizeLSTM", given, 3, **attributes)
    wanted = tn.op("LSTM", *floats.values(), bias, outputs=3, **attributes)
    expect(made, *(np.asarray(one) for one in wanted))


def test_matrices_are_inverted(tmp_path):
    x = array(2, 3, 4, 4) + 4 * np.eye(4, dtype="f")
    expect(results(tmp_path, "Inverse", {"x": x}), np.linalg.inv(x))


def test_amounts_of_padding_in_a_row(tmp_path):
    x, pads = array(2, 3), np.array([[0, 1, 1, 2]])
    number = np.array([7], "f")
    made = results(tmp_path, "Pad", {"x": x, "p": pads, "v": number}, constants=("p",))
    expect(made, np.pad(x, [(0, 1), (1, 2)], constant_values=7))
    for mode in ("reflect", "edge"):
        made = results(tmp_path, "Pad", {"x": x, "p": pads[0]}, constants=("p",), mode=mode)
        expect(made, np.pad(x, [(0, 1), (1, 2)], mode=mode))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("corners", [0, 1])
def test_an_image_read_along_a_grid(tmp_path, mode, corners):
    """ONNX's reference implementation is the judge: the operator is ONNX's under other names."""
    inputs = {"x": array(2, 3, 5, 6), "g": RANDOM.uniform(-0.9, 0.9, (2, 4, 3, 2)).astype("f")}
    made = results(tmp_path, "GridSample", inputs, mode=mode, align_corners=corners)
    names = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
    node = helper.make_node(
        "GridSample", ["x", "g"], ["y"], mode=names[mode], align_corners=corners
    )
    expect(made, *onnx.reference.ReferenceEvaluator(node).run(None, inputs))


def cropped(x, boxes, images, size, mode, outside):
    """TensorFlow's rule, one pixel after the other."""
    y = np.full((len(boxes), x.shape[1], *size), outside, "f")
    last = np.array(x.shape[2:], "f") - 1
    for n, (box, image) in enumerate(zip(boxes, images)):
        for at in np.ndindex(*size):
            place = []
            for d in range(2):
                begin, end = box[d] * last[d], box[d + 2] * last[d]
                share = at[d] / (size[d] - 1) if size[d] > 1 else 0.5
                place.append(begin + share * (end - begin))
            if any(p < 0 or p > m for p, m in zip(place, last)):
                continue
            if mode == "nearest":
                row, column = (int(np.floor(p + 0.5)) for p in place)
                y[n, :, *at] = x[image, :, row, column]
                continue
            (top, left), (bottom, right) = np.floor(place).astype(int), np.ceil(place).astype(int)
            down, along = place[0] - top, place[1] - left
            rows = [
                x[image, :, r, left] * (1 - along) + x[image, :, r, right] * along
                for r in (top, bottom)
            ]
            y[n, :, *at] = rows[0] * (1 - down) + rows[1] * down
    return y


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 2), (1, 1)])
def test_boxes_cut_from_images(tmp_path, mode, size):
    x, images = array(2, 3, 7, 6), np.array([1, 0, 1, 0], "i4")
    boxes = np.float32(
        [[0, 0, 1, 1], [0.13, 0.2, 0.71, 0.93], [0.9, 0.8, 0.1, 0.3], [-0.3, 0.4, 0.6, 1.3]]
    )
    inputs = {"x": x, "b": boxes, "i": images, "s": np.array(size, "i4")}
    made = results(
        tmp_path, "CropAndResize", inputs, constants=("s",), mode=mode, extrapolation_value=0.5
    )
    expect(made, cropped(x, boxes, images, size, mode, 0.5))
