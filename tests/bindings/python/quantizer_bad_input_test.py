# SPDX-License-Identifier: Apache-2.0
"""Data and weights as they should not be, through every pass that quantizes, prepares or repairs:
an answer that is finite, or an error that says what is wrong."""

from pathlib import Path

import numpy as np
import pytest
import tenon
from onnx import helper
from onnx_models import constant, info, model_of
from quantizer_test import answers, mlp, ran, random_mlp, saved, snr

WIDTHS = [16, 24, 16]


def whole_chain(model: tenon.Model, data: str) -> tenon.Model:
    model.apply("quantizer.sensitivity", data=data)
    even = model.apply("quantizer.equalize").apply("quantizer.smooth", data=data)
    small = even.apply("quantizer.static", data=data)
    small = small.apply("quantizer.gptq", data=data, original=even)
    return small.apply("quantizer.correct_bias", data=data, original=even)


def biased(folder: Path, weights: list[np.ndarray]) -> tenon.Model:
    return mlp(folder, weights, [np.full(w.shape[1], 0.1, "f") for w in weights])


def kinds() -> dict[str, tuple[list[np.ndarray], np.ndarray]]:
    weights, x = random_mlp(1, WIDTHS), np.random.default_rng(2).standard_normal((64, 16))
    dead, flat = random_mlp(3, WIDTHS), [np.full_like(w, 0.5) for w in weights]
    dead[0][:, 3] = dead[1][5] = 0  # a channel that is never made, one that is never read
    return {
        "one sample": (weights, x[:1]),
        "the same number everywhere": (weights, np.full((64, 16), 3.0)),
        "zeros": (weights, np.zeros((64, 16))),
        "channels of zeros": (dead, x),
        "weights of one value": (flat, x),
        "weights of zero": ([np.zeros_like(w) for w in weights], x),
        "huge numbers": (weights, 1e18 * x),
        "numbers next to zero": (weights, 1e-30 * x),
    }


@pytest.mark.parametrize("kind", kinds())
def test_every_pass_takes_what_is_odd_but_finite(tmp_path: Path, kind: str) -> None:
    weights, x = kinds()[kind]
    model, x = biased(tmp_path, weights), x.astype("f")
    small = whole_chain(model, saved(tmp_path, x))
    found, right = answers(small, x), answers(model, x)
    assert np.isfinite(found).all()
    error = np.abs(found - right).max()
    assert error <= 0.05 * np.abs(right).max() + 1e-6


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused_or_left(tmp_path: Path, bad: float) -> None:
    x = np.random.default_rng(4).standard_normal((64, 16)).astype("f")
    good = saved(tmp_path, x)
    model = biased(tmp_path, random_mlp(5, WIDTHS))
    small = model.apply("quantizer.static", data=good)
    spoilt = x.copy()
    spoilt[9, 2] = bad
    data = saved(tmp_path, spoilt)
    for component in ("quantizer.static", "quantizer.sensitivity"):
        with pytest.raises(tenon.TenonError, match="not finite in sample"):
            model.apply(component, data=data)
    four = model.apply("quantizer.weights", bits=4)  # computes in float, so that they spread
    summary = four.apply("quantizer.gptq", data=data, original=model)
    assert {row["why"] for row in summary.report["left"]} == {"its inputs are not finite"}
    for component in ("quantizer.smooth", "quantizer.awq"):
        even = model.apply(component, data=data)
        np.testing.assert_allclose(answers(even, x), answers(model, x), rtol=1e-4, atol=1e-5)
    corrected = small.apply("quantizer.correct_bias", data=data, original=model)
    assert np.isfinite(answers(corrected, x)).all()


def test_a_weight_with_two_roles_is_stored_for_both(tmp_path: Path) -> None:
    table = np.random.default_rng(6).standard_normal((40, 16)).astype("f")
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"], "look"),
        helper.make_node("Gemm", ["e", "table"], ["y"], "score", transB=1),
    ]
    graph = model_of(nodes, [info("ids", ["N"], 7)], [info("y", None)], [constant("table", table)])
    model = ran(tmp_path, graph)
    ids = np.arange(40)
    np.savez(tmp_path / "ids.npz", ids=ids)
    data = str(tmp_path / "ids.npz")
    right = model.compile(backend="reference").run({"ids": ids})[0]
    for component in ("quantizer.static", "quantizer.weights"):
        given = {"data": data} if component == "quantizer.static" else {}
        small = model.apply(component, **given)
        assert snr(right, small.compile(backend="reference").run({"ids": ids})[0]) > 30
    even = model.apply("quantizer.equalize")
    assert even.text() == model.text()
    assert "no constant of its own" in even.report["left"][0]["why"]


def test_options_out_of_range_are_named(tmp_path: Path) -> None:
    model = biased(tmp_path, random_mlp(7, WIDTHS))
    for given, part in (
        ({"bits": 5}, "bits: expected one of 4, 8, got 5"),
        ({"bits": 4, "group": 3}, "group"),
        ({"bits": 4, "grup": 32}, "group"),
    ):
        with pytest.raises(tenon.TenonError, match=part):
            model.apply("quantizer.weights", **given)
