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


def observed(name: str, model: tenon.Model, **data):
    """What a report says of ranges or of noise, as numbers by a name."""
    if name == "calibrate":
        observers = {"m": {"observer": "mse"}, "p": {"observer": "percentile"}}
        report = model.apply("quantizer.calibrate", observers=observers, **data).report
        return {
            f"{by} {value}": ends
            for by, all_ in report["ranges"].items()
            for value, ends in all_.items()
        }
    if name == "sensitivity":
        layers = model.apply("quantizer.sensitivity", **data).report["layers"]
        keys = ("noise", "weights_snr_db", "activations_snr_db")
        return {one["node"]: [one[key] for key in keys] for one in layers}
    values = model.apply(f"quantizer.{name}", **data).report["values"]
    return {one["name"]: [one["low"], one["high"], one["scale"]] for one in values}


def flattened(folder: Path) -> tenon.Model:
    """x [N, L, 8] as [N * L, 8] -> 3 numbers: as an exporter writes a product."""
    rng = np.random.default_rng(1)
    weights = [
        constant("w", rng.standard_normal((WIDTH, 3)).astype("f")),
        constant("b", rng.standard_normal(3).astype("f")),
        constant("rows", np.array([-1, WIDTH], np.int64)),
        constant("late", np.array([2], np.int64)),
        constant("none", np.float32(0)),
    ]
    nodes = [
        helper.make_node("Reshape", ["x", "rows"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w", "b"], ["p"], "fc"),
        helper.make_node("Shape", ["mask"], ["lead"]),
        helper.make_node("Concat", ["lead", "minus"], ["dims"], axis=0),
        helper.make_node("Reshape", ["p", "dims"], ["back"]),
        helper.make_node("Unsqueeze", ["mask", "late"], ["column"]),
        helper.make_node("Cast", ["column"], ["counts"], to=TensorProto.BOOL),
        helper.make_node("Where", ["counts", "back", "none"], ["y"]),
    ]
    weights.append(constant("minus", np.array([-1], np.int64)))
    inputs = [info("mask", ["N", "L"], TensorProto.INT64), info("x", ["N", "L", WIDTH])]
    return ran(folder, model_of(nodes, inputs, [info("y", ["N", "L", 3])], weights))


@pytest.mark.parametrize("is_flat", [False, True])
@pytest.mark.parametrize("name", ["static", "qat", "calibrate", "sensitivity"])
def test_ranges_and_noise_are_those_without_padding(model, tmp_path: Path, name, is_flat) -> None:
    model = flattened(tmp_path) if is_flat else model
    how = {"samples": SAMPLES, "backend": "reference"}
    bare = observed(name, model, data=sequences(tmp_path, LENGTH), **how)
    padded = sequences(tmp_path, PADDED)
    masked = observed(name, model, data=padded, mask="mask", **how)
    everything = observed(name, model, data=padded, **how)

    assert bare.keys() == masked.keys()
    for key, numbers in bare.items():
        np.testing.assert_allclose(masked[key], numbers, rtol=1e-4, err_msg=key)
    assert any(not np.allclose(everything[key], bare[key], rtol=1e-3) for key in bare)


@pytest.mark.parametrize("name", ["gptq", "correct_bias"])
def test_rows_of_all_entries_are_covered(tmp_path: Path, name: str) -> None:
    model = flattened(tmp_path)
    ranges = {"flat": [-100, 100]}
    made = {}
    for key, length, mask in (("bare", LENGTH, {}), ("masked", PADDED, {"mask": "mask"})):
        data = sequences(tmp_path, length)
        small = model.apply("quantizer.static", data=data, samples=8, ranges=ranges)
        how = {"original": model, "samples": SAMPLES, "backend": "reference"}
        made[key] = small.apply(f"quantizer.{name}", data=data, **how, **mask).constants()
    for key, numbers in made["bare"].items():
        np.testing.assert_allclose(made["masked"][key], numbers, rtol=1e-5, atol=1e-6, err_msg=key)


def test_what_is_compared_has_no_padding(model, tmp_path: Path) -> None:
    small = model.apply("quantizer.weights", bits=4, group=8)
    found = {}
    for key, length, mask in (
        ("bare", LENGTH, {}),
        ("masked", PADDED, {"mask": "mask"}),
        ("all", PADDED, {}),
    ):
        how = {"data": sequences(tmp_path, length), "with": small, "batch": 7, **mask}
        layers = model.apply("metrics.compare", **how).report["layers"]
        found[key] = {one["value"]: [one["snr_db"], one["cosine"]] for one in layers}
    assert {"p1", "s2"} <= found["bare"].keys()
    for value, numbers in found["bare"].items():
        np.testing.assert_allclose(found["masked"][value], numbers, rtol=1e-5, err_msg=value)
    assert abs(found["all"]["p1"][0] - found["bare"]["p1"][0]) > 0.1


@pytest.mark.parametrize("name", ["static", "sensitivity"])
def test_calibration_with_a_mask_of_other_axes(model, tmp_path: Path, name: str) -> None:
    with pytest.raises(tenon.TenonError, match="which covers none of the layers"):
        model.apply(f"quantizer.{name}", data=sequences(tmp_path, PADDED), mask="x")


@pytest.mark.parametrize(
    "name", ["static", "sensitivity", "smooth", "gptq", "correct_bias", "compare"]
)
def test_a_mask_of_padding_alone(model, tmp_path: Path, name: str) -> None:
    """Nothing counts: what would be measured on nothing is no answer."""
    with np.load(sequences(tmp_path, PADDED)) as file:
        arrays = dict(file)
    path = tmp_path / "none.npz"
    np.savez(path, x=arrays["x"], mask=np.zeros_like(arrays["mask"]))
    how = {"data": path.as_posix(), "mask": "mask"}
    small = model
    if name in ("gptq", "correct_bias"):
        small = model.apply("quantizer.static", data=sequences(tmp_path, PADDED))
        how["original"] = model
    if name == "compare":
        how["with"] = model.apply("quantizer.weights")
    which = "metrics.compare" if name == "compare" else f"quantizer.{name}"
    with pytest.raises(tenon.TenonError, match="got mask, which is 0 in all of the data"):
        small.apply(which, **how)


def test_a_batch_of_padding_alone_is_passed_over(model, tmp_path: Path) -> None:
    with np.load(sequences(tmp_path, PADDED)) as file:
        arrays = dict(file)
    path = tmp_path / "more.npz"  # eight samples without an entry that counts, in front
    np.savez(path, **{k: np.concatenate([np.zeros_like(v[:8]), v]) for k, v in arrays.items()})
    how = {"mask": "mask", "backend": "reference", "batch": 8}
    ranges = [
        observed("static", model, data=data, samples=SAMPLES + more, **how)
        for data, more in ((sequences(tmp_path, PADDED), 0), (path.as_posix(), 8))
    ]
    assert ranges[0] == ranges[1]
