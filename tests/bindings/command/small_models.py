# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models that the tests of the command write."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def weights(name: str, *shape: int) -> TensorProto:
    seeded = np.random.default_rng(len(name))
    return numpy_helper.from_array(seeded.standard_normal(shape).astype("f"), name)


def classifier(folder: Path, *, last: str = "Softmax") -> Path:
    """x[batch, 8] to y[batch, 4]: two products with a Relu between, and a last operator."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["z"], "second"),
        helper.make_node(last, ["z"], ["y"], "last"),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [weights("w1", 8, 64), weights("b1", 64), weights("w2", 64, 4), weights("b2", 4)],
    )
    path = folder / "classifier.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path
