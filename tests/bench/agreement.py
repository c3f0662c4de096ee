# SPDX-License-Identifier: Apache-2.0
"""A quantized model in Tenon and in ONNX Runtime: node by node, and decision by decision.

  agreement.py QUANTIZED --data FILE.npz [--rows 64] [--output 0] [--json]

Needs both `tenon` and `onnxruntime` importable. ONNX Runtime runs with its optimisations off.
Node by node: every product with 8-bit inputs, and what follows it up to the next QuantizeLinear,
is cut out and fed the values that ONNX Runtime computed; results may differ by one step of that
QuantizeLinear (of 1/127 of the largest value where the result stays in float). Then the same up to
the QuantizeLinear behind that, where a residual or an activation stands between the two: there too
by one step, but where the first rounding was a tie, of which there may be few.
Decisions: the whole model over the data; the index of the largest value along the last axis of an
output (MiniLM with its probe: --output 1).
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import peer_rows
import tenon

TIES = 1e-3  # share of results that may be further away because they were a tie before
PRODUCTS = {"Conv", "ConvTranspose", "MatMul", "Gemm"}
STEPS = 1.0


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


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

    def goes_on(self, value: str) -> bool:
        """Whether codes are dequantized for one pointwise node alone."""
        for op in ("DequantizeLinear", None):
            readers = self.readers.get(value, [])
            if value in self.outputs or len(readers) != 1:
                return False
            if op is None:
                return readers[0].op_type not in PRODUCTS | {"QuantizeLinear"}
            if readers[0].op_type != op:
                return False
            value = readers[0].output[0]
        return False

    def region(self, node, roundings: int = 1) -> tuple[list[str], str]:
        """From a product to a QuantizeLinear behind it: its inputs and its one result."""
        inputs = [self.source(name) for name in node.input if not self.constant(name)]
        value = node.output[0]
        while value not in self.outputs and len(self.readers.get(value, [])) == 1:
            reader = self.readers[value][0]
            if reader.op_type in PRODUCTS or len(reader.output) != 1:
                break
            others = [n for n in reader.input if n != value and not self.constant(n)]
            inputs += [self.source(name) for name in others]
            value = reader.output[0]
            if reader.op_type == "QuantizeLinear":
                roundings -= 1
                if roundings == 0 or not self.goes_on(value):
                    break
        return list(dict.fromkeys(inputs)), value


def in_steps(ours: np.ndarray, theirs: np.ndarray, ties: float = 0) -> float:
    """The furthest, but for a share of `ties`."""
    if np.issubdtype(theirs.dtype, np.integer):
        far = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
        return float(np.quantile(far, 1 - ties, method="higher")) if far.size else 0.0
    step = max(float(np.abs(theirs).max(initial=0)) / 127, 1e-12)
    return float(np.abs(ours - theirs).max(initial=0)) / step


def recorded(graph: Graph, names: set[str], feeds: dict) -> dict[str, np.ndarray]:
    """What ONNX Runtime computes for inner values."""
    tapped = onnx.ModelProto()
    tapped.CopyFrom(graph.model)
    wanted = sorted(name for name in names if name not in feeds and name not in graph.outputs)
    known = {value.name: value for value in graph.model.graph.value_info}
    tapped.graph.output.extend(known[name] for name in wanted)
    session = session_of(tapped)
    asked = wanted + sorted(graph.outputs)
    return dict(zip(asked, session.run(asked, feeds), strict=True)) | feeds


def run_part(part: onnx.ModelProto, fed: dict, backend: str) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "part.onnx")
        onnx.save(part, path)
        return np.asarray(tenon.load(path).compile(backend=backend)(**fed)[0])


def nodes(model: onnx.ModelProto, feeds: dict, backend: str) -> list[dict]:
    graph = Graph(model)
    products = [
        node
        for node in model.graph.node
        if node.op_type in PRODUCTS and graph.quantized(node.input[0])
    ]
    first = [(*graph.region(node), 0.0) for node in products]
    behind = [(*graph.region(node, 2), TIES) for node in products]
    ends = {result for _, result, _ in first}
    regions = first + [region for region in behind if region[1] not in ends]
    names = {name for inputs, result, _ in regions for name in [*inputs, result]}
    values = recorded(graph, names, feeds)
    extractor = onnx.utils.Extractor(graph.model)
    rows = []
    for inputs, result, ties in regions:
        part = extractor.extract_model(inputs, [result])
        fed = {name: values[name] for name in inputs}
        (theirs,) = session_of(part).run([result], fed)
        rows.append({"node": result, "steps": in_steps(run_part(part, fed, backend), theirs, ties)})
    return rows


def decisions(args, model: onnx.ModelProto, rows) -> tuple[int, int]:
    """How many agree, of how many."""
    session = session_of(model)
    plan = tenon.load(args.model).compile(backend=args.backend)
    ours, theirs = [], []
    while (feeds := rows.get_next()) is not None:
        theirs.append(session.run(None, feeds)[args.output])
        ours.append(np.asarray(plan(**feeds)[args.output]))
    same = np.concatenate(ours).argmax(-1) == np.concatenate(theirs).argmax(-1)
    return int(same.sum()), same.size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--data", required=True)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--output", type=int, default=0, help="place of the one that decides")
    parser.add_argument("--backend", default="onednn")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    model = onnx.load(args.model)
    names = peer_rows.input_names(args.model)
    first = peer_rows.Rows(args.data, names, args.batch, args.batch).get_next()
    parts = nodes(model, first, args.backend)
    rows = peer_rows.Rows(args.data, names, args.rows, args.batch)
    agreed, total = decisions(args, model, rows)
    worst = sorted(parts, key=lambda row: -row["steps"])[:5]
    within = sum(row["steps"] <= STEPS for row in parts)
    if args.json:
        print(json.dumps({"nodes": parts, "agreed": agreed, "decisions": total}))
    else:
        print(f"products within one step: {within} of {len(parts)}; the furthest:")
        for row in worst:
            print(f"  {row['steps']:8.3f} steps  {row['node']}")
        print(f"decisions that agree: {agreed} of {total} ({agreed / max(total, 1):.4f})")
    return 0 if within == len(parts) and agreed >= 0.99 * total else 1


if __name__ == "__main__":
    sys.exit(main())
