# SPDX-License-Identifier: Apache-2.0
"""Times of the models in Tenon beside ONNX Runtime and OpenVINO, batch 1, on a quiet machine.

  python tests/bench/models/speed.py [--only 'silero*'] [--precision fp32|bf16|int8] [--threads 2]
                                     [--option winograd=off] [--rounds 5] [--seconds 0.5]
                                     [--prepare] [--json FILE]

The ratio is the better peer's time over Tenon's: above 1, Tenon is faster; its 95 % interval is
that of the rounds, in which all play in turn. bf16 is beside OpenVINO alone. int8: everyone runs
the file that Tenon's quantizer wrote, the peers that of their own quantizer as well, and the faster
one counts; --prepare writes these files and times nothing. --json adds to what FILE holds already;
with --show it is printed, and nothing is run. A geometric mean counts each network once, and no
model that takes less than 0.1 ms.
"""

import argparse
import collections
import fnmatch
import json
import math
import pathlib
import statistics
import sys
import tempfile

import check
import int8_files
import numpy as np
import rows as table
import tenon

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import versus  # noqa: E402

ENGINES = ("tenon", "onnxruntime", "openvino")
TINY_MS = 0.1
LEAST = 0.95


def settings_of(row: table.Row, args):
    command = [str(row.file()), "--threads", str(args.threads), "--seconds", str(args.seconds)]
    command += ["--precision", args.precision]
    for option in args.option:
        command += ["--option", option]
    if args.precision == "int8":
        for pair in int8_files.contestants(row):
            command += ["--int8", pair]
    return versus.arguments(command)


def measure(row: table.Row, args) -> dict:
    settings = settings_of(row, args)
    with tempfile.TemporaryDirectory() as folder:
        options = []
        for i, (name, array) in enumerate(check.draw(row, tenon.load(row.file()), 0).items()):
            file = pathlib.Path(folder) / f"{i}.npy"
            np.save(file, array)
            options += ["--input", f"{name}={file}"]
        playing = versus.contestants(settings, options)
        for _ in range(args.rounds):
            for contestant in playing:
                if not contestant.complaint:
                    versus.play(contestant, 120)
    found = versus.summary(playing, settings)
    times: dict[str, float] = {}
    for one in sorted(found["figures"], key=lambda one: one["median_ms"]):
        times.setdefault(one["contestant"], one["median_ms"])
    failed = {f"{one['contestant']} {one['model']}": one["why"] for one in found["failed"]}
    measured = {key: found[key] for key in ("ratio", "interval", "best_peer")}
    return {"name": row.name, "network": row.network(), "ms": times, "failed": failed} | measured


def line(found: dict) -> str:
    cells = [found["name"]]
    for engine in ENGINES:
        ms = found["ms"].get(engine)
        cells.append("-" if ms is None else f"{ms:.3g}" if ms < 1000 else f"{ms:.0f}")
    ratio = f"{found['ratio']:.2f}" if found["ratio"] else "-"
    if found["interval"]:
        ratio += " [{:.2f}, {:.2f}]".format(*found["interval"])
    return "| " + " | ".join([*cells, ratio]) + " |"


def mean_line(all_found: list[dict]) -> str:
    """Over networks; the files of several exporters are one network."""
    logs = collections.defaultdict(list)
    for one in all_found:
        if one["ratio"] and one["ms"]["tenon"] >= TINY_MS:
            logs[one["network"]].append(math.log(one["ratio"]))
    if not logs:
        return "no figures"
    mean = math.exp(statistics.fmean(statistics.fmean(each) for each in logs.values()))
    return f"geometric mean of {len(logs)} networks: {mean:.3f}"


def last_lines(all_found: list[dict]) -> list[str]:
    slow = [one for one in all_found if one["ratio"] and one["ratio"] < LEAST]
    named = ", ".join(f"{one['name']} {one['ratio']:.2f}" for one in slow)
    return [mean_line(all_found), f"below {LEAST}: {named or 'none'}"]


def arguments(argv):
    parser = argparse.ArgumentParser(prog="speed", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="patterns of names, by commas")
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32")
    parser.add_argument("--option", action="append", default=[], help="of Tenon's backend")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a peer's runs in a round")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path)
    return parser.parse_args(argv)


def main(argv=None) -> int:
    args = arguments(argv)
    kept = json.loads(args.json.read_text()) if args.json and args.json.exists() else []
    known = {one["name"]: one for one in kept}
    patterns = args.only.split(",")
    chosen = [row for row in table.ROWS if any(fnmatch.fnmatch(row.name, one) for one in patterns)]
    if args.prepare:
        for row in chosen:
            int8_files.prepare(row)
            for quantizer, why in int8_files.refusals(row).items():
                print(f"{row.name}: {quantizer}: {why}", flush=True)
        return 0
    machine = versus.cpu()
    print(f"cpu: {machine['model']}, {args.threads} threads; {' '.join(machine['flags'])}")
    print("| model | Tenon ms | ONNX Runtime ms | OpenVINO ms | ratio |\n|---|---|---|---|---|")
    for row in [] if args.show else chosen:
        known[row.name] = measure(row, args)
        print(line(known[row.name]), flush=True)
        for engine, why in known[row.name]["failed"].items():
            print(f"  {engine}: {why}", file=sys.stderr)
        if args.json:
            args.json.write_text(json.dumps(list(known.values()), indent=1) + "\n")
    if args.show:
        print("\n".join(line(one) for one in known.values()))
    print("\n" + "\n".join(last_lines(list(known.values()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
