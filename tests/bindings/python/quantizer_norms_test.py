# SPDX-License-Identifier: Apache-2.0
"""Bias correction without data, by what batch normalization says of the inputs of layers."""

from math import erf, exp, pi, sqrt
from pathlib import Path

import numpy as np
import onnx
import pytest
import tenon
from onnx import helper
from onnx_models import constant, info, model_of
from quantizer_test import answers, ran, saved, stored


def test_biases_are_corrected_by_normalization_alone(tmp_path: Path) -> None:
    """Conv, BatchNormalization, Clip to [0, 6], depthwise Conv, Conv: weights floored to 4 bits."""
    rng = np.random.default_rng(25)
    shapes = [(24, 8, 1, 1), (24, 1, 3, 3), (12, 24, 1, 1)]
    nodes, constants, value = [], [], "x"
    for i, shape in enumerate(shapes):
        w = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("f")
        norm = {"scale": rng.uniform(0.5, 1.5, shape[0]), "bias": rng.uniform(0, 1, shape[0])}
        norm |= {"mean": np.zeros(shape[0]), "var": np.ones(shape[0])}
        constants += [constant(f"w{i}", w)]
        constants += [constant(f"{k}{i}", v.astype("f")) for k, v in norm.items()]
        groups = 24 if shape[1] == 1 else 1
        nodes += [
            helper.make_node("Conv", [value, f"w{i}"], [f"c{i}"], f"conv{i}", group=groups),
            helper.make_node(
                "BatchNormalization", [f"c{i}", *(f"{k}{i}" for k in norm)], [f"n{i}"], f"norm{i}"
            ),
            helper.make_node("Clip", [f"n{i}", "zero", "six"], [f"r{i}"], f"clip{i}"),
        ]
        value = f"r{i}"
    nodes[-1].output[0] = "y"
    constants += [constant("zero", np.float32(0)), constant("six", np.float32(6))]
    graph = model_of(nodes, [info("x", ["N", 8, 6, 6])], [info("y", None)], constants)
    x = rng.standard_normal((256, 8, 6, 6)).astype("f")
    norms = ran(tmp_path, graph).apply("recovery.statistics", data=saved(tmp_path, x))
    model = norms.apply("fusion.default")
    floored = model.apply("quantizer.static", data=saved(tmp_path, x), weight_bits=4)
    better = floored.apply("quantizer.correct_bias_by_norms", original=model, norms=norms)
    summary = better.report
    assert {row["node"] for row in summary["corrected"]} == {"conv1", "conv2"}
    assert [row["node"] for row in summary["left"]] == ["conv0"]
    assert "no BatchNormalization" in summary["left"][0]["why"]

    def shift(of: tenon.Model) -> float:  # of the means of channels
        return np.square((answers(of, x) - answers(model, x)).mean((0, 2, 3))).sum()

    assert shift(better) < shift(floored) / 2
    assert stored(better) == stored(floored)
    with pytest.raises(tenon.TenonError, match="nothing to correct"):
        model.apply("quantizer.correct_bias_by_norms", original=model, norms=norms)


def test_means_behind_a_relu_are_those_of_the_formula(tmp_path: Path) -> None:
    """The shift of one layer whose weight is all rounding error, beside the closed form (Nagel et
    al. 2019, appendix C)."""
    beta, gamma = 0.5, 1.2
    w = np.ones((8, 1), "f")  # 4 bits: 1, 0.3 -> 7/7, 2/7
    w[1:] = 0.3
    nodes = [
        helper.make_node("BatchNormalization", ["x", "g", "b", "m", "v"], ["n"], "norm"),
        helper.make_node("Relu", ["n"], ["r"], "relu"),
        helper.make_node("Gemm", ["r", "w", "c"], ["y"], "fc"),
    ]
    constants = [constant("w", np.repeat(w, 16, 1)), constant("c", np.zeros(16, "f"))]
    for name, one in (("g", gamma), ("b", beta), ("m", 0), ("v", 1)):
        constants.append(constant(name, np.full(8, one, "f")))
    graph = model_of(nodes, [info("x", ["N", 8])], [info("y", None)], constants)
    model = ran(tmp_path, graph)
    small = model.apply("quantizer.weights", bits=4, group=8, clip=False)
    better = small.apply("quantizer.correct_bias_by_norms", original=model, norms=model)
    a = -beta / gamma
    mean = beta * (1 - (1 + erf(a / sqrt(2))) / 2) + gamma * exp(-a * a / 2) / sqrt(2 * pi)
    wanted = 7 * (0.3 - np.round(0.3 * 7) / 7) * mean
    assert abs(mean - 0.769696) < 1e-6
    x = np.zeros((1, 8), "f")
    np.testing.assert_allclose(
        answers(better, x) - answers(small, x), np.full((1, 16), wanted), atol=1e-5
    )


def test_means_follow_channels_that_were_equalized(tmp_path: Path) -> None:
    """What a layer reads is smaller by the factors that its weights are larger by."""
    rng = np.random.default_rng(3)
    w = {"w0": rng.standard_normal((8, 4)), "w1": rng.standard_normal((16, 8))}
    bias, scale = rng.uniform(0.5, 1, 8), np.geomspace(0.01, 10, 8)
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "c0"], ["h"], "first", transB=1),
        helper.make_node("BatchNormalization", ["h", "g", "b", "m", "v"], ["n"], "norm"),
        helper.make_node("Relu", ["n"], ["r"], "relu"),
        helper.make_node("Gemm", ["r", "w1", "c1"], ["y"], "second", transB=1),
    ]
    numbers = w | {"c0": np.zeros(8), "c1": np.zeros(16), "g": scale, "b": bias}
    numbers |= {"m": rng.standard_normal(8), "v": np.ones(8)}
    constants = [constant(name, value.astype("f")) for name, value in numbers.items()]
    graph = model_of(nodes, [info("x", ["N", 4])], [info("y", None)], constants)
    norms = ran(tmp_path, graph)
    even = norms.apply("fusion.default").apply("quantizer.equalize")
    small = even.apply("quantizer.weights", bits=4, group=8, clip=False)
    better = small.apply("quantizer.correct_bias_by_norms", original=even, norms=norms)
    assert [row["node"] for row in better.report["corrected"]] == ["second"]

    def last_weight(model: tenon.Model) -> np.ndarray:
        path = tmp_path / "last.onnx"
        model.apply("quantizer.dequantize").save(str(path))
        all_of = {one.name: one for one in onnx.load(path).graph.initializer}
        node = next(n for n in onnx.load(path).graph.node if n.name == "second")
        return onnx.numpy_helper.to_array(all_of[node.input[1]])

    upper = np.array([1 - (1 + erf(-b / s / sqrt(2))) / 2 for b, s in zip(bias, scale)])
    means = bias * upper + scale * np.exp(-((bias / scale) ** 2) / 2) / sqrt(2 * pi)
    factor = last_weight(even)[0] / w["w1"][0]
    assert factor.max() > 4 * factor.min()
    wanted = (last_weight(even) - last_weight(small)) @ (means / factor)
    x = np.zeros((1, 4), "f")
    np.testing.assert_allclose(answers(better, x)[0] - answers(small, x)[0], wanted, atol=1e-4)
