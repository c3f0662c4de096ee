#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutants that Tenon runs, judged by ONNX's strict shape inference and by ONNX Runtime.

    judge.py BUILD [--seed N] [--count N]

Prints, by operator, how many of the mutants that run are refused by the judges, with one reason.
Needs onnx and onnxruntime (tests/bench/requirements.txt). What only one of the two refuses is
reported apart: ONNX Runtime lacks kernels of types that ONNX allows: NOT_IMPLEMENTED.
"""

import argparse
import collections
import subprocess
import tempfile
from pathlib import Path

import onnx
import onnxruntime


def strict(model: onnx.ModelProto) -> str:
    """Why shape inference refuses the model, or nothing."""
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as refused:  # its errors have no class of their own
        return str(refused).replace("\n", " ")
    return ""


def runtime(model: onnx.ModelProto) -> str:
    """Why ONNX Runtime does not take or run the model, or nothing; "?" where it lacks a kernel."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options)
    except Exception as refused:
        text = str(refused).replace("\n", " ")
        return "?" if "NOT_IMPLEMENTED" in text or "not a registered" in text else text
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5000)
    arguments = parser.parse_args()
    refused: dict[str, list[str]] = collections.defaultdict(list)
    n_judged = 0
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.build / "bin/fuzz_mutants", "--seed", str(arguments.seed)]
        command += ["--count", str(arguments.count), "--keep", folder]
        subprocess.run(command, check=False)
        for path in sorted(Path(folder).glob("*_ran.onnx")):
            model = onnx.load(path)
            nodes = [node for node in model.graph.node if node.domain in ("", "ai.onnx.ml")]
            if len(nodes) != len(model.graph.node):
                continue
            n_judged += 1
            model.ir_version = min(model.ir_version, 10)
            by_onnx, by_runtime = strict(model), runtime(model)
            if by_onnx and by_runtime:
                name = path.stem.split("_")[0]
                refused[nodes[-1].op_type].append(f"mutant {name}: {by_onnx[-160:]}")
    for op, reasons in sorted(refused.items()):
        print(f"{op}: {len(reasons)} ({reasons[0]})")
    print(f"{n_judged} judged, {sum(map(len, refused.values()))} refused by both judges")


if __name__ == "__main__":
    main()
