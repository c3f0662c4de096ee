# SPDX-License-Identifier: Apache-2.0
"""Data sets that are damaged, of another length or without numbers: refused in one line, or said
with what was left."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from models_test import classifier, data, optimize
from running import failed, tenon


def truncated(folder: Path) -> Path:
    path = data(folder)
    path.write_bytes(path.read_bytes()[:200])
    return path


def damaged(folder: Path) -> Path:
    path = data(folder)
    content = bytearray(path.read_bytes())
    content[150] ^= 255  # in the first array: the checksum shows it
    path.write_bytes(content)
    return path


def pickled(folder: Path) -> Path:
    path = data(folder, x=np.array([{"a": 1}], object))
    assert zipfile.is_zipfile(path)
    return path


def without_rows(folder: Path) -> Path:
    return data(folder, 0)


def other_lengths(folder: Path) -> Path:
    return data(folder, x=np.zeros((7, 8), "f"))


def with_nan(folder: Path) -> Path:
    rows = np.zeros((16, 8), "f")
    rows[3, 2] = np.nan
    return data(folder, 16, x=rows)


def ragged(folder: Path) -> Path:
    path = folder / "data.csv"
    path.write_text("x,label\n1,2\n1,2,3\n")
    return path


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (truncated, ["data.npz"]),
        (damaged, ["data.npz"]),
        (without_rows, ["empty data set"]),
        (with_nan, ["value x", "not finite", "in sample 3 ("]),
        (ragged, ["data.csv", "3"]),
        (lambda folder: folder / "absent.npz", ["absent.npz"]),
    ],
)
def test_calibration_refuses_bad_data(tmp_path: Path, make, parts: list[str]) -> None:
    result = optimize(tmp_path, "--data", make(tmp_path))
    failed(result, 1, *parts)
    assert not (tmp_path / "small.onnx").exists()


@pytest.mark.parametrize("with_part", [False, True])
def test_nan_that_a_relu_hides_is_said_with_its_sample(tmp_path: Path, with_part: bool) -> None:
    rows = np.ones((64, 8), "f")
    rows[61, 2] = np.nan
    samples = data(tmp_path, 64, x=rows)
    if with_part:  # judged on the last eighth of the data
        result = optimize(tmp_path, "--data", samples, "--set", "observer=minmax")
    else:
        result = tenon("compare", classifier(tmp_path), classifier(tmp_path), "--data", samples)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("field x has NaN in sample 61") >= 1, result.stderr


def test_arrays_that_hold_no_samples_are_left_alone_and_said(tmp_path: Path) -> None:
    result = optimize(tmp_path, "--data", pickled(tmp_path))
    assert result.returncode == 1 and not (tmp_path / "small.onnx").exists()
    assert "left alone, as they hold no numbers: x" in result.stderr
    assert "no field for x" in result.stderr
    result = optimize(tmp_path, "--data", other_lengths(tmp_path))  # needs no labels
    assert result.returncode == 0, result.stderr
    assert "left alone, as they do not hold 7 samples: label" in result.stderr
