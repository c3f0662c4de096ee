# SPDX-License-Identifier: Apache-2.0
"""Over many shapes: a product that computes half, and a filter that runs as many channels.

PYTHONPATH=build/release/python .venv/bin/python tests/bench/onednn/swept.py [--seconds S]

Each line is a shape, the time of the plain implementation and of the special one in ms, and their
ratio; over 1 the special one is faster. The plain product is that of two different matrices, the
plain filter has one number of padding: both keep the special implementation away and change
nothing else. Rounds of both alternate, and the least time of each counts.
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
    (length, taps, stride)
    for length in (1000, 16000, 160000)
    for taps in (32, 48, 64, 128, 256, 512)
    for stride in (1, 2, 4, 8)
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


def signal(folder: Path, length: int, taps: int, stride: int, special: bool) -> Path:
    """A convolution of one signal with one filter in int8."""
    padding = 0 if special else 1
    out = (length + padding - taps) // stride + 1
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["w"], axis=0),
        helper.make_node("Conv", ["d", "w"], ["c"], strides=[stride], pads=[padding, 0]),
        helper.make_node("QuantizeLinear", ["c", "os", "z"], ["y"]),
    ]
    constants = [
        constant("s", np.float32(0.02)),
        constant("z", np.uint8(128)),
        constant("wq", np.random.default_rng(0).integers(-127, 127, (1, 1, taps)).astype("i1")),
        constant("ws", np.full(1, 0.002, "f")),
        constant("wz", np.zeros(1, "i1")),
        constant("os", np.float32(0.1)),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, length))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, (1, 1, out))]
    name = f"signal{special:d}"
    return saved(folder, helper.make_graph(nodes, name, inputs, outputs, constants))


def runner(path: Path) -> Callable[[], object]:
    plan = tn.load(str(path)).compile(backend="onednn", threads=2)
    random = np.random.default_rng(1)
    shapes = [
        [d.dim_value for d in port.type.tensor_type.shape.dim]
        for port in onnx.load(path).graph.input
    ]
    arrays = [random.standard_normal(shape).astype("f") for shape in shapes]
    return lambda: plan(*arrays)


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
    parser.add_argument("--only", choices=("products", "filters"))
    arguments = parser.parse_args()
    cases = []
    if arguments.only != "filters":
        cases += [(product, shape) for shape in PRODUCTS]
    if arguments.only != "products":
        cases += [(signal, shape) for shape in FILTERS]
    with tempfile.TemporaryDirectory() as folder:
        for make, shape in cases:
            runs = [runner(make(Path(folder), *shape, special)) for special in (False, True)]
            plain, special = least(runs, arguments.seconds)
            text = " x ".join(map(str, shape))
            print(f"{make.__name__:8} {text:18} {plain:9.3f} {special:9.3f} {plain / special:6.2f}")


if __name__ == "__main__":
    main()
