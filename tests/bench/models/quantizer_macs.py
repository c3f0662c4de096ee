# SPDX-License-Identifier: Apache-2.0
"""What share of a model's multiplications has both operands in 8 bits, from its file."""

import numpy as np
import onnx

PRODUCTS = {"Conv", "ConvTranspose", "MatMul", "Gemm"}
# An 8-bit value stays one.
MOVES = {"MaxPool", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Slice"}


def session_of(model, optimised: bool = False):
    """Of a file's path or a model; one thread, and as the file says it unless optimised."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    )
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    given = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(given, options, ["CPUExecutionProvider"])


def comes_in_8_bits(name: str, makers: dict[str, onnx.NodeProto]) -> bool:
    maker = makers.get(name)
    while maker is not None and maker.op_type in MOVES:
        maker = makers.get(maker.input[0])
    return maker is not None and maker.op_type == "DequantizeLinear"


def macs(node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]]) -> int:
    read, weight, made = (shapes[name] for name in (*node.input[:2], node.output[0]))
    if node.op_type == "Conv":
        return int(np.prod(made) * np.prod(weight[1:]))
    if node.op_type == "ConvTranspose":
        return int(np.prod(read) * np.prod(weight[1:]))
    is_transposed = any(a.name == "transA" and a.i for a in node.attribute)
    return int(np.prod(made) * read[0 if is_transposed else -1])


def integer_macs(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> float:
    """Of those of the graph itself, not of its bodies; shapes are those of one run."""
    nodes = [node for node in model.graph.node if node.op_type in PRODUCTS]
    makers = {name: node for node in model.graph.node for name in node.output}
    known = {one.name: tuple(one.dims) for one in model.graph.initializer}
    wanted = {name for node in nodes for name in (*node.input[:2], node.output[0])} - set(known)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    declared = {one.name for one in copy.graph.output}
    inputs = {one.name for one in copy.graph.input}
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted - declared - inputs)
    session = session_of(copy)
    names = [one.name for one in session.get_outputs()]
    given = {one.name: feed[one.name] for one in session.get_inputs()}
    shapes = {**known, **{name: value.shape for name, value in given.items()}}
    shapes |= {k: v.shape for k, v in zip(names, session.run(None, given), strict=True)}
    counts = [(macs(node, shapes), node) for node in nodes]
    whole = sum(count for count, _ in counts)
    ours = sum(c for c, node in counts if all(comes_in_8_bits(i, makers) for i in node.input[:2]))
    return ours / whole if whole else 0.0
