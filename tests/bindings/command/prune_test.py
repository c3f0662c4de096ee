# SPDX-License-Identifier: Apache-2.0
"""The recipe `prune`: a smaller model that other runtimes run to the same answers."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from models_test import data, optimize
from running import failed, tenon


def test_a_pruned_model_is_smaller_and_still_onnx(tmp_path: Path) -> None:
    result = optimize(tmp_path, "--set", "ratio=0.5", "--json", recipe="prune")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["groups"] == [{"layer": "first", "channels": 64, "kept": 32}]
    assert report["parameters"]["after"] == 8 * 32 + 32 + 32 * 4 + 4
    assert [one["node"] for one in report["barriers"]] == ["second"]
    written = onnx.load(tmp_path / "small.onnx")
    onnx.checker.check_model(written, full_check=True)
    x = np.random.default_rng(1).standard_normal((3, 8)).astype("f")
    np.save(tmp_path / "x.npy", x)
    result = tenon(
        "infer", tmp_path / "small.onnx", "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path
    )
    assert result.returncode == 0, result.stderr
    (expected,) = onnx.reference.ReferenceEvaluator(written).run(None, {"x": x})
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-5, atol=1e-6)


def test_with_data_it_says_how_far_the_answers_are(tmp_path: Path) -> None:
    result = optimize(tmp_path, "--data", data(tmp_path), "--json", recipe="prune")
    assert result.returncode == 0, result.stderr
    assert 0 < json.loads(result.stdout)["cosine"] < 1


def test_it_measures_when_asked(tmp_path: Path) -> None:
    result = optimize(tmp_path, "--set", "bench=true", "--json", recipe="prune")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    times = report["median_ms"]
    assert report["speedup"] == pytest.approx(times["before"] / times["after"])


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("ratio=0", "ratio 0 removes none"),
        ("min_channels=64", "every layer keeps min_channels 64, and none has more than 64"),
        ("ratio=0.01", "ratio 0.01 leaves whole groups of round_to 8"),
    ],
)
def test_what_kept_all_channels_is_named(tmp_path: Path, setting: str, says: str) -> None:
    result = optimize(tmp_path, "--set", setting, recipe="prune")
    assert result.returncode == 0, result.stderr
    assert f"no channel went: {says}" in result.stderr


def test_a_model_without_a_layer_to_prune_is_refused_with_the_reasons(tmp_path: Path) -> None:
    result = optimize(tmp_path, "--set", 'skip=["first"]', recipe="prune")
    failed(result, 1, "nothing to prune", "first: in the skip list", "second: it is of the model's")


def test_bad_ratios_and_layers_are_refused(tmp_path: Path) -> None:
    for setting, parts in {
        "ratio=1": ["ratio", "1"],
        "importance=l9": ["importance", "l1, l2", "'l9'"],
        'layers={"second": 0.5}': ["second cannot be pruned", "output y"],
        'layers={"first": 1}': ["first", "would empty the layer"],
    }.items():
        failed(optimize(tmp_path, "--set", setting, recipe="prune"), 1, *parts)
        assert not (tmp_path / "small.onnx").exists()
