# SPDX-License-Identifier: Apache-2.0
"""Rounding that is learned, and what makes up for rounding without touching weights."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from onnx_models import constant, info, model_of
from quantizer_test import answers, correlated, mlp, ran, random_mlp, saved, snr, stored

# ---- AdaRound


@pytest.mark.parametrize("kind", ["int8 in 4 bits", "int4 groups"])
def test_adaround_moves_numbers_up_or_down_for_the_result(tmp_path: Path, kind: str) -> None:
    w = random_mlp(21, [64, 24])[0]
    x, other = correlated(22, 512, 64), correlated(22, 1024, 64)[512:]
    model, data = mlp(tmp_path, [w]), saved(tmp_path, x)
    if kind == "int4 groups":
        plain = model.apply("quantizer.weights", bits=4, group=32, clip=False)
    else:
        plain = model.apply("quantizer.static", data=data, weight_bits=4)
    better = plain.apply(
        "quantizer.adaround", data=data, original=model, samples=512, steps=300, backend="reference"
    )
    constants, before = better.constants(), plain.constants()
    scale = np.asarray(before["w0_scale"])
    scale = np.repeat(scale, 32, 0) if scale.ndim == 2 else scale[None]
    assert set(constants) - {"w0_dequantized_rounded"} == set(before) - {"w0_quantized"}
    eye = np.eye(64, dtype="f")
    if kind == "int4 groups":
        moved = np.abs(answers(better, eye) - w) / scale
        assert moved.max() < 1.001  # to one of the two neighbours, nowhere else
    right = answers(model, other)
    assert snr(right, answers(better, other)) > snr(right, answers(plain, other)) + 1.5
    assert stored(better) == stored(plain)
    assert better.report["rounded"][0]["error"] < 0.7


def test_a_rounding_that_is_better_than_what_is_found_stays(tmp_path: Path) -> None:
    w = random_mlp(24, [64, 24])[0]
    x = correlated(25, 512, 64)
    model, data = mlp(tmp_path, [w]), saved(tmp_path, x)
    given = {"data": data, "original": model, "samples": 512, "backend": "reference"}
    best = model.apply("quantizer.static", data=data, weight_bits=4).apply(
        "quantizer.gptq", **given
    )

    again = best.apply("quantizer.adaround", steps=5, **given)

    np.testing.assert_array_equal(answers(again, x), answers(best, x))


# ---- statistics of normalization


def test_statistics_of_normalization_take_rounding_back(tmp_path: Path) -> None:
    """recovery.statistics behind the quantizer: what 3-bit weights do to means and variances that
    a BatchNormalization has kept from training."""
    rng = np.random.default_rng(23)
    nodes, constants, value = [], [], "x"
    for i in range(3):
        floored = np.floor(8 * rng.uniform(-1, 1, (16, 16, 3, 3))) / 8 + 0.06  # up: means move
        constants += [constant(f"w{i}", (floored / 4).astype("f"))]
        for name in ("scale", "bias", "mean", "var"):
            filled = np.ones(16, "f") if name in ("scale", "var") else np.zeros(16, "f")
            constants.append(constant(f"{name}{i}", filled))
        norm = [f"c{i}", *(f"{name}{i}" for name in ("scale", "bias", "mean", "var"))]
        nodes += [
            helper.make_node("Conv", [value, f"w{i}"], [f"c{i}"], f"conv{i}", pads=[1] * 4),
            helper.make_node("BatchNormalization", norm, [f"n{i}"], f"norm{i}"),
            helper.make_node("Relu", [f"n{i}"], [f"r{i}"], f"relu{i}"),
        ]
        value = f"r{i}"
    nodes[-1].output[0] = "y"
    graph = model_of(nodes, [info("x", ["N", 16, 8, 8])], [info("y", None)], constants)
    x = rng.standard_normal((192, 16, 8, 8)).astype("f")
    data = saved(tmp_path, x[:128])
    model = ran(tmp_path, graph).apply("recovery.statistics", data=data)  # as if trained
    small = model.apply("quantizer.static", data=data, weight_bits=3)
    better = small.apply("recovery.statistics", data=data)
    right = answers(model, x[128:])
    assert snr(right, answers(better, x[128:])) > snr(right, answers(small, x[128:])) + 1
    assert stored(better) == stored(small)
