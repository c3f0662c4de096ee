# SPDX-License-Identifier: Apache-2.0
"""Quantized operators and short chains beside ONNX Runtime and beside our own float32.

  quantized_operators.py [FAMILY...] [--only REGEX] [--below 0.67] [--seed 0]

FAMILY: convolutions, products, moves, pointwise (quantized_cases.py), chains, stored
(quantized_chains.py); all without one. Inputs and results are integers, so that a case is its
operator alone. All run on one thread and take turns; a figure is the CPU time of the shortest of
many runs. Printed: each case whose time is more than 1/BELOW of ONNX Runtime's for the same file,
or more than that of the same model in float32, and the geometric means of both ratios with their
95 % intervals. Cases below 0.05 ms are left out.
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
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import operators  # noqa: E402
import quantized_cases  # noqa: E402
import quantized_chains  # noqa: E402
import tenon  # noqa: E402

FAMILIES = {
    name: getattr(quantized_cases, name)
    for name in ("convolutions", "products", "moves", "pointwise")
} | quantized_chains.FAMILIES


def times(case: quantized_cases.Case, form: str, random: np.random.Generator, folder: str) -> list:
    """ms of Tenon, of ONNX Runtime, and of Tenon in float32."""
    paths = {one: f"{folder}/{one}.onnx" for one in (form, "f32")}
    for one, path in paths.items():
        Path(path).write_bytes(case.model(one))
    plans = {one: tenon.load(p).compile(backend="onednn", threads=1) for one, p in paths.items()}
    inputs = {one: case.inputs(one, random) for one in paths}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(paths[form], options, ["CPUExecutionProvider"])
    runs = [
        lambda: plans[form](**inputs[form]),
        lambda: session.run(None, inputs[form]),
        lambda: plans["f32"](**inputs["f32"]),
    ]
    for run in runs:
        run()
    return figures.shortest(runs, 3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", nargs="*", choices=[[], *FAMILIES])
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--below", type=float, default=0.67)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random = np.random.default_rng(args.seed)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        cases = [case for name in args.family or FAMILIES for case in FAMILIES[name]()]
        for case in cases:
            for form in case.forms if re.search(args.only, case.name) else ():
                try:
                    row = times(case, form, random, folder)
                except Exception as error:  # what one engine refuses is a figure of its own
                    print(f"{form} {case.name}: {str(error)[:150]}", flush=True)
                    continue
                if max(row[:2]) < operators.LEAST_MS:
                    continue
                rows.append(row)
                ours, theirs, floats = row
                if theirs / ours < args.below or floats < ours:
                    print(
                        f"ONNX Runtime {theirs / ours:5.2f}, float32 {floats / ours:5.2f} of "
                        f"{ours:8.3f} ms: {form} {case.name}",
                        flush=True,
                    )
    for name, at in (("ONNX Runtime", 1), ("float32", 2)):
        mean, low, high = figures.paired_ratio([[r[at]] for r in rows], [[r[0]] for r in rows])
        print(f"{len(rows)} cases: {name} / Tenon {mean:.2f} [{low:.2f}, {high:.2f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
