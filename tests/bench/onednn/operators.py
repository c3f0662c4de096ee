# SPDX-License-Identifier: Apache-2.0
"""Operators alone, over many shapes and axes, beside ONNX Runtime: where an operator falls off.

  operators.py [FAMILY...] [--only REGEX] [--below 0.8] [--seed 0]

FAMILY: pointwise, rows, moves, products, windows, found, convolutions, kinds (operator_cases.py),
arithmetic, casts, integer_rows, integer_moves, integer_found (integer_cases.py); all without one.
Both engines run on one thread and take turns; a figure is the CPU time of the shortest of many
runs, so that other programs matter little. Printed: each case whose time is more than 1/BELOW of
ONNX Runtime's, then the geometric mean of all ratios with its 95 % interval over the cases. Times
have the copy of results to NumPy and the call in them: cases below 0.05 ms are left out.
"""

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parents[2] / "build/release/python"))
os.environ["OMP_NUM_THREADS"] = "1"
import figures  # noqa: E402
import integer_cases  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import operator_cases  # noqa: E402
import tenon  # noqa: E402

LEAST_MS = 0.05
FAMILIES = operator_cases.FAMILIES | integer_cases.FAMILIES


def compare(case: operator_cases.Case, random: np.random.Generator, path: str) -> list[float]:
    """ms of Tenon and of ONNX Runtime."""
    Path(path).write_bytes(case.model())
    inputs = case.inputs(random)
    plan = tenon.load(path).compile(backend="onednn", threads=1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    runs = [lambda: plan(**inputs), lambda: session.run(None, inputs)]
    for run in runs:
        run()
    return figures.shortest(runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", nargs="*", choices=[[], *FAMILIES])
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--below", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random = np.random.default_rng(args.seed)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for family in args.family or FAMILIES:
            for case in FAMILIES[family]():
                if not re.search(args.only, case.name()):
                    continue
                try:
                    a, b = compare(case, random, f"{folder}/case.onnx")
                except Exception as error:  # what one engine refuses
                    print(f"{case.name()}: {str(error)[:150]}", flush=True)
                    continue
                if max(a, b) < LEAST_MS:
                    continue
                ours.append([a])
                theirs.append([b])
                if b / a < args.below:
                    print(f"{b / a:5.2f} of {b:8.3f} ms: {case.name()}", flush=True)
    mean, low, high = figures.paired_ratio(theirs, ours)
    print(f"{len(ours)} cases: ONNX Runtime / Tenon {mean:.2f} [{low:.2f}, {high:.2f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
