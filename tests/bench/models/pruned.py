# SPDX-License-Identifier: Apache-2.0
"""Pruned classifiers beside their masked forms, one line for a model and ratio.

  python tests/bench/models/pruned.py [--only 'resnet50*,light_*'] [--threads 2]

difference: the largest one between the outputs of the model whose channels were removed and of
that whose channels were masked, over the range of the output. pass: seconds of the pass over the
graph. A model runs in a process of its own. Exit code 1 when one differs by more than 1e-5, fails,
or says nothing because its output is constant.
"""

import argparse
import fnmatch
import json
import math
import subprocess
import sys
import time

import rows

RATIOS = (0.3, 0.6)
BOUND = 1e-5
NAMES = ("unet","gpt2","minilm","ppocr_cls", "magika", "surfaces_classifier", "inception_v3")
CLASSIFIERS = [
    row
    for row in rows.ROWS
    if row.name.startswith("light_") or row.name.split()[0] in (*NAMES, *rows.VISION)
]
HEAD = f"{'model':<26}{'ratio':>6}{'groups':>8}{'barriers':>9}{'weights':>9}{'MACs':>7}"
HEAD += f"{'pass':>7}{'difference':>12}"


def difference(got, wanted) -> float:
    """Over the range of what is wanted; NaN where that is constant, or where a NaN is."""
    import numpy as np

    span = float(np.ptp(wanted))
    return float(np.abs(got - wanted).max()) / span if span else float("nan")


def outputs(row: rows.Row, model, threads: int) -> list:
    import check
    import numpy as np

    found = model.compile(backend="onednn", threads=threads).run(check.draw(row, model, 0))
    return [np.asarray(one, np.float64) for one in found]


def examine(row: rows.Row, threads: int) -> list[dict]:
    import tenon

    model = tenon.load(row.file())
    found = []
    for ratio in RATIOS:
        masked = model.apply("pruner.structured", ratio=ratio, apply="mask")
        began = time.perf_counter()
        pruned = model.apply("pruner.structured", ratio=ratio)
        seconds = time.perf_counter() - began
        pairs = zip(outputs(row, pruned, threads), outputs(row, masked, threads))
        differences = [difference(got, wanted) for got, wanted in pairs]
        report = pruned.report
        found.append(
            {
                "ratio": ratio,
                "groups": len(report["groups"]),
                "barriers": len(report["barriers"]),
                "weights": report["parameters"]["ratio"],
                "MACs": report["macs"]["ratio"] if report["macs"] else math.nan,
                "pass": seconds,
                "difference": math.nan if any(map(math.isnan, differences)) else max(differences),
            }
        )
    return found


def one(row: rows.Row, threads: int) -> list[dict] | str:
    """What was found, or why nothing was; a crash is an answer."""
    command = [sys.executable, __file__, "--row", row.name, "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return last if "nothing to prune" in last else f"exit code {done.returncode}: {last}"


def line(name: str, found: dict) -> str:
    text = f"{name:<26}{found['ratio']:>6}{found['groups']:>8}{found['barriers']:>9}"
    text += f"{found['weights']:>9.3f}{found['MACs']:>7.3f}{found['pass']:>7.2f}"
    return text + f"{found['difference']:>12.1e}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="pruned", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="patterns of names, by commas")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.row:
        row = next(row for row in CLASSIFIERS if row.name == args.row)
        print(json.dumps(examine(row, args.threads)))
        return 0
    print(HEAD)
    wrong = 0
    for row in CLASSIFIERS:
        if not any(fnmatch.fnmatch(row.name, pattern) for pattern in args.only.split(",")):
            continue
        found = one(row, args.threads)
        if isinstance(found, str):
            print(f"{row.name:<26}{found}", flush=True)
            wrong += found.startswith("exit code")
            continue
        for each in found:
            bad = not each["difference"] <= BOUND
            wrong += bad
            note = "  out of bounds" if bad else "  nothing goes" if each["weights"] == 1 else ""
            print(line(row.name, each) + note, flush=True)
    print(f"{wrong} out of bounds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
