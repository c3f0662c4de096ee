# SPDX-License-Identifier: Apache-2.0
"""Entropy calibration: Tenon beside ONNX Runtime, seconds and peak memory, at two sizes.

  calibration.py MODEL DATA.npz [--samples 32,64] [--rounds 3] [--batch 1] [--threads 1]
                 [--build build/release] [--python .venv-bench/bin/python]
                 [--only tenon,onnxruntime] [--json]

One process per contestant, alternating: median seconds, least processor time. Tenon's
time is that of the whole pass `quantizer.static` (calibration, weights, the new graph), ONNX
Runtime's that of its calibrator alone, which keeps every value of every sample until it has seen
them all. With several threads on a busy machine, both measure how long threads wait.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def calibrate_tenon(args) -> dict:
    """One calibration in this process: the pass over a folded model."""
    import tenon as tn

    tn.configure(threads=args.threads)
    model = tn.load(args.model).apply("fusion.default")
    data = tn.data.npz(args.data)
    begin, cpu = time.perf_counter(), time.process_time()
    model.apply(
        "quantizer.static",
        data=data,
        observer="entropy",
        samples=int(args.samples),
        batch=args.batch,
        skip=[],
    )
    return {
        "contestant": "tenon",
        "samples": int(args.samples),
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - cpu,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def one(command: list[str], args) -> dict:
    path = os.pathsep.join([str(args.build / "python"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads), "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no answer"])[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def commands(args) -> dict[str, list[str]]:
    tail = ["--batch", str(args.batch), "--threads", str(args.threads)]
    tenon = [sys.executable, str(HERE / "calibration.py"), args.model, args.data, "--inside"]
    peer = [args.python, str(HERE / "ort_calibration.py"), args.model, args.data]
    known = {"tenon": [*tenon, *tail], "onnxruntime": [*peer, *tail]}
    return {name: known[name] for name in args.only.split(",")}


def measure(args) -> list[dict]:
    sizes = [int(size) for size in args.samples.split(",")]
    rounds: dict[tuple[str, int], list[dict]] = {}
    for _ in range(args.rounds):
        for size in sizes:
            for name, command in commands(args).items():
                report = one([*command, "--samples", str(size)], args)
                rounds.setdefault((name, size), []).append(report)
    return [
        {
            "contestant": name,
            "samples": size,
            "seconds": statistics.median(each["seconds"] for each in all_),
            "cpu_seconds": min(each["cpu_seconds"] for each in all_),
            "peak_rss_mb": min(each["peak_rss_mb"] for each in all_),
        }
        for (name, size), all_ in rounds.items()
    ]


def show(rows: list[dict]) -> None:
    print(f"{'contestant':14}{'samples':>8}{'seconds':>10}{'cpu s':>10}{'peak MB':>10}")
    for row in sorted(rows, key=lambda row: (row["samples"], row["contestant"])):
        print(
            f"{row['contestant']:14}{row['samples']:8}{row['seconds']:10.2f}"
            f"{row['cpu_seconds']:10.2f}{row['peak_rss_mb']:10.1f}"
        )
    for name in dict.fromkeys(row["contestant"] for row in rows):
        own = sorted((r for r in rows if r["contestant"] == name), key=lambda r: r["samples"])
        if len(own) > 1:
            growth = own[-1]["peak_rss_mb"] - own[0]["peak_rss_mb"]
            print(f"{name}: {growth:+.1f} MB for {own[-1]['samples'] - own[0]['samples']} samples")


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="calibration.py", description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--samples", default="32,64", help="one size or several")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="tenon,onnxruntime")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--python", default=str(ROOT / ".venv-bench/bin/python"), help="the peer's")
    parser.add_argument("--inside", action="store_true", help="measure Tenon here, in this process")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    try:
        if args.inside:
            print(json.dumps(calibrate_tenon(args)))
            return 0
        rows = measure(args)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        print(f"calibration: {error}", file=sys.stderr)
        return 1
    print(json.dumps(rows)) if args.json else show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
