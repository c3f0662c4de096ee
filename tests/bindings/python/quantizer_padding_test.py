# SPDX-License-Identifier: Apache-2.0
"""Option `mask`: sequences padded to one length round weights as they do without their padding."""

from pathlib import Path

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper
from onnx_models import constant, info, model_of
from quantizer_test import correlated, ran

SAMPLES, LENGTH, PADDED, WIDTH, UNITS = 48, 3, 16, 8, 12


@pytest.fixture
def model(tmp_path: Path) -> tenon.Model:
    """x [N, L, 8] -> 12 units -> 3 numbers, each entry by itself."""
    rng = np.random.default_rng(1)
    weights = [
        constant("w1", rng.standard_normal((WIDTH, UNITS)).astype("f")),
        constant("b1", rng.standard_normal(UNITS).astype("f")),
        constant("w2", rng.standard_normal((UNITS, 3)).astype("f")),
        constant("b2", rng.standard_normal(3).astype("f")),
        constant("last", np.array([2], np.int64)),
        constant("none", np.float32(0)),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["p1"], "fc1"),
        helper.make_node("Add", ["p1", "b1"], ["s1"]),
        helper.make_node("Tanh", ["s1"], ["h"]),
        helper.make_node("MatMul", ["h", "w2"], ["p2"], "fc2"),
        helper.make_node("Add", ["p2", "b2"], ["s2"]),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Cast", ["column"], ["counts"], to=TensorProto.BOOL),
        helper.make_node("Where", ["counts", "s2", "none"], ["y"]),
    ]
    inputs = [info("mask", ["N", "L"], TensorProto.INT64), info("x", ["N", "L", WIDTH])]
    return ran(tmp_path, model_of(nodes, inputs, [info("y", ["N", "L", 3])], weights))


def sequences(folder: Path, length: int) -> str:
    """The same numbers at any length; behind them the mask is 0 and numbers are large."""
    x = correlated(2, SAMPLES * LENGTH, WIDTH).reshape(SAMPLES, LENGTH, WIDTH).astype("f")
    x[..., 0] *= 30
    noise = np.random.default_rng(3).standard_normal((SAMPLES, length, WIDTH)).astype("f")
    noise[..., 1] *= 500
    noise[:, :LENGTH] = x
    mask = np.zeros((SAMPLES, length), np.int64)
    mask[:, :LENGTH] = 1
    path = folder / f"{length}.npz"
    np.savez(path, mask=mask, x=noise)
    return path.as_posix()


def prepared(name: str, model: tenon.Model, **data) -> tenon.Model:
    return model.apply(f"quantizer.{name}", **data)


def repaired(name: str, model: tenon.Model, **data) -> tenon.Model:
    ranges = {"x": [-100, 100], "h": [-1, 1]}  # known: no part of what is tested
    small = model.apply("quantizer.static", data=data["data"], samples=8, ranges=ranges)
    return small.apply(f"quantizer.{name}", original=model, **data)


def blocks(name: str, model: tenon.Model, **data) -> tenon.Model:
    small = model.apply("quantizer.weights", bits=4, group=8)
    return small.apply(f"quantizer.{name}", original=model, **data)


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (prepared, "smooth"),
        (prepared, "awq"),
        (repaired, "gptq"),
        (repaired, "correct_bias"),
        (blocks, "gptq"),
        (blocks, "adaround"),
    ],
)
def test_padding_does_not_count(model, tmp_path: Path, made, name: str) -> None:
    how = {"samples": SAMPLES, "backend": "reference", "mask": "mask"}
    bare = made(name, model, data=sequences(tmp_path, LENGTH), **how).constants()
    masked = made(name, model, data=sequences(tmp_path, PADDED), **how).constants()
    del how["mask"]
    everything = made(name, model, data=sequences(tmp_path, PADDED), **how).constants()

    assert bare.keys() == masked.keys()
    for key, numbers in bare.items():
        np.testing.assert_allclose(masked[key], numbers, rtol=1e-5, atol=1e-6, err_msg=key)
    assert bare.keys() != everything.keys() or any(
        not np.array_equal(everything[key], numbers) for key, numbers in bare.items()
    )


@pytest.mark.parametrize("name", ["smooth", "awq"])
def test_a_mask_that_is_no_input(model, tmp_path: Path, name: str) -> None:
    with pytest.raises(tenon.TenonError, match=r"expected an input of the model \(mask, x\), got"):
        prepared(name, model, data=sequences(tmp_path, PADDED), mask="m")


@pytest.mark.parametrize(
    ("made", "name"), [(prepared, "smooth"), (repaired, "gptq"), (repaired, "correct_bias")]
)
def test_a_mask_of_other_axes(model, tmp_path: Path, made, name: str) -> None:
    with pytest.raises(tenon.TenonError, match="which covers none of the layers"):
        made(name, model, data=sequences(tmp_path, PADDED), mask="x")
