# SPDX-License-Identifier: Apache-2.0
"""Where a quantized ONNX file multiplies 8-bit values, and what each product rounds.

A product is a float operator between DequantizeLinear and QuantizeLinear (QDQ), or an 8-bit
operator that does all three (QOperator). `as_float` writes the second kind as the first, so that
the number in front of a rounding can be asked of either.
"""

import onnx
from onnx import helper

FLOATS = {"Conv", "ConvTranspose", "MatMul", "Gemm"}
# 8-bit operators: the float operator, the places of (x, scale, zero) triples, that of y's scale.
CODES = {
    "QLinearConv": ("Conv", (0, 3), 6),
    "QLinearMatMul": ("MatMul", (0, 3), 6),
    "QGemm": ("Gemm", (0, 3), 7),
    "QLinearAdd": ("Add", (0, 3), 6),
    "QLinearMul": ("Mul", (0, 3), 6),
    "QLinearWhere": ("Where", (1, 4), 7),
    "QLinearSigmoid": ("Sigmoid", (0,), 3),
    "QLinearLeakyRelu": ("LeakyRelu", (0,), 3),
    "QLinearSoftmax": ("Softmax", (0,), 3),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,), 3),
    "QLinearAveragePool": ("AveragePool", (0,), 3),
}
BIASES = {"QLinearConv": 8, "QGemm": 6}  # int32, with the scale of the product
NOT_FLOAT = {"opset", "channels_last"}


def _axis(node, place: int) -> int:
    """That scales of several elements belong to."""
    if place != 3:
        return 0
    flip = any(a.name == "transB" and a.i for a in node.attribute)
    return {"QGemm": 0 if flip else 1, "QLinearMatMul": 1}.get(node.op_type, 0)


def _expanded(node) -> list:
    op, triples, y_scale = CODES[node.op_type]
    mark, made, inputs = node.output[0], [], list(node.input[: triples[0]])
    for place in triples:
        name = f"{mark}__in{place}"
        read = [name_ for name_ in node.input[place : place + 3] if name_]
        made.append(helper.make_node("DequantizeLinear", read, [name], axis=_axis(node, place)))
        inputs.append(name)
    bias = BIASES.get(node.op_type)
    if bias is not None and len(node.input) > bias and node.input[bias]:
        scale, read, b = f"{mark}__scale", f"{mark}__cast", f"{mark}__bias"
        made.append(helper.make_node("Mul", [node.input[1], node.input[4]], [scale]))
        made.append(helper.make_node("Cast", [node.input[bias]], [read], to=onnx.TensorProto.FLOAT))
        made.append(helper.make_node("Mul", [read, scale], [b]))
        inputs.append(b)
    is_codes = len(node.input) > y_scale and bool(node.input[y_scale])
    attributes = [a for a in node.attribute if a.name not in NOT_FLOAT]
    result = before(mark) if is_codes else mark
    product = helper.make_node(op, inputs, [result], name=node.name)
    product.attribute.extend(attributes)
    made.append(product)
    if is_codes:
        made.append(
            helper.make_node("QuantizeLinear", [result, *node.input[y_scale : y_scale + 2]], [mark])
        )
    return made


def before(value: str) -> str:
    """The name of the number that an 8-bit operator rounds to `value`."""
    return f"{value}__float"


def as_float(model: onnx.ModelProto) -> onnx.ModelProto:
    """With float operators only, between DequantizeLinear and QuantizeLinear."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    for node in model.graph.node:
        out.graph.node.extend(_expanded(node) if node.op_type in CODES else [node])
    return out


class Graph:
    """Who makes and who reads each value."""

    def __init__(self, model: onnx.ModelProto):
        self.model = onnx.shape_inference.infer_shapes(model)
        self.producer = {name: n for n in model.graph.node for name in n.output}
        self.readers: dict[str, list] = {}
        for node in model.graph.node:
            for name in set(node.input):
                self.readers.setdefault(name, []).append(node)
        self.constants = {tensor.name for tensor in model.graph.initializer} | {""}
        for node in model.graph.node:  # in an order in which all can be computed
            if self.constants.issuperset(node.input):
                self.constants.update(node.output)
        self.outputs = {value.name for value in model.graph.output}

    def constant(self, name: str) -> bool:
        """A weight, or computed from weights alone."""
        return name in self.constants

    def quantized(self, name: str) -> bool:
        node = self.producer.get(name)
        return node is not None and node.op_type == "DequantizeLinear"

    def source(self, name: str) -> str:
        """The 8-bit value behind a dequantized one, the value itself else."""
        return self.producer[name].input[0] if self.quantized(name) else name

    def products(self) -> list:
        return [
            node
            for node in self.model.graph.node
            if node.op_type in CODES or (node.op_type in FLOATS and self.quantized(node.input[0]))
        ]

    def ends(self, node) -> bool:
        """Whether a region ends in front of it."""
        is_product = node.op_type in FLOATS or node.op_type in {
            "QLinearConv",
            "QLinearMatMul",
            "QGemm",
        }
        return is_product or len(node.output) != 1

    def goes_on(self, value: str) -> bool:
        """Whether quantized values go to one pointwise node alone."""
        readers = self.readers.get(value, [])
        if value in self.outputs or len(readers) != 1:
            return False
        if readers[0].op_type == "DequantizeLinear":
            value = readers[0].output[0]
            readers = self.readers.get(value, [])
            if value in self.outputs or len(readers) != 1:
                return False
            return not self.ends(readers[0]) and readers[0].op_type != "QuantizeLinear"
        return readers[0].op_type in CODES and not self.ends(readers[0])

    def region(self, node, roundings: int = 1) -> tuple[list[str], str]:
        """From a product to a rounding behind it: its inputs and its one result."""
        inputs = [self.source(name) for name in node.input if not self.constant(name)]
        value = node.output[0]
        rounds = node.op_type in CODES
        while True:
            if rounds:
                roundings -= 1
                if roundings == 0 or not self.goes_on(value):
                    break
            readers = self.readers.get(value, [])
            if value in self.outputs or len(readers) != 1 or self.ends(readers[0]):
                break
            reader = readers[0]
            others = [n for n in reader.input if n != value and not self.constant(n)]
            inputs += [self.source(name) for name in others]
            value = reader.output[0]
            rounds = reader.op_type == "QuantizeLinear" or reader.op_type in CODES
        return list(dict.fromkeys(inputs)), value

    def rounding(self, value: str) -> tuple[str, str, int] | None:
        """What is quantized to this value, its scale, and the axis that scales belong to."""
        node = self.producer[value]
        if node.op_type == "QuantizeLinear":
            axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
            return node.input[0], node.input[1], axis
        if node.op_type in CODES and len(node.input) > CODES[node.op_type][2]:
            return before(value), node.input[CODES[node.op_type][2]], 1
        return None
