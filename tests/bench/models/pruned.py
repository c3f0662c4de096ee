# SPDX-License-Identifier: Apache-2.0
"""Pruned networks beside their masked forms, one line for a model and ratio.

  python tests/bench/models/pruned.py [--only 'resnet50*,light_*'] [--threads 2] [--peer]
      [--rounds 7]

weights, MACs: the shares that went. prunable: the share of the model's MACs that lies in nodes that
channels pass through, and `of it` what went of those. time: of the pruned model over that of the
model, the median of pairs in turns (with --rounds). pass: seconds of the pass over the graph.
difference: the largest one between the outputs of the model whose channels were removed and of
that whose channels were masked, over the range of the output. --peer: what Torch-Pruning takes out
of the same network at the same ratio, by its own counts, and the time of its file in our runtime.
A model runs in a process of its own. Exit code 1 when one differs by more than 1e-5, fails, says
nothing because its output is constant, or loses less of what is prunable than LEAST.
"""

import argparse
import fnmatch
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import rows

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from figures import timed  # noqa: E402

RATIOS = (0.3, 0.6)
LEAST = {0.3: 0.25, 0.6: 0.5}
BOUND = 1e-5
NAMES = ("ppocr_cls", "magika", "surfaces_classifier", "inception_v3", "minilm")
SEQUENCES = ("gpt2", "lstm", "unet")
MODELS = [
    row
    for row in rows.ROWS
    if row.name.startswith("light_") or row.name.split()[0] in (*NAMES, *SEQUENCES, *rows.VISION)
]
COLUMNS = (
    ("ratio", 6, "g"),
    ("groups", 8, "d"),
    ("barriers", 10, "d"),
    ("weights", 9, ".3f"),
    ("MACs", 7, ".3f"),
    ("prunable", 10, ".3f"),
    ("of it", 7, ".3f"),
    ("time", 7, ".2f"),
    ("pass", 7, ".2f"),
    ("difference", 12, ".1e"),
)
SECONDS = 0.15


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


def time_ratio(row: rows.Row, model, smaller, args) -> float:
    """Of the smaller over the model; NaN without rounds."""
    import check

    if not args.rounds:
        return math.nan
    runs = [
        (one.compile(backend="onednn", threads=args.threads).run, check.draw(row, one, 0))
        for one in (model, smaller)
    ]
    pairs = [[timed(run, inputs, SECONDS) for run, inputs in runs] for _ in range(args.rounds + 1)][
        1:
    ]
    return statistics.median(after / before for before, after in pairs)


def examine(row: rows.Row, args) -> list[dict]:
    import tenon

    model = tenon.load(row.file()).apply("fusion.default")
    found = []
    for ratio in RATIOS:
        masked = model.apply("pruner.structured", ratio=ratio, apply="mask")
        began = time.perf_counter()
        pruned = model.apply("pruner.structured", ratio=ratio)
        seconds = time.perf_counter() - began
        pairs = zip(outputs(row, pruned, args.threads), outputs(row, masked, args.threads))
        differences = [difference(got, wanted) for got, wanted in pairs]
        report = pruned.report
        macs, prunable = report["macs"], report["prunable_macs"]
        gone = macs["before"] - macs["after"] if macs else math.nan
        found.append(
            {
                "ratio": ratio,
                "groups": len(report["groups"]),
                "barriers": len(report["barriers"]),
                "weights": 1 - report["parameters"]["ratio"],
                "MACs": gone / macs["before"] if macs else math.nan,
                "prunable": prunable / macs["before"] if macs else math.nan,
                "of it": gone / prunable if prunable else math.nan,
                "time": time_ratio(row, model, pruned, args),
                "pass": seconds,
                "difference": math.nan if any(map(math.isnan, differences)) else max(differences),
            }
        )
    return found


def examine_peer(row: rows.Row, args) -> list[dict]:
    import pruned_peer
    import tenon

    model = tenon.load(row.file()).apply("fusion.default")
    found = []
    for ratio in RATIOS:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "pruned.onnx"
            left = pruned_peer.pruned(row.name.split()[0], ratio, path)
            smaller = tenon.load(path).apply("fusion.default")
            pace = time_ratio(row, model, smaller, args)
        shares = {key: 1 - left[key] for key in ("weights", "MACs")}
        found.append({"ratio": ratio, **shares, "time": pace})
    return found


def one(row: rows.Row, args, *more: str) -> list[dict] | str:
    """What was found, or why nothing was; a crash is an answer."""
    command = [sys.executable, __file__, "--row", row.name, "--threads", str(args.threads)]
    command += ["--rounds", str(args.rounds), *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return last if "nothing to prune" in last else f"exit code {done.returncode}: {last}"


def line(name: str, found: dict) -> str:
    text = f"{name:<26}"
    for key, width, form in COLUMNS:
        value = found.get(key)
        text += f"{'-':>{width}}" if value is None else f"{value:>{width}{form}}"
    return text


def verdict(found: dict) -> str:
    if not found["difference"] <= BOUND:
        return "  out of bounds"
    if not found["of it"] >= LEAST[found["ratio"]]:
        return "  too little"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="pruned", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="patterns of names, by commas")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=0, help="pairs of runs that are timed")
    parser.add_argument("--peer", action="store_true", help="Torch-Pruning on exported networks")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.row:
        row = next(row for row in MODELS if row.name == args.row)
        print(json.dumps((examine_peer if args.peer else examine)(row, args)))
        return 0
    print(f"{'model':<26}" + "".join(f"{key:>{width}}" for key, width, _ in COLUMNS))
    wrong = 0
    for row in MODELS:
        if not any(fnmatch.fnmatch(row.name, pattern) for pattern in args.only.split(",")):
            continue
        found = one(row, args)
        if isinstance(found, str):
            print(f"{row.name:<26}{found}", flush=True)
            wrong += found.startswith("exit code")
        else:
            for each in found:
                wrong += bool(verdict(each))
                print(line(row.name, each) + verdict(each), flush=True)
        if args.peer and row.name.endswith(" script"):
            theirs = one(row, args, "--peer")
            shown = (
                [theirs] if isinstance(theirs, str) else [line("", each)[26:] for each in theirs]
            )
            for text in shown:
                print(f"{'  Torch-Pruning':<26}{text}", flush=True)
    print(f"{wrong} out of bounds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
