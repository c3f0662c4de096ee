# SPDX-License-Identifier: Apache-2.0
"""Over many shapes: products that compute half, filters that run as many channels, transposed
convolutions that are a product and a copy, or run in 8 bits, windows over each channel alone in 8
bits.

PYTHONPATH=build/release/python .venv/bin/python tests/bench/onednn/swept.py [--seconds S]
    [--only products|filters|transposes|depthwise] [--precision fp32|bf16|int8]

Each line is a shape, the time of the plain implementation and of the special one in ms, and their
ratio; over 1 the special one is faster. The plain product is that of two different matrices; for
the others the option `without` leaves the special implementation out. Rounds of both alternate,
and the least time of each counts.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import tenon as tn
from onnx import TensorProto, helper, numpy_helper

PRODUCTS = [(n, k) for n in (512, 576, 768, 1024, 1536, 2048, 3072) for k in (256, 512, 1024, 4096)]
FILTERS = [
    (length, taps, stride, filters)
    for length in (1000, 16000)
    for filters in (1, 4, 36, 258)
    for taps in (32, 64, 256)
    for stride in (1, 2, 4, 8, 16, 64, 256)
    if stride <= taps
]
TRANSPOSES = [
    (channels, filters, side, kernel)
    for channels in (16, 64, 256)
    for filters in (1, 3, 16, 64, 256)
    for side in (7, 28, 112)
    for kernel in (2, 4)
    if channels * filters * side * side <= 2**24
]
DEPTHWISE = [
    (channels, side, kernel, stride, activation)
    for channels, side in ((8, 80), (16, 80), (24, 56), (32, 56), (40, 28), (48, 40), (96, 28))
    + ((240, 14), (480, 7))
    for kernel in (3, 5)
    for stride in (1, 2)
    for activation in ("Relu", "HardSwish", "Swish")
]


def constant(name: str, array: np.ndarray) -> TensorProto:
    return numpy_helper.from_array(array, name)


def saved(folder: Path, graph: onnx.GraphProto) -> Path:
    path = folder / f"{graph.name}.onnx"
    opsets = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def product(folder: Path, n: int, k: int, special: bool) -> Path:
    """x.T @ x, or x.T @ y."""
    names = ["x"] if special else ["x", "y"]
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["t", names[-1]], ["r"]),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (k, n)) for name in names]
    outputs = [helper.make_tensor_value_info("r", TensorProto.FLOAT, (n, n))]
    return saved(folder, helper.make_graph(nodes, f"product{special:d}", inputs, outputs))


def signal(
    folder: Path, length: int, taps: int, stride: int, filters: int, precision: str, special: bool
) -> Path:
    """A convolution of one signal with some filters."""
    out = (length - taps) // stride + 1
    weights = np.random.default_rng(0).integers(-127, 127, (filters, 1, taps))
    shape = (1, filters, out)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, length))]
    geometry = {"strides": [stride]}
    if precision != "int8":
        nodes = [helper.make_node("Conv", ["x", "w"], ["y"], **geometry)]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]
        constants = [constant("w", (weights / 500).astype("f"))]
        return saved(
            folder, helper.make_graph(nodes, f"signal{special:d}", inputs, outputs, constants)
        )
    graph = in_8_bits(f"signal{special:d}", "Conv", weights, 0, inputs, shape, geometry)
    return saved(folder, graph)


def in_8_bits(
    name: str, op: str, weights: np.ndarray, axis: int, inputs: list, shape: tuple, geometry: dict
) -> onnx.GraphProto:
    """One node between QuantizeLinear and DequantizeLinear; axis: of the weights' scales."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["w"], axis=axis),
        helper.make_node(op, ["d", "w"], ["c"], **geometry),
        helper.make_node("QuantizeLinear", ["c", "os", "z"], ["y"]),
    ]
    channels = weights.shape[axis]
    constants = [
        constant("s", np.float32(0.02)),
        constant("z", np.uint8(128)),
        constant("wq", weights.astype("i1")),
        constant("ws", np.full(channels, 0.002, "f")),
        constant("wz", np.zeros(channels, "i1")),
        constant("os", np.float32(0.1)),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, shape)]
    return helper.make_graph(nodes, name, inputs, outputs, constants)


def transpose(
    folder: Path, channels: int, filters: int, side: int, kernel: int, precision: str, _: bool
) -> Path:
    """A ConvTranspose whose windows lie side by side."""
    weights = np.random.default_rng(0).standard_normal((channels, filters, kernel, kernel))
    geometry = {"strides": [kernel, kernel]}
    shape = (1, filters, side * kernel, side * kernel)
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, (1, channels, side, side))]
    if precision == "int8":
        rounded = np.clip(np.round(weights * 40), -127, 127)
        graph = in_8_bits("transpose", "ConvTranspose", rounded, 1, inputs, shape, geometry)
        return saved(folder, graph)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **geometry)
    outputs = [value("y", TensorProto.FLOAT, shape)]
    constants = [constant("w", weights.astype("f"))]
    return saved(folder, helper.make_graph([node], "transpose", inputs, outputs, constants))


def depthwise(
    folder: Path, channels: int, side: int, kernel: int, stride: int, activation: str, _: bool
) -> Path:
    """Four of them behind each other, the last with strides; each is rounded to 8 bits."""
    random = np.random.default_rng(0)
    constants = [
        constant("s", np.float32(0.02)),
        constant("z", np.uint8(128)),
        constant("ws", np.full(channels, 0.003, "f")),
        constant("wz", np.zeros(channels, "i1")),
    ]
    make = helper.make_node
    nodes = [make("QuantizeLinear", ["x", "s", "z"], ["q0"])]
    for i in range(4):
        weights = random.integers(-127, 127, (channels, 1, kernel, kernel)).astype("i1")
        constants.append(constant(f"wq{i}", weights))
        steps = [stride if i == 3 else 1] * 2
        pads = [kernel // 2] * 4
        nodes += [
            make("DequantizeLinear", [f"q{i}", "s", "z"], [f"d{i}"]),
            make("DequantizeLinear", [f"wq{i}", "ws", "wz"], [f"w{i}"], axis=0),
            make("Conv", [f"d{i}", f"w{i}"], [f"c{i}"], group=channels, strides=steps, pads=pads),
        ]
        if activation == "Swish":
            nodes += [
                make("Sigmoid", [f"c{i}"], [f"g{i}"]),
                make("Mul", [f"c{i}", f"g{i}"], [f"a{i}"]),
            ]
        else:
            nodes.append(make(activation, [f"c{i}"], [f"a{i}"]))
        nodes.append(make("QuantizeLinear", [f"a{i}", "s", "z"], [f"q{i + 1}"]))
    made = (side - 1) // stride + 1
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, (1, channels, side, side))]
    outputs = [value("q4", TensorProto.UINT8, (1, channels, made, made))]
    return saved(folder, helper.make_graph(nodes, "depthwise", inputs, outputs, constants))


def runner(path: Path, precision: str, without: list[str]) -> Callable[[], object]:
    plan = tn.load(str(path)).compile(
        backend="onednn", threads=2, precision=precision, without=without
    )
    random = np.random.default_rng(1)
    shapes = [
        [d.dim_value for d in port.type.tensor_type.shape.dim]
        for port in onnx.load(path).graph.input
    ]
    arrays = [random.standard_normal(shape).astype("f") for shape in shapes]
    return lambda: plan(*arrays)


# What is left out for the plain one; of products it is another graph.
WITHOUT = {signal: ["filter"], transpose: ["patches"], depthwise: ["int8 depthwise"]}
WITHOUT_INT8 = {signal: ["filter"], transpose: ["int8"]}


def least(runs: list[Callable[[], object]], seconds: float) -> Iterator[float]:
    """Of each, in ms."""
    times: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds
    for run in runs:
        run()
    while time.perf_counter() < end or len(times[0]) < 5:
        for run, taken in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return (1e3 * min(taken) for taken in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="a shape")
    parser.add_argument("--only", choices=("products", "filters", "transposes", "depthwise"))
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="int8")
    arguments = parser.parse_args()
    precision = arguments.precision
    cases: list = []
    if arguments.only in (None, "products"):
        cases += [(product, shape, "fp32") for shape in PRODUCTS]
    if arguments.only in (None, "filters"):
        cases += [(signal, (*shape, precision), precision) for shape in FILTERS]
    if arguments.only in (None, "transposes"):
        cases += [(transpose, (*shape, precision), precision) for shape in TRANSPOSES]
    if arguments.only in (None, "depthwise"):
        cases += [(depthwise, shape, "fp32") for shape in DEPTHWISE]
    with tempfile.TemporaryDirectory() as folder:
        for make, shape, kept in cases:
            left_out = (WITHOUT_INT8 if kept == "int8" else WITHOUT).get(make, [])
            plain_plan = runner(make(Path(folder), *shape, False), kept, left_out)
            runs = [plain_plan, runner(make(Path(folder), *shape, True), kept, [])]
            plain, special = least(runs, arguments.seconds)
            text = " x ".join(map(str, shape))
            print(f"{make.__name__:8} {text:30} {plain:9.4f} {special:9.4f} {plain / special:6.2f}")


if __name__ == "__main__":
    main()
