# SPDX-License-Identifier: Apache-2.0
"""Weights of recurrent cells, rounded by what the cells see, beside GPTQ in NumPy."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tenon
from onnx import helper
from onnx_models import constant, info, model_of
from quantizer_test import answers, correlated, gptq, mlp, ran, random_mlp, saved, snr, stored

STEPS, INPUTS, UNITS = 6, 16, 16
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def sequences(seed: int, units: float = 1) -> tuple[np.ndarray, np.ndarray]:
    """Samples to round by and others to judge by; half of the inputs are in other units."""
    x = correlated(seed, 192 * STEPS, INPUTS).reshape(192, STEPS, INPUTS) / 2
    x[..., INPUTS // 2 :] *= units
    return x[:128], x[128:]


def cell(folder: Path, op: str, ways: int = 1, layout: int = 0, last=False, units: float = 1):
    """The states of all steps, or the last one; batch or steps first as `layout` says inside."""
    rng = np.random.default_rng(31)
    w = rng.standard_normal((ways, GATES[op] * UNITS, INPUTS)).astype("f") / 4
    w[..., INPUTS // 2 :] /= units
    r = rng.standard_normal((ways, GATES[op] * UNITS, UNITS)).astype("f") / 4
    direction = "bidirectional" if ways == 2 else "forward"
    read = "x" if layout else "steps"
    node = helper.make_node(
        op, [read, "w", "r"], ["", "y"] if last else ["y"], "cell",
        hidden_size=UNITS, layout=layout, direction=direction,
    )  # fmt: skip
    first = [] if layout else [helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2])]
    inputs = [info("x", ["N", STEPS, INPUTS])]
    graph = model_of(
        [*first, node], inputs, [info("y", None)], [constant("w", w), constant("r", r)]
    )
    return ran(folder, graph), w, r


def rounded(model: tenon.Model, data: str, **options):
    plain = model.apply("quantizer.weights")
    given = {"data": data, "original": model, "samples": 128, "backend": "reference"} | options
    return plain, plain.apply("quantizer.gptq", **given)


def weight_of(model: tenon.Model, name: str) -> np.ndarray:
    """As it is behind its DequantizeLinear, whose axis is 1."""
    found = model.constants()
    numbers = found.get(f"{name}_dequantized_rounded", found.get(f"{name}_quantized"))
    return np.asarray(numbers).astype("f") * np.asarray(found[f"{name}_scale"])[:, None]


def int8(scale: np.ndarray, _: int, column: np.ndarray) -> np.ndarray:
    return np.clip(np.round(column / scale), -127, 127) * scale


@pytest.mark.parametrize("ways", [1, 2])
def test_each_direction_is_rounded_by_its_own_states(tmp_path: Path, ways: int) -> None:
    x, _ = sequences(32)
    model, w, r = cell(tmp_path, "LSTM", ways)
    plain, better = rounded(model, saved(tmp_path, x))
    states = answers(plain, x)  # [steps, directions, batch, units]
    for name, weight, seen in (("w", w, [x] * ways), ("r", r, states.swapaxes(0, 1))):
        scale = np.abs(weight).max((0, 2)) / np.float32(127)  # of a row in both directions
        np.testing.assert_allclose(better.constants()[f"{name}_scale"], scale, rtol=1e-6)
        for way in range(ways):
            rows = seen[way].reshape(-1, weight.shape[-1]).astype(float)

            wanted = gptq(weight[way].T, partial(int8, scale), rows.T @ rows).T
            same = np.isclose(weight_of(better, name)[way], wanted, atol=1e-6).mean()
            near = np.isclose(weight_of(plain, name)[way], wanted, atol=1e-6).mean()
            assert same > 0.97 > 0.9 > near, (name, way)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize(
    "form", [{}, {"ways": 2}, {"ways": 2, "layout": 1}, {"ways": 2, "last": True}, {"units": 300}]
)
def test_rounding_by_states_loses_less_at_no_bytes(tmp_path: Path, op: str, form: dict) -> None:
    units = form.get("units", 1)
    model, _, _ = cell(tmp_path, op, **form)
    x, other = sequences(33, units)
    plain, better = rounded(model, saved(tmp_path, x))
    assert ("w_columns" in plain.constants()) == (units != 1)
    right = answers(model, other)
    assert snr(right, answers(better, other)) > snr(right, answers(plain, other)) + 2
    assert stored(better) == stored(plain)
    assert [row["node"] for row in better.report["rounded"]] == ["cell", "cell"]


def test_only_stored_weights_where_those_are_asked_for(tmp_path: Path) -> None:
    x, _ = sequences(35)
    model, _, _ = cell(tmp_path, "GRU")
    plain, better = rounded(model, saved(tmp_path, x), weights="stored")
    assert len(better.report["rounded"]) == 2

    dense = mlp(tmp_path, random_mlp(36, [16, 16]))
    _, same = rounded(dense, saved(tmp_path, x.reshape(-1, INPUTS)), weights="stored")
    assert same.report["rounded"] == []
