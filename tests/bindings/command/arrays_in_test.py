# SPDX-License-Identifier: Apache-2.0
"""Arrays in files as users have them: other types, more of them, other names; and what is said
of those that do not fit."""

from pathlib import Path

import numpy as np
import onnx
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


def save_sum(path: Path, x: int, y: int) -> None:
    """x + y, of some element types and one shape."""
    info = onnx.helper.make_tensor_value_info
    nodes = [
        onnx.helper.make_node("Cast", [name], [name + "f"], to=onnx.TensorProto.FLOAT)
        for name in "xy"
    ]
    nodes.append(onnx.helper.make_node("Add", ["xf", "yf"], ["z"]))
    inputs = [info("x", x, [1, 4]), info("y", y, [1, 4])]
    outputs = [info("z", onnx.TensorProto.FLOAT, [1, 4])]
    graph = onnx.helper.make_graph(nodes, "sum", inputs, outputs)
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets), path)


def test_arrays_are_taken_by_shape_when_all_files_are_read(tmp_path: Path) -> None:
    save_sum(tmp_path / "m.onnx", onnx.TensorProto.FLOAT, onnx.TensorProto.INT64)
    row = np.arange(4, dtype="f")[None]
    np.savez(tmp_path / "both.npz", a=row, b=10 * row.astype("i8"))
    infer = ["infer", "m.onnx", "--output-dir", "out", "--input"]
    result = tenon(*infer, "both.npz", cwd=tmp_path)
    assert "array a is taken for input x" in result.stderr, result.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "z.npy"), 11 * row)
    np.savez(tmp_path / "one.npz", x=row, other=row.astype("i8"))
    np.save(tmp_path / "y.npy", 2 * row.astype("i8"))
    result = tenon(*infer, "one.npz", "--input", "y=y.npy", cwd=tmp_path)
    assert (result.returncode, "left alone" in result.stderr) == (0, True), result.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "z.npy"), 3 * row)


def test_one_array_for_two_inputs_is_not_guessed(tmp_path: Path) -> None:
    save_sum(tmp_path / "m.onnx", onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT)
    np.savez(tmp_path / "a.npz", a=np.ones((1, 4), "f"))
    result = tenon("infer", "m.onnx", "--input", "a.npz", "--output-dir", "o", cwd=tmp_path)
    assert (
        result.returncode == 1 and "input x: expected float32[1, 4], got nothing" in result.stderr
    )


def test_integers_are_converted_exactly_or_refused(tmp_path: Path) -> None:
    save_sum(tmp_path / "m.onnx", onnx.TensorProto.INT64, onnx.TensorProto.INT32)
    np.save(tmp_path / "x.npy", np.full((1, 4), 2**53 + 1, "u8"))
    np.save(tmp_path / "y.npy", np.full((1, 4), 2**33, "i8"))
    np.save(tmp_path / "big.npy", np.full((1, 4), 2**63, "u8"))
    infer = ["infer", "m.onnx", "--output-dir", "o", "--input"]
    failed_at = tenon(*infer, "x=x.npy", "--input", "y=y.npy", cwd=tmp_path).stderr
    assert f"input y: expected numbers that int32 can hold, got {2**33}" in failed_at
    failed_at = tenon(*infer, "x=big.npy", cwd=tmp_path).stderr
    assert f"input x: expected numbers that int64 can hold, got {2**63}" in failed_at


def test_an_input_is_given_once(folder: Path) -> None:
    twice = ["--input", "x=x.npy", "--input", "x=x.npy"]
    failed(tenon("infer", "m.onnx", "--output-dir", "o", *twice, cwd=folder), 2, "x: given twice")
    failed(tenon("bench", "m.onnx", *twice, cwd=folder), 2, "x: given twice")


def test_what_is_wrong_names_the_flag_that_mends_it(folder: Path) -> None:
    rows = [";".join(str(v) for v in [*row, 0]) for row in X]
    (folder / "d.csv").write_text("\n".join(rows))
    (folder / "towns.csv").write_text("town,y\nNew York,1")
    towns = tenon("evaluate", "m.onnx", "--metric", "accuracy", "--data", "towns.csv", cwd=folder)
    assert "option columns names" in towns.stderr and "delimiter" not in towns.stderr
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


def save_cast(path: Path, x: int, y: int, shape: list[int]) -> None:
    """y is x as another element type."""
    info = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=y)
    graph = onnx.helper.make_graph([node], "cast", [info("x", x, shape)], [info("y", y, shape)])
    opsets = [onnx.helper.make_opsetid("", 21)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


@pytest.mark.parametrize("dtype", ["FLOAT16", "BFLOAT16"])
def test_inputs_of_16_bits_take_other_numbers(tmp_path: Path, dtype: str) -> None:
    wanted = getattr(onnx.TensorProto, dtype)
    save_cast(tmp_path / "m.onnx", wanted, onnx.TensorProto.FLOAT, [1, 4])
    np.save(tmp_path / "x.npy", np.array([[1.5, -2, 0, 96]], "f8"))
    y = inferred(tmp_path, "--input", "x=x.npy", note=f"float64 is converted to {dtype.lower()}")
    assert y.tolist() == [[1.5, -2, 0, 96]]
    np.save(tmp_path / "x.npy", np.array([[1, 2, 3, 1e300]]))
    result = tenon("infer", "m.onnx", "--output-dir", "o", "--input", "x=x.npy", cwd=tmp_path)
    assert f"expected numbers that {dtype.lower()} can hold, got 1e+300" in result.stderr


@pytest.mark.parametrize("dtype", ["FLOAT8E4M3FN", "FLOAT8E5M2", "INT4", "UINT4", "BFLOAT16"])
def test_outputs_are_files_that_numpy_reads(tmp_path: Path, dtype: str) -> None:
    save_cast(tmp_path / "m.onnx", onnx.TensorProto.FLOAT, getattr(onnx.TensorProto, dtype), [5])
    numbers = [0, 1, 3, 6, 7] if dtype.startswith("U") else [-8, 1, -3, 6, 7]
    np.save(tmp_path / "x.npy", np.array(numbers, "f"))
    assert inferred(tmp_path, "--input", "x=x.npy").tolist() == numbers
