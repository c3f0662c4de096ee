# SPDX-License-Identifier: Apache-2.0
"""--data-option: how a data set is read, and the messages that lead to it."""

import json
import zlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from running import failed, tenon


def save_model(path: Path, shape: list, weight: np.ndarray) -> None:
    """ReduceMean over what is behind the classes' axis, then a product."""
    flat = helper.make_node("Flatten", ["x"], ["flat"])
    product = helper.make_node("MatMul", ["flat", "w"], ["y"])
    graph = helper.make_graph(
        [flat, product],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", weight.shape[1]])],
        [numpy_helper.from_array(weight.astype("f"), "w")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=opset), path)


def save_picture(path: Path, color: int, side: int = 8) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((side, side, 3), color, "uint8")).save(path)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for i, color in enumerate((10, 30, 200, 250)):
        save_picture(tmp_path / "images" / ("dark" if i < 2 else "light") / f"{i}.png", color)
    side = 4
    weight = np.stack([-np.ones(3 * side * side), np.ones(3 * side * side)], 1)
    save_model(tmp_path / "model.onnx", [3, side, side], weight)
    save_model(tmp_path / "last.onnx", [side, side, 3], weight)
    return tmp_path


def accuracy(folder: Path, model: str, *options: str) -> float:
    flags = [flag for option in options for flag in ("--data-option", option)]
    result = tenon(
        "evaluate", model, "--data", "images/", "--metric", "accuracy", "--json", *flags, cwd=folder
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["value"]


def test_images_are_prepared_as_the_flags_say(images: Path) -> None:
    # 0.5 lies between dark and light only when it is subtracted, for each channel.
    assert accuracy(images, "model.onnx", "resize=4x4") == 0.5
    assert accuracy(images, "model.onnx", "resize=4", "mean=0.5,0.5,0.5", "std=0.5") == 1
    assert accuracy(images, "last.onnx", "resize=[4,4]", "mean=0.5", "layout=nhwc") == 1


def test_a_shape_that_does_not_fit_names_the_options(images: Path) -> None:
    result = tenon(
        "evaluate", "model.onnx", "--data", "images/", "--metric", "accuracy", cwd=images
    )
    failed(result, 1, "the data set has image float32[3, 8, 8], label int64[]")
    failed(result, 1, "the model wants x float32[n, 3, 4, 4]")
    failed(result, 1, "options of datasets.images: color, crop, field, layout, mean, resize")
    failed(result, 1, "(give one by --data-option KEY=VALUE)")
    asked = ["evaluate", "model.onnx", "--data", "images/", "--metric", "accuracy"]
    result = tenon(*asked, "--data-option", "field=x", cwd=images)
    failed(result, 1, "field x: the model wants float32[n, 3, 4, 4], got float32[?, 3, 8, 8]")
    failed(result, 1, "options of datasets.images: color", "(give one by --data-option KEY=VALUE)")


def test_options_that_are_not_there_or_wrong_are_named(images: Path) -> None:
    def asked(option: str) -> list:
        return [
            *("evaluate", "model.onnx", "--data", "images/", "--metric", "accuracy"),
            *("--data-option", option),
        ]

    result = tenon(*asked("resiz=4"), cwd=images)
    failed(result, 2, "--data-option resiz: expected one of resize, crop", "datasets.images")
    result = tenon(*asked("layout=chw"), cwd=images)
    failed(result, 1, "option layout: expected one of nchw, nhwc, got 'chw'", "--data-option KEY=V")
    result = tenon(*asked("resize"), cwd=images)
    failed(result, 2, "--data-option: expected NAME=VALUE, got 'resize'")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    text = "id;kind;a;b\n9;u;1;0\n8;v;0;1\n7;u;2;1\n6;v;1;2\n"
    (tmp_path / "rows.csv").write_text(text)
    save_model(tmp_path / "model.onnx", [2], np.eye(2))
    return tmp_path


def test_columns_label_and_delimiter_of_a_table(table: Path) -> None:
    def value(columns: str) -> float:
        options = [f"columns={columns}", "label=kind", "delimiter=;"]
        flags = [flag for option in options for flag in ("--data-option", option)]
        common = ["--data", "rows.csv", "--metric", "accuracy", "--json"]
        result = tenon("evaluate", "model.onnx", *common, *flags, cwd=table)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)["value"]

    assert value("a,b") == 1
    assert value("b,a") == 0
    assert value("2,-1") == 1


def test_a_column_that_is_not_there_is_named(table: Path) -> None:
    options = ["--data-option", "columns=a,c", "--data-option", "delimiter=;"]
    common = ["--data", "rows.csv", "--metric", "accuracy"]
    result = tenon("evaluate", "model.onnx", *common, *options, cwd=table)
    failed(result, 1, "option columns: expected a column's name or a number below 4, got 'c'")
    failed(result, 1, "(--data-option KEY=VALUE)")


def test_recipes_and_comparisons_read_data_in_the_same_way(images: Path) -> None:
    options = ["--data-option", "resize=4", "--data-option", "mean=0.5"]
    result = tenon(
        *("optimize", "model.onnx", "-o", "small.onnx", "--recipe", "int8", "--data", "images/"),
        *options,
        cwd=images,
    )
    assert result.returncode == 0, result.stderr
    result = tenon(
        *("compare", "model.onnx", "small.onnx", "--data", "images/", "--json", *options),
        cwd=images,
    )
    assert json.loads(result.stdout)["snr_db"] > 20
    result = tenon(
        *("optimize", "model.onnx", "-o", "s.onnx", "--recipe", "int8", "--data", "images/"),
        cwd=images,
    )
    assert "(give one by --data-option KEY=VALUE)" in result.stderr


def test_a_shape_that_no_option_changes_names_none(images: Path) -> None:
    np.savez(images / "small.npz", x=np.zeros((9, 3, 2, 2), "f"))
    asked = ["optimize", "model.onnx", "-o", "s.onnx", "--recipe", "int8", "--data", "small.npz"]
    result = tenon(*asked, cwd=images)
    failed(result, 1, "field x: the model wants float32[n, 3, 4, 4], got float32[?, 3, 2, 2]")
    assert "--data-option" not in result.stderr


def test_arrays_that_hold_no_samples_are_left_alone_and_named(tmp_path: Path) -> None:
    save_model(tmp_path / "model.onnx", [2], np.eye(2))
    np.savez(
        tmp_path / "d.npz",
        names=np.array(["a", "b"], dtype=object),
        scale=np.float64(3),
        x=np.eye(2)[[0, 1, 0]],
        label=np.array([0, 1, 0], "uint8"),
    )
    result = tenon(
        *("evaluate", "model.onnx", "--data", "d.npz", "--metric", "accuracy", "--json"),
        cwd=tmp_path,
    )
    assert json.loads(result.stdout)["value"] == 1
    assert "left alone, as they hold no numbers: names" in result.stderr
    assert "left alone, as they do not hold 3 samples: scale" in result.stderr
    assert "field x: float64 is converted to float32" in result.stderr


def test_a_damaged_entry_is_an_error_and_not_left_alone(tmp_path: Path) -> None:
    save_model(tmp_path / "model.onnx", [2], np.eye(2))
    np.savez(tmp_path / "d.npz", x=np.eye(2, dtype="f"), label=np.array([0, 1]))
    whole = bytearray((tmp_path / "d.npz").read_bytes())
    whole[whole.index(np.float32(1).tobytes())] ^= 1
    assert zlib.crc32(whole)
    (tmp_path / "d.npz").write_bytes(whole)
    result = tenon(
        "evaluate", "model.onnx", "--data", "d.npz", "--metric", "accuracy", cwd=tmp_path
    )
    failed(result, 1, "d.npz", "entry x.npy: checksum differs")


def test_inputs_that_fix_different_batches_are_refused(tmp_path: Path) -> None:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [n, 3])
        for name, n in (("a", 2), ("b", 4))
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, 3])
    graph = helper.make_graph(
        [helper.make_node("Concat", ["a", "b"], ["y"], axis=0)], "g", inputs, [output]
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=opset), tmp_path / "m.onnx")
    np.savez(
        tmp_path / "d.npz", a=np.ones((8, 3), "f"), b=np.ones((8, 3), "f"), label=np.zeros(8, "i8")
    )
    asked = ["evaluate", "m.onnx", "--data", "d.npz", "--metric", "accuracy"]
    result = tenon(*asked, cwd=tmp_path)
    failed(result, 1, "the model wants 2 samples of one input at once and 4 of b")


def test_a_missing_column_is_reported_with_the_nearest(tmp_path: Path) -> None:
    save_model(tmp_path / "m.onnx", [2], np.ones((2, 2)))
    (tmp_path / "d.csv").write_text("a,b,label\n1,2,0\n")
    (tmp_path / "e.csv").write_text("a;b;label\n1;2;0\n")
    asked = ["evaluate", "m.onnx", "--metric", "accuracy", "--data"]
    result = tenon(*asked, "d.csv", "--data-option", "label=lable", cwd=tmp_path)
    failed(result, 1, "option label: expected a column's name or a number below 3, got 'lable'")
    failed(result, 1, "(did you mean 'label'?)")
    result = tenon(*asked, "e.csv", "--data-option", "label=label", cwd=tmp_path)
    failed(result, 1, "option delimiter says what stands between cells")
