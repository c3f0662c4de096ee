# SPDX-License-Identifier: Apache-2.0
"""8-bit floats beside two that know them: every code, and a sweep of floats over all exponents with
those half between two codes, against ml_dtypes and ONNX's own conversion."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper
from onnx_models import constant, info, model_of

KINDS = {
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}
BACKENDS = ("reference", "onednn")


def ran(folder: Path, nodes, inputs, constants, feed: dict, backend: str) -> np.ndarray:
    graph = model_of(nodes, inputs, [info("y", None)], constants, opset=21, ir=10)
    path = folder / f"model{len(list(folder.glob('*.onnx')))}.onnx"
    path.write_bytes(graph.SerializeToString())
    return np.asarray(tenon.load(path).compile(backend=backend).run(feed)[0])


def codes(kind: str) -> np.ndarray:
    return np.arange(256, dtype=np.uint8).view(KINDS[kind])


def sweep(kind: str) -> np.ndarray:
    """Floats of all signs and exponents, all codes, and around each middle between two codes."""
    finite = codes(kind).astype("f")
    finite = np.unique(finite[np.isfinite(finite)])
    middle = (finite[1:] + finite[:-1]) / 2
    near = [np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf)]
    rng = np.random.default_rng(41)
    drawn = rng.uniform(1, 2, 4096) * 2.0 ** rng.integers(-30, 30, 4096)
    edge = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38])
    return np.concatenate([finite, middle, *near, drawn, -drawn, edge]).astype("f")


def same(found: np.ndarray, right: np.ndarray) -> None:
    """NaN is NaN; zeros have their sign."""
    np.testing.assert_array_equal(found, right)
    real = ~np.isnan(right)
    np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(right[real]))


def stored(kind: str, given: np.ndarray):
    tensor = TensorProto(name="codes", data_type=getattr(TensorProto, kind), dims=given.shape)
    tensor.raw_data = given.tobytes()
    return tensor


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_code_stands_for_its_number(tmp_path: Path, kind: str, backend: str) -> None:
    nodes = [
        helper.make_node("Cast", ["codes"], ["wide"], "widen", to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "x"], ["y"], "times"),
    ]
    tensor = stored(kind, codes(kind))
    found = ran(tmp_path, nodes, [info("x", [1])], [tensor], {"x": np.ones(1, "f")}, backend)
    same(found, codes(kind).astype("f"))
    same(found, numpy_helper.to_array(tensor).astype("f"))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_floats_round_to_the_nearest_code(tmp_path: Path, kind: str, backend: str) -> None:
    x = sweep(kind)
    to = getattr(TensorProto, kind)
    largest = float(ml_dtypes.finfo(KINDS[kind]).max)
    for saturate in (0, 1):
        nodes = [
            helper.make_node("Cast", ["x"], ["narrow"], "narrow", to=to, saturate=saturate),
            helper.make_node("Cast", ["narrow"], ["y"], "widen", to=TensorProto.FLOAT),
        ]
        found = ran(tmp_path, nodes, [info("x", ["N"])], [], {"x": x}, backend)
        right = x.astype(KINDS[kind]).astype("f")
        if saturate:  # what is too large becomes the largest, and infinities do
            is_lost = ~np.isnan(x) & ~np.isfinite(right)
            right = np.where(is_lost, np.copysign(largest, x), right)
        same(found, right.astype("f"))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E5M2"])
def test_quantizing_scales_rounds_and_saturates(tmp_path: Path, kind: str, backend: str) -> None:
    x = sweep(kind)
    x = x[np.isfinite(x)]
    scale = np.float32(0.5)  # a power of two: dividing rounds nothing
    zero = stored(kind, np.zeros((), np.uint8))
    zero.name = "zero"
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], "dequantize"),
    ]
    constants = [constant("scale", scale), zero]
    found = ran(tmp_path, nodes, [info("x", ["N"])], constants, {"x": x}, backend)
    largest = float(ml_dtypes.finfo(KINDS[kind]).max)
    with np.errstate(over="ignore"):
        wide = np.clip(x / scale + np.float32(0), -largest, largest)  # a zero point of 0
    same(found, wide.astype(KINDS[kind]).astype("f") * scale)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["INT16", "UINT16", "INT4", "UINT4", "INT8", "UINT8"])
def test_integers_of_all_widths_round_to_even(tmp_path: Path, kind: str, backend: str) -> None:
    bits = int(kind.lstrip("UINT"))
    low, high = (0, 2**bits - 1) if kind[0] == "U" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    point = 3 if kind[0] == "U" else -2
    x = np.concatenate([np.arange(4 * low - 9, min(4 * high, low + 4000) + 9) / 4, [1e9, -1e9]])
    zero = helper.make_tensor("zero", getattr(TensorProto, kind), [], [point])
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], "dequantize"),
    ]
    constants = [constant("scale", np.float32(0.5)), zero]
    feed = {"x": (x / 2).astype("f")}
    found = ran(tmp_path, nodes, [info("x", ["N"])], constants, feed, backend)
    right = (np.clip(np.round(x) + point, low, high) - point) * 0.5
    np.testing.assert_array_equal(found, right.astype("f"))
