# SPDX-License-Identifier: Apache-2.0
"""A short way to write ONNX graphs: every call adds one node and returns its output's name."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# The oldest IR that knows the operator set; the widest range of readers takes it.
IR_VERSION = 8
OPSET = 17


class Graph:
    """Collects nodes and initializers, then makes a checked model of them."""

    def __init__(self, name: str):
        self.name = name
        self.nodes = []
        self.initializers = {}
        self.inputs = []
        self.outputs = []

    def input(self, name: str, elem_type: int, shape) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, elem_type, shape))
        return name

    def output(self, name: str, shape, elem_type: int = TensorProto.FLOAT) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, elem_type, shape))

    def constant(self, name: str, array) -> str:
        """Adds an initializer; a second one of the same name must have the same content."""
        array = np.ascontiguousarray(array)
        known = self.initializers.get(name)
        if known is not None and not np.array_equal(known, array):
            raise ValueError(f"graph {self.name}: initializer {name}: already there, and differs")
        self.initializers[name] = array
        return name

    def node(self, op_type: str, inputs, output: str, **attributes) -> str:
        """Adds a node with one output; the node is called like its output."""
        node = helper.make_node(op_type, list(inputs), [output], name=output, **attributes)
        self.nodes.append(node)
        return output

    def rename_last(self, name: str) -> str:
        """Gives the last node and its output another name, as for a graph output."""
        self.nodes[-1].name = self.nodes[-1].output[0] = name
        return name

    def model(self, producer: str = "tenon scripts") -> onnx.ModelProto:
        tensors = [numpy_helper.from_array(array, key) for key, array in self.initializers.items()]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, tensors)
        return helper.make_model(
            graph,
            producer_name=producer,
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )
