#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random graphs as `reference` computes them, judged by ONNX Runtime.

    judge.py BUILD [--seed N] [--count N] [--nodes N]

Prints each output that differs by more than its tolerance, and how many graphs were judged. Needs
onnxruntime (tests/bench/requirements.txt), which has no kernel for many types: graphs that it does
not take are counted.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=12)
    arguments = parser.parse_args()
    n_graphs = n_taken = n_outputs = n_found = 0
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.build / "bin/fuzz_differential", "--domain", "onnx", "--keep", folder]
        for name in ("seed", "count", "nodes"):
            command += [f"--{name}", str(getattr(arguments, name))]
        subprocess.run(command, check=False)
        for slack_path in sorted(Path(folder).glob("*.slack")):
            n_graphs += 1
            path = slack_path.with_suffix(".onnx")
            got = results(path)
            if got is None:
                continue
            n_taken += 1
            for i, slack in enumerate(map(float, slack_path.read_text().split())):
                if slack < 0 or not isinstance(got[i], numpy.ndarray):
                    continue
                n_outputs += 1
                want = numpy.load(path.with_suffix(f".out{i}.npy"))
                if got[i].shape == want.shape:
                    difference = numpy.abs(got[i].astype("f8") - want.astype("f8"))
                    if difference.size == 0 or difference.max() <= slack:
                        continue
                n_found += 1
                ops = sorted({node.op_type for node in onnx.load(path).graph.node})
                worst = difference.max() if got[i].shape == want.shape else got[i].shape
                print(f"graph {path.stem} output {i}: {worst}, tolerance {slack}: {' '.join(ops)}")
    print(f"{n_graphs} graphs, {n_taken} taken, {n_outputs} outputs judged, {n_found} differ")


if __name__ == "__main__":
    main()
