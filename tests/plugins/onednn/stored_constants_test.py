# SPDX-License-Identifier: Apache-2.0
"""Constants stored as integers mean the same to whatever reads them: every stored type, with one
scale or one for each index of an axis, in front of operators that multiply, move, compare and
combine. The expected results are those of the same graph with the numbers as float32 constants,
which `reference` computes."""

import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

TYPES = {"int8": 100, "uint8": 200, "int16": 30000, "uint16": 60000, "int32": 1 << 20}
#: name: shape of the constant d, what reads it, shapes of x, and other constants
READERS = {
    "the caller": ((4, 6), [("Identity", ["d"])], None, {}),
    "Neg": ((4, 6), [("Neg", ["d"])], None, {}),
    "Add": ((4, 6), [("Add", ["x", "d"])], (4, 6), {}),
    "Add of a row": ((6,), [("Add", ["x", "d"])], (4, 6), {}),
    "Where": ((4, 6), [("Greater", ["x", "d"]), ("Where", ["t", "x", "d"])], (4, 6), {}),
    "Cast": ((4, 6), [("Cast", ["d"], {"to": 10}), ("Cast", ["t"], {"to": 1})], None, {}),
    "PRelu": ((6, 1, 1), [("PRelu", ["x", "d"])], (2, 6, 3, 3), {}),
    "Transpose": ((4, 6), [("Transpose", ["d"]), ("MatMul", ["x", "t"])], (3, 6), {}),
    "Gather": ((9, 6), [("Gather", ["d", "i"])], None, {"i": np.array([0, 8, 2])}),
    "Concat": ((4, 6), [("Concat", ["x", "d"], {"axis": 0})], (4, 6), {}),
    "Reshape": ((4, 6), [("Reshape", ["d", "s"]), ("Mul", ["x", "t"])], (8, 3), {"s": [8, 3]}),
    "Softmax": ((4, 6), [("Softmax", ["d"])], None, {}),
    "ReduceMean": ((4, 6), [("ReduceMean", ["d"])], None, {}),
    "MatMul": ((6, 5), [("MatMul", ["x", "d"])], (4, 6), {}),
    "two readers": ((6, 6), [("MatMul", ["x", "d"]), ("Add", ["t", "d"])], (6, 6), {}),
    "bias of MatMul": ((5,), [("MatMul", ["x", "w"]), ("Add", ["t", "d"])], (4, 6), {"w": (6, 5)}),
    "bias of Gemm": ((5,), [("Gemm", ["x", "w", "d"])], (4, 6), {"w": (6, 5)}),
    "twice a bias": ((5,), [("Gemm", ["x", "w", "d"], {"beta": 2.0})], (4, 6), {"w": (6, 5)}),
    "Conv": ((8, 3, 3, 3), [("Conv", ["x", "d"])], (2, 3, 6, 6), {}),
    "bias of Conv": ((8,), [("Conv", ["x", "w", "d"])], (2, 3, 6, 6), {"w": (8, 3, 3, 3)}),
    "LayerNormalization": ((6,), [("LayerNormalization", ["x", "d", "d"])], (4, 6), {}),
}


def graph_of(reader, rng):
    """The nodes behind d, their feeds, and the constants that they read."""
    shape, nodes, x, others = READERS[reader]
    made = []
    for at, (op, inputs, *attributes) in enumerate(nodes):
        result = "y" if at + 1 == len(nodes) else "t"
        made.append(helper.make_node(op, inputs, [result], **(attributes or [{}])[0]))
    given = {} if x is None else {"x": rng.standard_normal(x).astype("f")}
    constants = {
        name: rng.standard_normal(value).astype("f")
        if isinstance(value, tuple)
        else np.asarray(value, np.int64)
        for name, value in others.items()
    }
    return shape, made, given, constants


def run(nodes, given, constants, backend, folder):
    """The result, and what the plan says of itself."""
    graph = helper.make_graph(
        nodes,
        "stored",
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in given.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, folder / "stored.onnx")
    plan = tenon.load(str(folder / "stored.onnx")).compile(backend=backend, threads=1)
    result = np.asarray(plan.run(given)[0])
    return result, plan.describe()


def results_of(nodes, given, constants, backend, folder):
    result, about = run(nodes, given, constants, backend, folder)
    is_16_bit = any(value.dtype.itemsize == 2 for value in constants.values())
    if not is_16_bit:
        assert not about["fallback_nodes"]
    return result


def kernels_of(nodes, given, constants, folder):
    about = run(nodes, given, constants, "onednn", folder)[1]
    return [part["kernels"] for part in about["partitions"]]


def forms_of(shape):
    return [None] + sorted({0, len(shape) - 1})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("reader", READERS)
def test_stored_constants_mean_the_same_to_every_reader(reader, dtype, tmp_path):
    rng = np.random.default_rng(0)
    shape, nodes, given, constants = graph_of(reader, rng)
    low = 0 if dtype.startswith("u") else -TYPES[dtype]
    stored = rng.integers(low, TYPES[dtype], shape).astype(dtype)
    for axis in forms_of(shape):
        scales = rng.uniform(0.5, 1.5, () if axis is None else shape[axis]) / TYPES[dtype]
        scales = scales.astype("f")
        broadcast = [-1 if at == axis else 1 for at in range(len(shape))]
        numbers = stored.astype("f") * (scales if axis is None else scales.reshape(broadcast))
        want = results_of(nodes, given, constants | {"d": numbers}, "reference", tmp_path)
        reads = helper.make_node("DequantizeLinear", ["q", "s_"], ["d"], axis=axis or 0)
        held = constants | {"q": stored, "s_": scales}
        for backend in ("onednn", "reference"):
            got = results_of([reads, *nodes], given, held, backend, tmp_path)
            np.testing.assert_allclose(
                got, want, rtol=1e-5, atol=1e-5, err_msg=f"{backend}, scales along {axis}"
            )


@pytest.mark.parametrize(
    ("node", "x", "shape", "share"),
    [
        (
            helper.make_node("Conv", ["x", "d"], ["y"], pads=[1] * 4),
            (1, 64, 32, 32),
            (64, 64, 3, 3),
            1,
        ),
        (helper.make_node("MatMul", ["x", "d"], ["y"]), (64, 512), (512, 512), 0.05),
        (
            helper.make_node("ConvTranspose", ["x", "d"], ["y"], pads=[1] * 4),
            (1, 64, 32, 32),
            (64, 64, 3, 3),
            1,
        ),
    ],
    ids=["Conv of 3x3", "MatMul of zeros", "ConvTranspose of 3x3"],
)
def test_stored_weights_of_floats_are_multiplied_as_floats_are(node, x, shape, share, tmp_path):
    """Winograd and sparse kernels where this processor has them, as for float32 weights."""
    rng = np.random.default_rng(1)
    stored = rng.integers(-100, 100, shape).astype("int8") * (rng.random(shape) < share)
    scale = np.float32(0.01)
    given = {"x": rng.standard_normal(x).astype("f")}
    constants = {"q": stored.astype("int8"), "s": scale}
    reads = helper.make_node("DequantizeLinear", ["q", "s"], ["d"])

    got = kernels_of([reads, node], given, constants, tmp_path)

    want = kernels_of([node], given, {"d": stored.astype("f") * scale}, tmp_path)
    assert got == want and got
