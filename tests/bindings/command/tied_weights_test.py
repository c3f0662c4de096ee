# SPDX-License-Identifier: Apache-2.0
"""Weights that nodes share, one of them transposed, are stored once by every recipe."""

from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from models_test import optimize
from onnx import TensorProto, helper, numpy_helper
from recipes_test import report, weights_of


def tied(folder: Path) -> Path:
    """A table of words whose transpose gives the scores, as in many language models."""
    seeded = np.random.default_rng(3)
    table = seeded.standard_normal((300, 32)).astype("f") / 6
    middle = seeded.standard_normal((32, 32)).astype("f") / 6
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"], "words"),
        helper.make_node("MatMul", ["x", "middle"], ["h"], "middle"),
        helper.make_node("Transpose", ["table"], ["columns"], "columns", perm=[1, 0]),
        helper.make_node("MatMul", ["h", "columns"], ["y"], "scores"),
    ]
    given = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", "s"])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "s", 300])
    weights = [numpy_helper.from_array(*one) for one in ((table, "table"), (middle, "middle"))]
    graph = helper.make_graph(nodes, "tied", [given], [made], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, folder / "classifier.onnx")
    np.savez(folder / "data.npz", ids=seeded.integers(0, 300, (64, 5)))
    return folder / "data.npz"


@pytest.mark.parametrize(
    ("recipe", "share"),
    [
        ("simplify", 1),
        ("bf16", 0.5),
        ("fp16", 0.5),
        ("weights", 0.32),
        ("int8", 0.32),
        ("dynamic", 0.32),
    ],
)
def test_tied_weights_are_stored_once(tmp_path: Path, recipe: str, share: float) -> None:
    samples = tied(tmp_path)
    given = [] if recipe == "dynamic" else ["--data", samples]
    result = report(optimize(tmp_path, *given, "--json", recipe=recipe))
    assert result["bytes_before"] == 4 * 32 * 332
    assert result["bytes_after"] <= share * result["bytes_before"]
    shapes = [list(one.shape) for one in weights_of(tmp_path / "small.onnx")]
    assert ([300, 32] in shapes) != ([32, 300] in shapes)
    with np.load(samples) as arrays:
        given = {"ids": arrays["ids"]}
    before, after = (
        onnx.reference.ReferenceEvaluator(onnx.load(tmp_path / f"{name}.onnx")).run(None, given)[0]
        for name in ("classifier", "small")
    )
    assert np.square(before - after).sum() < 1e-3 * np.square(before).sum()
