# SPDX-License-Identifier: Apache-2.0
"""Short ways to write ONNX models and to run them on both backends."""

import numpy as np
import onnx
import tenon
from onnx import helper, numpy_helper

F32, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def info(name, shape, element=F32):
    return helper.make_tensor_value_info(name, element, shape)


def constant(name, value):
    array = np.asarray(value)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    return numpy_helper.from_array(array, name)


def model_of(nodes, inputs, outputs, initializers=(), opset=17, ir=8):
    """outputs: names, of any type and shape."""
    made = [o if not isinstance(o, str) else onnx.ValueInfoProto(name=o) for o in outputs]
    graph = helper.make_graph(nodes, "g", inputs, made, initializers)
    ir = ir if opset < 22 else 12
    return helper.make_model(graph, ir_version=ir, opset_imports=[helper.make_opsetid("", opset)])


def ran(folder, model) -> tenon.Model:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return tenon.load(path)


def both(folder, model, **feeds):
    """The first output on reference and on onednn."""
    loaded = ran(folder, model)
    return [loaded.compile(backend=name).run(feeds)[0] for name in ("reference", "onednn")]
