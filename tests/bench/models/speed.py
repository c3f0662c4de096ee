# SPDX-License-Identifier: Apache-2.0
"""Times of the models in Tenon beside ONNX Runtime and OpenVINO, batch 1, on a quiet machine.

  python tests/bench/models/speed.py [--only 'silero*'] [--precision fp32|int8] [--threads 2]
                                     [--rounds 1] [--seconds 0.5] [--prepare] [--json FILE]

The ratio is the better peer's median over Tenon's: above 1, Tenon is faster. int8: everyone runs
the file that Tenon's quantizer wrote; --prepare writes these files and times nothing. --json adds
to what FILE holds already; with --show it is printed, and nothing is run.
"""

import argparse
import fnmatch
import json
import math
import pathlib
import sys
import tempfile

import check
import numpy as np
import rows as table
import tenon

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import versus  # noqa: E402

LEAST = 1 / 1.4
LEAST_MEAN = {"fp32": 0.95, "int8": 1.0}


def model_file(row: table.Row, precision: str) -> pathlib.Path:
    """The file that is timed; of int8 one that is made once."""
    if precision == "fp32" or not row.recipe:
        return row.file()
    path = table.CACHE / "exports" / "int8" / f"{row.name.replace(' ', '_')}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            check.quantized(row, tenon.load(row.file()), folder).save(path)
    return path


def measure(row: table.Row, args) -> dict:
    path = model_file(row, args.precision)
    settings = versus.arguments(
        [str(path), "--threads", str(args.threads), "--seconds", str(args.seconds)]
        + ["--precision", args.precision]
    )
    with tempfile.TemporaryDirectory() as folder:
        options = []
        for i, (name, array) in enumerate(check.draw(row, tenon.load(path), 0).items()):
            file = pathlib.Path(folder) / f"{i}.npy"
            np.save(file, array)
            options += ["--input", f"{name}={file}"]
        playing = versus.contestants(settings, options)
        for _ in range(args.rounds):
            for contestant in playing:
                if not contestant.complaint:
                    versus.play(contestant, 120)
    found = versus.summary(playing, settings)
    times = {one["contestant"]: one["median_ms"] for one in found["figures"]}
    failed = {one["contestant"]: one["why"] for one in found["failed"]}
    return {"name": row.name, "ms": times, "failed": failed, "ratio": found["ratio"]}


def line(found: dict) -> str:
    cells = [found["name"]]
    for engine in ("tenon", "onnxruntime", "openvino"):
        ms = found["ms"].get(engine)
        cells.append("-" if ms is None else f"{ms:.3g}" if ms < 1000 else f"{ms:.0f}")
    cells.append(f"{found['ratio']:.2f}" if found["ratio"] else "-")
    return "| " + " | ".join(cells) + " |"


def last_lines(all_found: list[dict], precision: str) -> list[str]:
    ratios = {one["name"]: one["ratio"] for one in all_found if one["ratio"]}
    if not ratios:
        return ["no figures"]
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    slow = [f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio < LEAST]
    floor = LEAST_MEAN[precision]
    return [
        f"geometric mean of {len(ratios)}: {mean:.3f} (floor {floor})",
        f"more than 1.4x slower than a peer: {', '.join(slow) or 'none'}",
    ]


def arguments(argv):
    parser = argparse.ArgumentParser(prog="speed", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="patterns of names, by commas")
    parser.add_argument("--precision", choices=("fp32", "int8"), default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
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
    print("| model | Tenon ms | ONNX Runtime ms | OpenVINO ms | ratio |\n|---|---|---|---|---|")
    for row in table.ROWS:
        if args.show or not any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns):
            continue
        if args.prepare:
            model_file(row, args.precision)
            continue
        known[row.name] = measure(row, args)
        print(line(known[row.name]), flush=True)
        for engine, why in known[row.name]["failed"].items():
            print(f"  {engine}: {why}", file=sys.stderr)
        if args.json:
            args.json.write_text(json.dumps(list(known.values()), indent=1) + "\n")
    if args.show:
        print("\n".join(line(one) for one in known.values()))
    print("\n" + "\n".join(last_lines(list(known.values()), args.precision)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
