# SPDX-License-Identifier: Apache-2.0
"""Models whose weights are mostly zeros, with `sparse=off` and with what the backend chooses.

.venv/bin/python tests/bench/onednn/sparse.py MODEL.onnx[:NAME=AxB[,...]] ... [--zeros 0.9 0.8]
    [--int8 DATA.npz]

All constant matrices and 1x1 kernels lose that share of their weights, the smallest first (whole
blocks with --block 4: so many outputs of one input; with --fours: of four inputs to one output).
Plans run in turns; a row has the medians in ms, how many times faster the model is with its 95 %
interval, and how many layers are sparse. --int8: the rival is the pruned model in 8 bits
(quantizer.static, ranges by DATA), dense, and both precisions with zeros left out stand beside it.
"""

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import tenon
from onnx import numpy_helper

LEAST = 4096  # numbers of a weight that is pruned


def pruned(weight: np.ndarray, transposed: bool, zeros: float, block: int) -> np.ndarray:
    """weight: [k, n], or [n, k, ...] transposed. block: of outputs, or negative: of inputs."""
    if block < 0:
        return pruned(weight.reshape(weight.shape[0], -1), not transposed, zeros, -block).reshape(
            weight.shape
        )
    flat = weight.reshape(weight.shape[0], -1)
    matrix = flat if transposed else flat.T  # [n, k]
    rows = -(-matrix.shape[0] // block)
    padded = np.zeros((rows * block, matrix.shape[1]), weight.dtype)
    padded[: matrix.shape[0]] = np.abs(matrix)
    score = padded.reshape(rows, block, -1).sum(1)
    stays = np.repeat(score > np.quantile(score, zeros), block, 0)[: matrix.shape[0]]
    made = matrix * stays
    return np.ascontiguousarray(made if transposed else made.T).reshape(weight.shape)


def prune(model: onnx.ModelProto, zeros: float, block: int) -> None:
    weights = {w.name: w for w in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type not in ("MatMul", "Gemm", "Conv") or node.input[1] not in weights:
            continue
        proto = weights[node.input[1]]
        w = numpy_helper.to_array(proto)
        is_conv = node.op_type == "Conv"
        if w.dtype != np.float32 or w.size < LEAST or w.ndim != (4 if is_conv else 2):
            continue
        if is_conv and w.shape[2:] != (1, 1):
            continue
        transposed = is_conv or any(a.name == "transB" and a.i for a in node.attribute)
        proto.CopyFrom(numpy_helper.from_array(pruned(w, transposed, zeros, block), proto.name))


def inputs_of(model: onnx.ModelProto, shapes: dict[str, list[int]]) -> list[np.ndarray]:
    known = {w.name for w in model.graph.initializer}
    made = []
    for value in model.graph.input:
        if value.name in known:
            continue
        dims = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        dims = shapes.get(value.name, dims)
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        made.append(np.ones(dims, kind))
    return made


def n_sparse(plan) -> tuple[int, int]:
    layers = [layer for part in plan.describe()["partitions"] for layer in part["layers"]]
    return sum("sparse" in layer["kernel"] for layer in layers), len(layers)


def turns(plans: list, inputs: list[np.ndarray], rounds: int) -> list[list[float]]:
    """Milliseconds of each plan."""
    times: list[list[float]] = [[] for _ in plans]
    for turn in range(rounds + 3):
        for plan, list_ in zip(plans, times, strict=True):
            begin = time.perf_counter()
            plan(*inputs)
            if turn >= 3:
                list_.append((time.perf_counter() - begin) * 1e3)
    return times


def row(label: str, dense: list[float], sparse: list[float], plan) -> str:
    logs = sorted(math.log(a / b) for a, b in zip(dense, sparse, strict=True))
    logs = logs[len(logs) // 10 : len(logs) - len(logs) // 10]
    mean, half = statistics.fmean(logs), 2 * statistics.stdev(logs) / math.sqrt(len(logs))
    count, all_ = n_sparse(plan)
    return (
        f"{label:12} {statistics.median(dense):8.2f} {statistics.median(sparse):8.2f}  "
        f"{math.exp(mean):5.2f}x [{math.exp(mean - half):.2f}, {math.exp(mean + half):.2f}]  "
        f"{count} of {all_}"
    )


def compare(path: Path, inputs: list[np.ndarray], arguments) -> list[str]:
    def compiled(model, precision: str, use: str):
        options = {"precision": precision, "threads": arguments.threads, "sparse": use}
        return model.compile(backend="onednn", **options)

    model = tenon.load(str(path))
    sparse = compiled(model, arguments.precision, arguments.use)
    if not arguments.int8:
        plans = [compiled(model, arguments.precision, "off"), sparse]
        return [row(arguments.precision, *turns(plans, inputs, arguments.rounds), sparse)]
    static = {"data": arguments.int8, "observer": "minmax", "samples": 32}
    small = model.apply("fusion.default").apply("quantizer.static", **static)
    plans = [compiled(small, "fp32", use) for use in ("off", arguments.use)] + [sparse]
    dense, *others = turns(plans, inputs, arguments.rounds)
    labels = ["int8", arguments.precision]
    return [row(*one) for one in zip(labels, [dense] * 2, others, plans[1:], strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--zeros", nargs="+", type=float, default=[0.9, 0.8])
    parser.add_argument("--block", type=int, default=1)
    parser.add_argument("--fours", action="store_true", help="of inputs to one output")
    parser.add_argument("--int8", help="data to calibrate with: the rival is dense int8")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--use", default="auto", choices=["auto", "all"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    block = -4 if arguments.fours else arguments.block
    shape = "1x4" if arguments.fours else f"{block}x1"
    print(f"{'model':20} zeros  block {'sparse in':12}    dense   sparse")
    for each in arguments.models:
        name, _, stated = each.partition(":")
        shapes = {
            key: [int(d) for d in dims.split("x")]
            for key, _, dims in (s.partition("=") for s in filter(None, stated.split(",")))
        }
        for zeros in arguments.zeros:
            model = onnx.load(name)
            prune(model, zeros, block)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.onnx"
                onnx.save(model, path)
                for text in compare(path, inputs_of(model, shapes), arguments):
                    print(f"{Path(name).name:20} {zeros:5.2f}  {shape:5} {text}", flush=True)


if __name__ == "__main__":
    main()
