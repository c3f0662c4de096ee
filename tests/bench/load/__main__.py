# SPDX-License-Identifier: Apache-2.0
"""Times beside busy programs: Tenon's builds and the peers in turn, one process each.

  python tests/bench/load MODEL [--precision fp32|bf16|int8] [--shape NAME=1x3x224x224]...
         [--tenon NAME=BUILD]... [--peer onnxruntime]... [--peer openvino=FILE.onnx]...
         [--busy spin|compile|stream] [--counts 0,1,2,4,8] [--rounds 10] [--seconds 0.5]
         [--threads 2] [--beside torch] [--from c]

BUILD is a build tree (build/release). A peer runs MODEL, or a file of its own. In each round each
contestant runs for so many seconds, in an order that turns. Ratios are the contestant's time over
the first contestant's, slice by slice: above 1, the first is faster.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import busy  # noqa: E402
import figures  # noqa: E402
import peer_inputs  # noqa: E402
import versus  # noqa: E402


class Contestant:
    """A process that holds a compiled model and runs it when it is asked to."""

    def __init__(self, name: str, engine: str, model: str, args, inputs, build: str = ""):
        self.name = name
        command = [args.python, str(HERE / "contestant.py"), model, "--engine", engine]
        command += ["--precision", args.precision, "--threads", str(args.threads), *inputs]
        if args.beside and engine == "tenon":
            command += ["--beside", args.beside]
        if args.language == "c" and engine == "tenon":
            command += ["--from", "c", "--build", build]
        environment = dict(os.environ)
        if build:
            environment["PYTHONPATH"] = str(pathlib.Path(build).resolve() / "python")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{name}: ended before it was ready, see above")

    def slice(self, seconds: float) -> list[float]:
        print(seconds, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(contestants: list[Contestant], args, count: int) -> dict[str, list[list[float]]]:
    slices = {each.name: [] for each in contestants}
    with busy.programs(args.busy, count):
        for round_ in range(args.rounds):
            first = round_ % len(contestants)
            for each in contestants[first:] + contestants[:first]:
                slices[each.name].append(each.slice(args.seconds))
    return slices


def print_rows(args, count: int, slices: dict[str, list[list[float]]]) -> None:
    ours = next(iter(slices.values()))
    for name, found in slices.items():
        row = figures.summary(found)
        ratio, low, high = figures.paired_ratio(found, ours)
        label = pathlib.Path(name).name  # of a peer with a file of its own, the file's
        print(
            f"{count:5} {args.busy:8} {label:14}{row['median_ms']:10.2f}{row['p99_ms']:10.2f}"
            f"{row['mean_ms']:10.2f}{row['runs']:7}  {ratio:6.3f} [{low:.3f}, {high:.3f}]",
            flush=True,
        )


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1x3x224x224")
    parser.add_argument("--data", metavar="FILE.npz")
    parser.add_argument("--tenon", action="append", default=[], metavar="NAME=BUILD")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--busy", choices=busy.KINDS, default="spin")
    parser.add_argument("--counts", default="0,1,2,4,8")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--beside", choices=("torch", "numpy"), help="in Tenon's processes")
    parser.add_argument("--from", dest="language", choices=("python", "c"), default="python")
    parser.add_argument("--python", default=sys.executable, help="that runs the contestants")
    return parser.parse_args(argv)


def main(argv=None) -> int:
    args = arguments(argv)
    if args.beside and args.language == "c":
        raise SystemExit("load: --beside starts threads in Python's processes: not with --from c")
    machine = versus.cpu()
    print(f"cpu: {machine['model']}, {machine['cpus']} cpus, {args.threads} threads")
    print(f"flags: {' '.join(machine['flags'])}; absent: {' '.join(machine['missing'])}")
    print(f"model: {args.model} {args.precision} {' '.join(args.shape)}")
    builds = [peer_inputs.pair(text) for text in args.tenon] or [("tenon", "build/release")]
    with tempfile.TemporaryDirectory() as folder:
        inputs = [part for text in args.shape for part in ("--shape", text)]
        if args.data:
            shapes = peer_inputs.shapes_of(args.shape)
            inputs = versus.slice_data(args.data, shapes, folder)
        contestants = [
            Contestant(name, "tenon", args.model, args, inputs, path) for name, path in builds
        ]
        for peer in args.peer:
            engine, _, own = peer.partition("=")
            if (engine, args.precision) != ("onnxruntime", "bf16"):  # it has none on x86
                contestants.append(Contestant(peer, engine, own or args.model, args, inputs))
    print(
        f"{'count':5} {'busy':8} {'contestant':14}{'median ms':>10}{'p99 ms':>10}{'mean ms':>10}"
        f"{'runs':>7}  ratio to the first"
    )
    for count in map(int, args.counts.split(",")):
        print_rows(args, count, measure(contestants, args, count))
    for each in contestants:
        each.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
