# SPDX-License-Identifier: Apache-2.0
"""Arrays in files as users have them: other types, more of them, other names; and what is said
of those that do not fit."""

from pathlib import Path

import numpy as np
import pytest
from data_test import save_model
from running import failed, tenon

X = np.arange(12, dtype="float32").reshape(3, 4)
W = np.arange(8, dtype="float32").reshape(4, 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(tmp_path / "m.onnx", [4], W)
    np.save(tmp_path / "x.npy", X)
    return tmp_path


def inferred(folder: Path, *flags: str, note: str = "") -> np.ndarray:
    result = tenon("infer", "m.onnx", "--output-dir", "out", *flags, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert note in result.stderr and bool(note) == bool(result.stderr), result.stderr
    return np.load(folder / "out" / "y.npy")


@pytest.mark.parametrize("dtype", ["float64", "float16", "uint8", "int32", "int64", "bool"])
def test_infer_converts_numbers_with_a_note(folder: Path, dtype: str) -> None:
    np.save(folder / "other.npy", X.astype(dtype))
    y = inferred(folder, "--input", "x=other.npy", note=f"{dtype} is converted to float32")
    np.testing.assert_array_equal(y, X.astype(dtype).astype("f") @ W)
    flags = ["--rounds", "2", "--input", "x=other.npy"]
    assert "is converted" in tenon("bench", "m.onnx", *flags, cwd=folder).stderr


def test_infer_leaves_other_arrays_of_an_npz_alone(folder: Path) -> None:
    np.savez(folder / "all.npz", x=X, names=np.array(["a", "b"]), mean=np.ones(7))
    y = inferred(folder, "--input", "all.npz", note="left alone, as no input has its name: mean")
    np.testing.assert_array_equal(y, X @ W)


def test_infer_takes_the_only_array_that_fits(folder: Path) -> None:
    np.savez(folder / "all.npz", pixels=X.astype("f8"), label=np.arange(3))
    y = inferred(folder, "--input", "all.npz", note="array pixels is taken for input x: no other")
    np.testing.assert_array_equal(y, X @ W)
    np.savez(folder / "two.npz", a=X, b=X)
    result = tenon("infer", "m.onnx", "--input", "two.npz", "--output-dir", "o", cwd=folder)
    assert (result.returncode, "input x: expected float32[n, 4], got nothing" in result.stderr) == (
        1,
        True,
    )


def test_an_input_is_given_once(folder: Path) -> None:
    twice = ["--input", "x=x.npy", "--input", "x=x.npy"]
    failed(tenon("infer", "m.onnx", "--output-dir", "o", *twice, cwd=folder), 2, "x: given twice")
    failed(tenon("bench", "m.onnx", *twice, cwd=folder), 2, "x: given twice")


def test_what_is_wrong_names_the_flag_that_mends_it(folder: Path) -> None:
    rows = [";".join(str(v) for v in [*row, 0]) for row in X]
    (folder / "d.csv").write_text("\n".join(rows))
    evaluate = ["evaluate", "m.onnx", "--metric"]
    csv = [*evaluate, "accuracy", "--data", "d.csv", "--data-option"]
    failed(
        tenon(*csv, "header=no", cwd=folder), 1, "option delimiter", "perhaps ';'", "--data-option"
    )
    assert tenon(*csv, "delimiter=;", "--data-option", "label=-1", cwd=folder).returncode == 0
    np.savez(folder / "d.npz", x=X, kind=np.arange(3) % 2)
    npz = ["--data", "d.npz"]
    failed(tenon(*evaluate, "accuracy", *npz, cwd=folder), 1, "--option label=FIELD")
    assert tenon(*evaluate, "accuracy", *npz, "--option", "label=kind", cwd=folder).returncode == 0
    failed(tenon(*evaluate, "cosine", *npz, cwd=folder), 1, "--against MODEL")
    failed(tenon(*evaluate, "cosine", "--data", "nosuch/", cwd=folder), 1, "nosuch/: ", "no such")
    np.savez(folder / "words.npz", x=np.array(["a", "b", "c"]), kind=np.arange(3), more=np.ones(3))
    words = tenon(*evaluate, "accuracy", "--data", "words.npz", cwd=folder)
    assert "left alone, as they hold no numbers: x" in words.stderr


def test_recipes_name_no_line_of_ours(folder: Path) -> None:
    for recipe in ("weights", "dynamic", "int8", "decompose", "simplify", "prune"):
        flags = ["-o", "o.onnx", "--recipe", recipe, "--set", 'only=["nothere*"]']
        if recipe == "int8":
            np.savez(folder / "d.npz", x=X)
            flags += ["--data", "d.npz"]
        result = tenon("optimize", "m.onnx", *flags, cwd=folder)
        assert result.returncode == 1, (recipe, result)
        assert "tenon: tenon:" not in result.stderr and ".lua:" not in result.stderr, result.stderr
        assert "nothere*" in result.stderr, result.stderr


def test_a_drop_is_measured_by_metrics_of_outputs_too(folder: Path) -> None:
    np.savez(folder / "d.npz", x=np.random.default_rng(0).normal(size=(16, 4)).astype("f"))
    flags = ["-o", "o.onnx", "--data", "d.npz", "--max-drop", "0.5", "--set", "metric=cosine"]
    result = tenon("optimize", "m.onnx", "--recipe", "dynamic", *flags, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "cosine worse by" in result.stdout
