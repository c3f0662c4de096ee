# SPDX-License-Identifier: Apache-2.0
"""Every operator of ONNX refuses a node with one input more than it takes, and one with fewer than
it needs: what is not read would give other answers than the file's author expects."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import tenon as tn
from onnx import TensorProto, defs, helper

MOST = 60  # variadic operators say that they take 2^31 - 1
SCHEMAS = sorted(
    (s for s in defs.get_all_schemas() if s.domain == "" and not s.deprecated and s.max_output),
    key=lambda s: s.name,
)


def refuses(folder: Path, schema: defs.OpSchema, count: int, shape: list) -> bool:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node(schema.name, ["x"] * count, ["y"])
    graph = helper.make_graph([node], "g", [x], [y])
    opset = [helper.make_opsetid("", min(28, defs.onnx_opset_version()))]
    onnx.save(helper.make_model(graph, opset_imports=opset), folder / "m.onnx")
    try:
        tn.load(str(folder / "m.onnx")).compile(backend="reference")(np.ones(shape, "f"))
    except tn.TenonError:
        return True
    return False


@pytest.mark.parametrize("schema", [s for s in SCHEMAS if s.max_input < MOST], ids=lambda s: s.name)
@pytest.mark.parametrize("shape", [[2, 3], [2, 2]], ids=str)
def test_one_input_too_many_is_refused(tmp_path: Path, schema, shape: list) -> None:
    assert refuses(tmp_path, schema, schema.max_input + 1, shape)


@pytest.mark.parametrize("schema", [s for s in SCHEMAS if s.min_input > 0], ids=lambda s: s.name)
@pytest.mark.parametrize("shape", [[2, 3], [2, 2]], ids=str)
def test_one_input_too_few_is_refused(tmp_path: Path, schema, shape: list) -> None:
    assert refuses(tmp_path, schema, schema.min_input - 1, shape)


@pytest.mark.parametrize(
    ("op", "count", "words"),
    [
        ("Relu", 2, "expected 1 input, got 2"),
        ("Add", 3, "expected 2 inputs, got 3"),
        ("Add", 1, "expected 2 inputs, got 1"),
        ("Clip", 4, "expected 1..3 inputs, got 4"),
    ],
)
def test_the_refusal_says_how_many_there_may_be(op, count, words) -> None:
    with pytest.raises(tn.TenonError, match=words):
        tn.op(op, *[np.ones(2, "f")] * count)
