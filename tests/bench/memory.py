# SPDX-License-Identifier: Apache-2.0
"""What a model takes of memory in Tenon and its peers: load, compile, three runs.

  memory.py MODEL [--precision fp32|bf16|int8] [--shape NAME=1x3x224x224]... [--threads N]
            [--only tenon,openvino] [--build build/release]

One process for each engine. peak: the most resident memory less that after the import, kept: what
is resident when the runs are over, both in MB with the pages of the mapped file. code: what a model
of one small convolution and product leaves resident, which is the engine's libraries. weights: the
constants in the file; ratio: peak over weights and Tenon's arena, and the same without the code.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import peer_inputs
import peers


def resident() -> dict[str, float]:
    """Resident memory now and at its highest, in MB."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {key: int(fields[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM")}


def tenon_run(path: str, precision: str, threads: int, inputs):
    import tenon

    plan = tenon.load(path).compile(backend="onednn", precision=precision, threads=threads)

    def run():
        plan(**inputs)
        return plan

    return run


def save_small(path: pathlib.Path) -> None:
    """A convolution and a product: what an engine loads for any model."""
    helper, to = onnx.helper, onnx.TensorProto.FLOAT
    weights = {"w": np.ones((8, 3, 3, 3), "float32"), "m": np.ones((6, 5), "float32")}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("MatMul", ["c", "m"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info("x", to, (1, 3, 8, 8))]
    results = [helper.make_tensor_value_info("y", to, (1, 8, 6, 5))]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "small", ends, results, constants)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def arena_bytes(plan) -> int:
    described = plan.describe()
    parts = described["partitions"]
    return described["arena_bytes"] + sum(part.get("arena_bytes", 0) for part in parts)


def measure_one(args) -> int:
    """In a process of its own: prints a line of JSON."""
    inputs = dict(np.load(args.inputs))
    __import__(args.one)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the highest mark starts again
    before = resident()["VmRSS"]
    make = {"tenon": tenon_run, **peers.ENGINES}[args.one]
    precision = "fp32" if args.precision == "int8" else args.precision
    small = {"x": np.ones((1, 3, 8, 8), "float32")}
    make(str(pathlib.Path(args.inputs).parent / "small.onnx"), precision, args.threads, small)()
    code = resident()["VmRSS"] - before
    run = make(args.model, args.precision, args.threads, inputs)
    for _ in range(3):
        result = run()
    after = resident()
    out = {"peak": after["VmHWM"] - before, "kept": after["VmRSS"] - before, "code": code}
    if args.one == "tenon":
        out["arena"] = arena_bytes(result) / 2**20
    print(json.dumps(out))
    return 0


def weight_mb(path: str) -> float:
    graph = onnx.load(path).graph
    return sum(onnx.numpy_helper.to_array(each).nbytes for each in graph.initializer) / 2**20


def main() -> int:
    parser = peers.contest_arguments(__doc__.splitlines()[0], "tenon,openvino,onnxruntime")
    args = parser.parse_args()
    if args.one:
        sys.path.insert(0, str(pathlib.Path(args.build) / "python"))
        return measure_one(args)
    weights = weight_mb(args.model)
    print(f"{args.model}, {args.precision}: weights {weights:.1f} MB")
    shapes = peer_inputs.shapes_of(args.shape)
    with tempfile.TemporaryDirectory() as folder:
        inputs = pathlib.Path(folder) / "inputs.npz"
        save_small(inputs.parent / "small.onnx")
        np.savez(inputs, **peer_inputs.make(peers.declared(args.model), shapes, {}))
        for engine in args.only.split(","):
            command = [sys.executable, __file__, *sys.argv[1:], "--one", engine]
            done = subprocess.run(
                [*command, "--inputs", str(inputs)], capture_output=True, text=True
            )
            if done.returncode != 0:
                print(f"  {engine:12} {done.stderr.strip().splitlines()[-1]}")
                continue
            got = json.loads(done.stdout.splitlines()[-1])
            line = f"  {engine:12} peak {got['peak']:7.1f}   kept {got['kept']:7.1f}"
            line += f"   code {got['code']:6.1f}"
            if "arena" in got:
                wanted = weights + got["arena"]
                line += f"   arena {got['arena']:.1f}   ratio {got['peak'] / wanted:.2f}"
                line += f", without code {(got['peak'] - got['code']) / wanted:.2f}"
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
