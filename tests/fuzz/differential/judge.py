#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random graphs as `reference` computes them, judged by ONNX Runtime.

    judge.py BUILD [--seed N] [--from N] [--count N] [--nodes N]

All values of a graph are compared. Prints the first that differs by more than its tolerance, with
the node that gives it, how many graphs were judged, and which operator was judged least. Where ONNX
Runtime alone differs, and ONNX's own evaluator computes what Tenon does, it is only counted. Needs
onnxruntime (tests/bench/requirements.txt), which has no kernel for many types: graphs that it does
not take are counted.
"""

import argparse
import collections
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator


def results(path: Path) -> list[numpy.ndarray] | None:
    """What ONNX Runtime computes; None where it does not take the graph."""
    model = onnx.load(path)
    model.ir_version = min(model.ir_version, 10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        given = {
            port.name: numpy.load(path.with_suffix(f".in{i}.npy"))
            for i, port in enumerate(session.get_inputs())
        }
        return session.run(None, given)
    except Exception:  # its errors have no class of their own
        return None


def differs(got: numpy.ndarray, want: numpy.ndarray, slack: numpy.ndarray) -> str:
    """What is wrong with an output, or nothing."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    with numpy.errstate(invalid="ignore"):
        off = numpy.abs(got.astype("f8") - want.astype("f8"))
    wrong = ~((off <= slack) | (got == want)).ravel()
    if not wrong.any():
        return ""
    at = int(numpy.argmax(wrong))
    return (
        f"{int(wrong.sum())} of {wrong.size} elements, the first at {at}: ONNX Runtime "
        f"{got.ravel()[at]}, reference {want.ravel()[at]}, tolerance {slack.ravel()[at]:.3g}"
    )


def attribute(node: onnx.NodeProto, name: str) -> object:
    """What an attribute says, None where the node has none of this name."""
    for one in node.attribute:
        if one.name == name:
            return onnx.helper.get_attribute_value(one)
    return None


def known(node: onnx.NodeProto, values: dict[str, numpy.ndarray]) -> str:
    """Why Tenon means something else than ONNX Runtime here, or nothing."""
    last = values.get(node.input[-1] if node.input else "", numpy.zeros(0))
    if node.op_type.endswith("Window") and attribute(node, "periodic") == 0 and last == 1:
        return "a window of one entry: 1, as in NumPy and PyTorch, instead of 0/0"
    if node.op_type == "AffineGrid" and attribute(node, "align_corners") and 1 in last[2:]:
        return "the corner of an axis of one entry: its middle, as in PyTorch"
    return ""


def values_of(path: Path, model: onnx.ModelProto) -> dict[str, numpy.ndarray]:
    """What is known of a graph's values: constants, inputs, and what `reference` computed."""
    out = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    for kind, ports in (("in", model.graph.input), ("out", model.graph.output)):
        for i, port in enumerate(ports):
            file = path.with_suffix(f".{kind}{i}.npy")
            if file.exists():
                out[port.name] = numpy.load(file)
    return out


def is_upheld(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    values: dict[str, numpy.ndarray],
    name: str,
    slack: numpy.ndarray,
) -> bool:
    """Whether ONNX's own evaluator computes what Tenon does, of this node alone."""
    given = {one: values[one] for one in node.input if one in values}
    kinds = onnx.helper.np_dtype_to_tensor_dtype
    inputs = [
        onnx.helper.make_tensor_value_info(one, kinds(value.dtype), value.shape)
        for one, value in given.items()
    ]
    graph = onnx.helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=name)])
    alone = onnx.helper.make_model(graph, opset_imports=model.opset_import)
    try:
        (got,) = ReferenceEvaluator(alone).run([name], given)
        return not differs(numpy.asarray(got), values[name], slack)
    except Exception:  # it knows less than all of ONNX, and says so in many ways
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=12)
    arguments = parser.parse_args()
    n_graphs = n_taken = n_values = n_found = n_known = n_upheld = 0
    rows: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.build / "bin/fuzz_differential", "--domain", "onnx", "--keep", folder]
        command += ["--seed", str(arguments.seed), "--from", str(arguments.first)]
        command += ["--count", str(arguments.count), "--nodes", str(arguments.nodes)]
        subprocess.run(command, check=False)
        for path in sorted(Path(folder).glob("*.onnx")):
            if path.stem.startswith("found_"):
                continue
            n_graphs += 1
            got = results(path)
            if got is None:
                continue
            n_taken += 1
            rows.update({node.op_type for node in onnx.load(path).graph.node})
            for i, output in enumerate(got):
                slack_path = path.with_suffix(f".slack{i}.npy")
                if not slack_path.exists() or not isinstance(output, numpy.ndarray):
                    continue
                n_values += 1
                want = numpy.load(path.with_suffix(f".out{i}.npy"))
                wrong = differs(output, want, numpy.load(slack_path))
                if not wrong:
                    continue
                model = onnx.load(path)
                name = model.graph.output[i].name
                node = next(node for node in model.graph.node if name in node.output)
                values = values_of(path, model)
                slack = numpy.load(slack_path)
                if known(node, values):
                    n_known += 1
                elif is_upheld(model, node, values, name, slack):
                    n_upheld += 1
                else:
                    n_found += 1
                    print(f"graph {path.stem}: {wrong}\n  {onnx.helper.printable_node(node)}")
                break  # what follows from it differs too
    if rows:
        rarest = min(rows, key=lambda op: rows[op])
        print(f"{len(rows)} operators in graphs that were taken, {rarest} in {rows[rarest]}")
    print(
        f"{n_graphs} graphs, {n_taken} taken, {n_values} values judged, {n_found} graphs differ, "
        f"{n_known} where it is known why, {n_upheld} where ONNX's own evaluator is of our opinion"
    )
    sys.exit(n_found != 0)


if __name__ == "__main__":
    main()
