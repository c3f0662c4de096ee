# SPDX-License-Identifier: Apache-2.0
"""One node on `reference`: run("LSTM", [x, w, r], 3, hidden_size=2)."""

from __future__ import annotations

from typing import Any

from onnx import ValueInfoProto, helper
from tenon import onnx_backend


def run(op: str, inputs: list[Any], n_outputs: int, domain: str = "", **attributes: Any) -> list:
    """inputs: arrays, None where one is absent."""
    names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
    outputs = [f"y{i}" for i in range(n_outputs)]
    ports = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip(names, inputs)
        if array is not None
    ]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph([node], "one", ports, [ValueInfoProto(name=y) for y in outputs])
    imports = [helper.make_opsetid("", 22)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return list(onnx_backend.run_model(model, [a for a in inputs if a is not None]))
