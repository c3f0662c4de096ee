# SPDX-License-Identifier: Apache-2.0
"""Signs times signs, as `quantizer.binarize` and `quantizer.convert` write them, against NumPy in
float64; who computes them, and when nobody packs them."""

import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

PACKED = "tenon:binary_product"


def signs(rng, shape):
    return rng.choice([-1, 1], shape).astype(np.int8)


def sign_nodes(x="x", threshold="t", name="s"):
    return [
        helper.make_node("GreaterOrEqual", [x, threshold], [name + "_is"]),
        helper.make_node("Where", [name + "_is", "one", "minus"], [name]),
    ]


def run(tmp_path, nodes, inputs, constants, outputs=("y",), **options):
    """The results, and the kernels of the plan."""
    constants = {"one": np.float32(1), "minus": np.float32(-1), "t": np.float32(0), **constants}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    plan = tenon.load(str(path)).compile(backend="onednn", **options)
    results = [np.asarray(y) for y in plan(*inputs.values())]
    layers = [layer for part in plan.describe()["partitions"] for layer in part["layers"]]
    return results, [layer["kernel"] for layer in layers]


def numbers(rng, shape, t):
    """Some of them at the threshold itself, which is +1."""
    x = rng.uniform(-1, 1, shape).astype("f")
    at = rng.random(shape) < 0.1
    return np.where(at, np.broadcast_to(t, shape), x).astype("f")


def conv(x, w, stride, pad, step):
    """What is outside of x counts as 0."""
    n, c, height, width = x.shape
    o, _, kh, kw = w.shape
    padded = np.zeros((n, c, height + 2 * pad, width + 2 * pad))
    padded[:, :, pad : pad + height, pad : pad + width] = x
    out_h = (height + 2 * pad - step * (kh - 1) - 1) // stride + 1
    out_w = (width + 2 * pad - step * (kw - 1) - 1) // stride + 1
    y = np.zeros((n, o, out_h, out_w))
    for i in range(kh):
        for j in range(kw):
            top, left = i * step, j * step
            seen = padded[
                :, :, top : top + stride * out_h : stride, left : left + stride * out_w : stride
            ]
            y += np.einsum("oc,nchw->nohw", w[:, :, i, j].astype(float), seen[:, :, :out_h, :out_w])
    return y


@pytest.mark.parametrize(
    ("shape", "columns", "kernel", "stride", "pad", "step"),
    [
        ((1, 3, 9, 11), 5, 3, 1, 1, 1),
        ((2, 64, 8, 8), 33, 3, 2, 1, 1),
        ((1, 100, 7, 5), 70, 5, 1, 2, 1),
        ((3, 32, 6, 6), 64, 1, 1, 0, 1),
        ((1, 40, 9, 9), 20, 3, 1, 2, 2),
    ],
)
def test_convolutions(tmp_path, shape, columns, kernel, stride, pad, step):
    rng = np.random.default_rng(3)
    t = rng.uniform(-0.3, 0.3, (shape[1], 1, 1)).astype("f")
    x = numbers(rng, shape, t)
    w = signs(rng, (columns, shape[1], kernel, kernel))
    scale = rng.uniform(0.01, 0.1, columns).astype("f")
    bias = rng.uniform(-1, 1, columns).astype("f")
    expected = conv(np.where(x >= t, 1, -1), w, stride, pad, step)
    expected = np.maximum(expected * scale[:, None, None] + bias[:, None, None], 0)
    other = rng.uniform(-1, 1, expected.shape).astype("f")
    nodes = [
        *sign_nodes(),
        helper.make_node("DequantizeLinear", ["quantized", "scale"], ["w"], axis=0),
        helper.make_node(
            "Conv", ["s", "w", "b"], ["c"], pads=[pad] * 4, strides=[stride] * 2,
            dilations=[step] * 2,
        ),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Add", ["r", "other"], ["y"]),
    ]  # fmt: skip
    constants = {"t": t, "quantized": w, "scale": scale, "b": bias}

    (y,), kernels = run(tmp_path, nodes, {"x": x, "other": other}, constants)

    np.testing.assert_allclose(y, expected + other, atol=1e-5)
    assert kernels.count(PACKED) == 1
    assert "tenon:signs" in kernels


@pytest.mark.parametrize("rows", [1, 5, 64])
@pytest.mark.parametrize("form", ["MatMul", "Gemm", "transB", "floats"])
def test_products(tmp_path, rows, form):
    rng = np.random.default_rng(4)
    k, n = 150, 45
    t = rng.uniform(-0.3, 0.3, k).astype("f")
    x = numbers(rng, (rows, k), t)
    w, scale = signs(rng, (k, n)), rng.uniform(0.01, 0.1, n).astype("f")
    bias = rng.uniform(-1, 1, n).astype("f")
    expected = np.where(x >= t, 1, -1) @ (w * scale.astype(float)) + bias
    transposed = form == "transB"
    constants = {"t": t, "b": bias}
    if form == "floats":
        back = []
        constants["w"] = w * scale
    else:
        back = [
            helper.make_node(
                "DequantizeLinear", ["quantized", "scale"], ["w"], axis=0 if transposed else 1
            )
        ]
        constants.update(quantized=np.ascontiguousarray(w.T) if transposed else w, scale=scale)
    product = (
        [helper.make_node("Gemm", ["s", "w", "b"], ["y"], transB=int(transposed))]
        if form in ("Gemm", "transB")
        else [
            helper.make_node("MatMul", ["s", "w"], ["p"]),
            helper.make_node("Add", ["p", "b"], ["y"]),
        ]
    )

    (y,), kernels = run(tmp_path, [*sign_nodes(), *back, *product], {"x": x}, constants)

    np.testing.assert_allclose(y, expected, atol=1e-5)
    assert kernels.count(PACKED) == 1


def test_signs_that_others_read_stay_numbers(tmp_path):
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (4, 64)).astype("f")
    w = signs(rng, (64, 16))
    nodes = [*sign_nodes(), helper.make_node("MatMul", ["s", "w"], ["y"])]

    (y, s), kernels = run(tmp_path, nodes, {"x": x}, {"w": w.astype("f")}, ("y", "s"))

    np.testing.assert_array_equal(s, np.where(x >= 0, 1, -1))
    np.testing.assert_allclose(y, s @ w, atol=1e-5)
    assert PACKED not in kernels


@pytest.mark.parametrize("what", ["zero weight", "two sizes", "not symmetric", "groups"])
def test_what_is_not_binary_is_computed_as_it_is_stated(tmp_path, what):
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (1, 8, 5, 5)).astype("f")
    w = signs(rng, (6, 8, 3, 3)).astype("f")
    low = np.float32(-1)
    groups = 1
    if what == "zero weight":
        w[2, 3, 1, 1] = 0
    elif what == "two sizes":
        w[2, 3, 1, 1] *= 2
    elif what == "not symmetric":
        low = np.float32(-0.5)
    else:
        groups, w = 2, np.ascontiguousarray(w[:, :4])
    nodes = [*sign_nodes(), helper.make_node("Conv", ["s", "w"], ["y"], group=groups)]
    s = np.where(x >= 0, 1, low)
    whole = w
    if groups == 2:
        whole = np.zeros((6, 8, 3, 3), "f")
        whole[:3, :4], whole[3:, 4:] = w[:3], w[3:]

    (y,), kernels = run(tmp_path, nodes, {"x": x}, {"w": w, "minus": low})

    np.testing.assert_allclose(y, conv(s, whole, 1, 0, 1), atol=1e-4)
    assert PACKED not in kernels


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_two_in_a_row_with_a_norm_between(tmp_path, threads, precision):
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (2, 32, 12, 12)).astype("f")
    a, b = signs(rng, (48, 32, 3, 3)), signs(rng, (16, 48, 3, 3))
    gamma = rng.uniform(-1, 1, 48).astype("f")
    beta, mean = rng.uniform(-1, 1, (2, 48)).astype("f")
    var = rng.uniform(50, 200, 48).astype("f")
    h = conv(np.where(x >= 0, 1, -1), a, 1, 1, 1)
    h = (h - mean[:, None, None]) * (gamma / np.sqrt(var + 1e-5))[:, None, None]
    h = h + beta[:, None, None]
    assert np.abs(h).min() > 1e-5  # no sign hangs on rounding
    expected = conv(np.where(h >= 0, 1, -1), b, 1, 1, 1)
    pads = [1, 1, 1, 1]
    nodes = [
        *sign_nodes(),
        helper.make_node("Conv", ["s", "wa"], ["c"], pads=pads),
        helper.make_node("BatchNormalization", ["c", "gamma", "beta", "mean", "var"], ["h"]),
        *sign_nodes("h", "t", "u"),
        helper.make_node("Conv", ["u", "wb"], ["y"], pads=pads),
    ]
    constants = {"wa": a.astype("f"), "wb": b.astype("f")}
    constants.update(gamma=gamma, beta=beta, mean=mean, var=var)

    (y,), kernels = run(tmp_path, nodes, {"x": x}, constants, threads=threads, precision=precision)

    np.testing.assert_array_equal(y, expected)
    assert kernels.count(PACKED) == 2
