# SPDX-License-Identifier: Apache-2.0
"""Tenon against its peers on one model: alternating processes, medians, ratios, one table.

  versus.py MODEL [--precision fp32|bf16|int8] [--shape NAME=1x3x224x224]... [--data FILE.npz]
            [--threads N] [--rounds 5] [--only tenon,openvino] [--int8 NAME=FILE.onnx]...
            [--rest fp32|bf16] [--option winograd=off] [--json]

With --precision int8 each contestant runs every --int8 file given for it (NAME is tenon,
onnxruntime, openvino or all), and its fastest one counts; --rest is the precision of what such a
file leaves in floating point. ONNX Runtime has no bf16 on x86 and is left out there. --data takes
the first rows of an npz as inputs, as many as --shape says in its first dim (1 without --shape).
The ratio is the better peer's time over Tenon's: above 1, Tenon is faster. Its 95 % interval is
that of the ratios of the medians of each round.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import figures
import numpy as np
import peer_inputs

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REPORTED = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16")
REPORTED += ("amx_tile", "amx_int8", "amx_bf16")


@dataclass
class Contestant:
    """One command that prints JSON, and the rounds that it has run."""

    engine: str
    model: str
    command: list[str]
    rounds: list[dict] = field(default_factory=list)
    complaint: str = ""

    def figures(self) -> dict:
        """Over the rounds: the median of medians, the least minimum, the median 90th percentile."""
        return {
            "contestant": self.engine,
            "model": self.model,
            "median_ms": statistics.median(r["median_ms"] for r in self.rounds),
            "min_ms": min(r["min_ms"] for r in self.rounds),
            "p90_ms": statistics.median(r["p90_ms"] for r in self.rounds),
            "rounds": len(self.rounds),
        }


def cpu() -> dict:
    text = pathlib.Path("/proc/cpuinfo").read_text()
    fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    flags = fields.get("flags", "").split()
    return {
        "model": fields.get("model name", "unknown"),
        "cpus": text.count("processor\t"),
        "flags": [flag for flag in REPORTED if flag in flags],
        "missing": [flag for flag in REPORTED if flag not in flags],
    }


def parse_result(text: str) -> dict:
    """The last line's figures, of either form."""
    result = json.loads(text.strip().splitlines()[-1] if "\n{" in text else text)
    latency = result.get("latency_ms")
    if latency is None:
        return {key: result[key] for key in ("median_ms", "min_ms", "p90_ms")}
    return {f"{key}_ms": latency[key] for key in ("median", "min", "p90")}


def play(contestant: Contestant, timeout: float) -> None:
    """One round of one contestant; one that fails is not asked again."""
    try:
        done = subprocess.run(contestant.command, capture_output=True, text=True, timeout=timeout)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            contestant.complaint = lines[-1]
            return
        contestant.rounds.append(parse_result(done.stdout))
    except subprocess.TimeoutExpired:
        contestant.complaint = f"no answer within {timeout:g} s"
    except (OSError, ValueError, KeyError, TypeError) as error:
        contestant.complaint = f"no figures: {error!r}"


def options_for(engine: str, args) -> list[str]:
    """Tenon takes the precision of a quantized file's rest as the plan's precision."""
    common = ["--threads", str(args.threads)]
    if engine != "tenon":
        rest = ["--rest", args.rest] if engine == "openvino" else []
        return [*common, "--precision", args.precision, *rest, "--seconds", str(args.seconds)]
    in_file = args.precision == "int8" and args.int8 and args.rest != "fp32"
    own = [part for pair in args.option for part in ("--backend-option", pair)]
    return [*common, "--precision", args.rest if in_file else args.precision, *own]


def files_for(engine: str, args) -> list[str]:
    if args.precision != "int8" or not args.int8:
        return [args.model]
    named = [peer_inputs.pair(text) for text in args.int8]
    return [path for name, path in named if name in (engine, "all")]


def contestants(args, input_options: list[str]) -> list[Contestant]:
    out = []
    for engine in args.only.split(","):
        if engine == "onnxruntime" and "bf16" in (args.precision, args.rest):
            continue  # it has no bf16 on x86
        options = [*options_for(engine, args), *input_options]
        for path in files_for(engine, args):
            if engine == "tenon":
                command = [str(args.tenon), "bench", path, "--backend", args.backend, "--json"]
            else:
                command = [args.python, str(HERE / "peers.py"), path, "--engine", engine]
            command += options
            out.append(Contestant(engine, path, command))
    return out


def slice_data(path: str, shapes, folder: str) -> list[str]:
    """Writes the first rows of each array of an npz as npy; labels are left out."""
    options = []
    with np.load(path) as data:
        for name in data.files:
            if name == "label":
                continue
            count = shapes[name][0] if name in shapes else 1
            target = pathlib.Path(folder) / f"{name}.npy"
            np.save(target, data[name][:count])
            options += ["--input", f"{name}={target}"]
    return options


def best(finished: list[Contestant], engines) -> Contestant | None:
    found = [each for each in finished if each.engine in engines]
    return min(found, key=lambda each: each.figures()["median_ms"]) if found else None


def ratios(peer: Contestant | None, ours: Contestant | None) -> dict:
    """Of medians, of minima, and the interval of the ratios of rounds; None without a pair."""
    if not peer or not ours:
        return {"ratio": None, "ratio_of_minima": None, "interval": None}
    slow, fast = peer.figures(), ours.figures()
    theirs, mine = ([[r["median_ms"]] for r in each.rounds] for each in (peer, ours))
    return {
        "ratio": slow["median_ms"] / fast["median_ms"],
        "ratio_of_minima": slow["min_ms"] / fast["min_ms"],
        "interval": figures.paired_ratio(theirs, mine)[1:] if len(mine) > 1 else None,
    }


def summary(all_: list[Contestant], args) -> dict:
    finished = [each for each in all_ if each.rounds and not each.complaint]
    ours = best(finished, {"tenon"})
    peer = best(finished, {"onnxruntime", "openvino"})
    return {
        "cpu": cpu(),
        "model": args.model,
        "precision": args.precision,
        "threads": args.threads,
        "inputs": args.shape,
        "figures": [each.figures() for each in finished],
        "failed": [
            {"contestant": each.engine, "model": each.model, "why": each.complaint}
            for each in all_
            if each.complaint
        ],
        "best_peer": peer.engine if peer else None,
        **ratios(peer, ours),
    }


def interval(bounds) -> str:
    return f", 95 % [{bounds[0]:.3f}, {bounds[1]:.3f}]" if bounds else ""


def print_table(result: dict) -> None:
    machine = result["cpu"]
    print(f"cpu: {machine['model']}, {machine['cpus']} cpus, {result['threads']} threads")
    print(f"flags: {' '.join(machine['flags'])}; absent: {' '.join(machine['missing'])}")
    print(f"model: {result['model']} {result['precision']} {' '.join(result['inputs'])}\n")
    print(f"{'contestant':14}{'median ms':>11}{'min ms':>10}{'p90 ms':>10}{'rounds':>8}  file")
    for row in sorted(result["figures"], key=lambda row: row["median_ms"]):
        print(
            f"{row['contestant']:14}{row['median_ms']:11.3f}{row['min_ms']:10.3f}"
            f"{row['p90_ms']:10.3f}{row['rounds']:8}  {pathlib.Path(row['model']).name}"
        )
    for row in result["failed"]:
        print(f"{row['contestant']:14}failed: {row['why']}")
    if result["ratio"] is not None:
        print(
            f"\nratio {result['best_peer']} / tenon: {result['ratio']:.3f}"
            f" (of minima {result['ratio_of_minima']:.3f}){interval(result['interval'])}"
        )


def arguments(argv):
    parser = argparse.ArgumentParser(prog="versus.py", description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1x3x224x224")
    parser.add_argument("--data", metavar="FILE.npz")
    parser.add_argument("--int8", action="append", default=[], metavar="NAME=FILE.onnx")
    parser.add_argument("--rest", choices=("fp32", "bf16"), default="fp32", help="beside int8")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of a peer's runs in a round")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one process")
    parser.add_argument("--only", default="tenon,onnxruntime,openvino")
    parser.add_argument("--backend", default="onednn", help="of tenon")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="of it")
    parser.add_argument("--tenon", default=ROOT / "build" / "release" / "bin" / "tenon")
    parser.add_argument("--python", default=sys.executable, help="that runs the peers")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


def main(argv=None) -> int:
    args = arguments(argv)
    with tempfile.TemporaryDirectory() as folder:
        try:
            shapes = peer_inputs.shapes_of(args.shape)
            options = [part for text in args.shape for part in ("--shape", text)]
            if args.data:
                options = slice_data(args.data, shapes, folder)
            playing = contestants(args, options)
        except (ValueError, OSError) as error:
            print(f"versus: {error}", file=sys.stderr)
            return 1
        for _ in range(args.rounds):
            for contestant in playing:
                if not contestant.complaint:
                    play(contestant, args.timeout)
    result = summary(playing, args)
    print(json.dumps(result)) if args.json else print_table(result)
    return 0 if result["figures"] and not result["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
