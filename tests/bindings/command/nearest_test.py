# SPDX-License-Identifier: Apache-2.0
"""A name that is none of those known is reported with them and with the nearest."""

from pathlib import Path

import numpy as np
import pytest
from running import tenon
from small_models import classifier


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nearest")
    classifier(made).rename(made / "m.onnx")
    np.savez(made / "d.npz", x=np.zeros((4, 8), "float32"), label=np.zeros(4, "int64"))
    return made


@pytest.mark.parametrize(
    ("command", "near"),
    [
        ("evaluate m.onnx --data d.npz --metric acuracy", "accuracy"),
        ("evaluate m.onnx --metric accuracy --data d.npz --data-option feilds=x", "fields"),
        ("optimize m.onnx --recipe in8 --data d.npz -o o.onnx", "int8"),
        ("bench m.onnx --backend onedn", "onednn"),
        ("bench m.onnx --precision fp23", "fp32"),
        ("plugin new acme --role metrik", "metric"),
    ],
)
def test_the_nearest_name_is_suggested(folder: Path, command: str, near: str) -> None:
    result = tenon(*command.split(), cwd=folder)
    assert result.returncode in (1, 2)
    assert "expected one of" in result.stderr
    assert f"(did you mean '{near}'?)" in result.stderr
