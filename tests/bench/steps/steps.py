# SPDX-License-Identifier: Apache-2.0
"""Training steps of Tenon and PyTorch: alternating processes, medians, ratios, one table.

  steps.py [mnist resnet18 resnet50 minilm] [--precision fp32 bf16] [--rounds 3] [--threads 2]
           [--engines tenon,eager,channels_last,compile] [--seconds 3] [--amp] [--json]

The ratio is the fastest PyTorch's median over Tenon's: above 1, Tenon is faster. Memory is the
peak of the process less what it held after its imports; its ratio is to eager PyTorch. First s is
from the start of the process to the end of its first step. torch.compile begins with an empty cache
on disk, as a network does that this machine has not trained before; "again s" is the same of the
later rounds, which find the cache filled. Tenon keeps nothing on disk.

With --amp Tenon's step in bf16 stands beside its own in fp32: the two alternate in each round, and
the ratios are fp32 over bf16, of the medians and of the shortest steps.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from versus import cpu  # noqa: E402

ROOT = HERE.parents[2]
ENGINES = ("tenon", "eager", "channels_last", "compile", "compile_channels_last")


def play(network: str, precision: str, engine: str, cache: str, args) -> dict:
    command = [args.python, str(HERE / "contestant.py"), network, "--engine", engine]
    command += ["--precision", precision, "--threads", str(args.threads)]
    command += ["--seconds", str(args.seconds)]
    path = os.pathsep.join([str(args.build / "python"), os.environ.get("PYTHONPATH", "")])
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=args.timeout,
            env={**os.environ, "PYTHONPATH": path, "TORCHINDUCTOR_CACHE_DIR": cache},
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no answer within {args.timeout:g} s"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def middle(rounds: list[dict], key: str) -> float:
    return statistics.median(each[key] for each in rounds)


def figures(engine: str, rounds: list[dict]) -> dict:
    keys = ("median_ms", "min_ms", "peak_mb")
    made = {"engine": engine, "losses": rounds[0]["losses"]} | {k: middle(rounds, k) for k in keys}
    made["first_s"] = rounds[0]["first_s"]
    made["again_s"] = middle(rounds[1:], "first_s") if len(rounds) > 1 else None
    return made


def play_rounds(network: str, precision: str, args):
    rounds: dict[str, list[dict]] = {engine: [] for engine in args.engines.split(",")}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as caches:
        for _ in range(args.rounds):
            for engine in rounds:
                if engine in failed:
                    continue
                made = play(network, precision, engine, os.path.join(caches, engine), args)
                if "failed" in made:
                    failed[engine] = made["failed"]
                else:
                    rounds[engine].append(made)
    return rounds, failed


def compare(network: str, precision: str, args) -> dict:
    rounds, failed = play_rounds(network, precision, args)
    rows = [figures(engine, found) for engine, found in rounds.items() if found]
    result = {"network": network, "precision": precision, "figures": rows, "failed": failed}
    ours = next((row for row in rows if row["engine"] == "tenon"), None)
    peers = [row for row in rows if row["engine"] != "tenon"]
    if ours and peers:
        best = min(peers, key=lambda row: row["median_ms"])
        result["ratio"] = best["median_ms"] / ours["median_ms"]
        result["best_peer"] = best["engine"]
        compiled = [row["first_s"] for row in peers if "compile" in row["engine"]]
        if compiled:
            result["first_ratio"] = min(compiled) / ours["first_s"]
        eager = next((row for row in peers if row["engine"] == "eager"), None)
        if eager:
            result["memory_ratio"] = ours["peak_mb"] / eager["peak_mb"]
    return result


def own_ratios(rounds: dict[str, list[dict]]) -> dict:
    """Of fp32 over bf16: the middle of the rounds, each round, and the shortest steps of all."""
    pairs = list(zip(rounds["fp32"], rounds["bf16"]))
    least = {name: min(each["min_ms"] for each in found) for name, found in rounds.items()}
    return {
        "ratio": middle(rounds["fp32"], "median_ms") / middle(rounds["bf16"], "median_ms"),
        "ratio_of_minima": least["fp32"] / least["bf16"],
        "rounds": [slow["median_ms"] / fast["median_ms"] for slow, fast in pairs],
    }


def compare_own(network: str, args) -> dict:
    rounds: dict[str, list[dict]] = {"fp32": [], "bf16": []}
    result = {"network": network, "precision": "amp", "failed": {}}
    for _ in range(args.rounds):
        for precision, found in rounds.items():
            made = play(network, precision, "tenon", "", args)
            if "failed" in made:
                return result | {"figures": [], "failed": {f"tenon {precision}": made["failed"]}}
            found.append(made)
    rows = [figures(f"tenon {name}", found) for name, found in rounds.items()]
    return result | {"figures": rows, "own": own_ratios(rounds)}


def show(result: dict) -> None:
    print(f"\n{result['network']} {result['precision']}")
    print(f"{'engine':22}{'median ms':>11}{'min ms':>10}{'first s':>9}", end="")
    print(f"{'again s':>9}{'peak MB':>9}  losses")
    for row in sorted(result["figures"], key=lambda row: row["median_ms"]):
        losses = " ".join(f"{loss:.4f}" for loss in row["losses"])
        again = "-" if row["again_s"] is None else f"{row['again_s']:.2f}"
        print(
            f"{row['engine']:22}{row['median_ms']:11.2f}{row['min_ms']:10.2f}"
            f"{row['first_s']:9.2f}{again:>9}{row['peak_mb']:9.0f}  {losses}"
        )
    for engine, why in result["failed"].items():
        print(f"{engine:22}failed: {why}")
    if "ratio" in result:
        print(f"ratio {result['best_peer']} / tenon: {result['ratio']:.3f}", end="")
        memory = result.get("memory_ratio")
        print(f"; memory tenon / eager: {memory:.2f}" if memory else "", end="")
        first = result.get("first_ratio")
        print(f"; first step torch.compile / tenon: {first:.1f}" if first else "")
    if "own" in result:
        own = result["own"]
        print(f"ratio fp32 / bf16: {own['ratio']:.3f} of medians", end="")
        print(f", {own['ratio_of_minima']:.3f} of minima; ", end="")
        print("rounds", " ".join(f"{ratio:.2f}" for ratio in own["rounds"]))


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="steps.py", description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=["mnist", "resnet18", "resnet50", "minilm"])
    parser.add_argument(
        "--precision", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"]
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3, help="of steps in each process")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one process")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--python", default=sys.executable, help="that runs the contestants")
    parser.add_argument("--amp", action="store_true", help="Tenon's bf16 beside its own fp32")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    machine = cpu()
    if not args.json:
        print(f"cpu: {machine['model']}, {machine['cpus']} cpus, {args.threads} threads")
        print(f"flags: {' '.join(machine['flags'])}; absent: {' '.join(machine['missing'])}")
    results = []
    for network in args.networks:
        for precision in ("amp",) if args.amp else args.precision:
            own = precision == "amp"
            results.append(compare_own(network, args) if own else compare(network, precision, args))
            if not args.json:
                show(results[-1])
    if args.json:
        print(json.dumps({"cpu": machine, "threads": args.threads, "results": results}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
