# SPDX-License-Identifier: Apache-2.0
"""One product with 4-bit weights by Tenon, ONNX Runtime and OpenVINO: the same MatMulNBits file.

PYTHONPATH=build/release/python python tests/bench/int4.py [--k 4096] [--n 65536] [--group 32]
    [--rows 1 2 4 8 128] [--threads 2] [--rounds 9]

Prints, for each number of rows, the median ms of alternating runs and the GB/s of the packed
weights and scales. Weights of n * k / 2 bytes should be four times the last cache, so that each
run reads them from memory. Tenon runs with floating-point rows (precision=fp32) and in 8 bits
(precision=int8); ONNX Runtime with accuracy_level 0 and 4, which mean the same; OpenVINO as its
hint for latency has it (rows in 8 bits by groups of 32 where the CPU has VNNI).
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(path: Path, k: int, n: int, group: int, rows: int, level: int) -> int:
    """Writes the file; gives the bytes of its weights and scales."""
    random = np.random.default_rng(1)
    codes = random.integers(0, 256, (n, k // group, group // 2), dtype=np.uint8)
    scales = random.uniform(0.001, 0.01, n * (k // group)).astype("f")
    node = helper.make_node(
        "MatMulNBits", ["x", "codes", "scales"], ["y"], domain="com.microsoft",
        K=k, N=n, bits=4, block_size=group, accuracy_level=level,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, n])],
        [numpy_helper.from_array(codes, "codes"), numpy_helper.from_array(scales, "scales")],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=opsets), path)
    return codes.nbytes + scales.nbytes


def tenon_runner(path: Path, threads: int, precision: str):
    import tenon

    plan = tenon.load(str(path)).compile(backend="onednn", threads=threads, precision=precision)
    return lambda x: np.asarray(plan.run({"x": x})[0])


def ort_runner(path: Path, threads: int):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def openvino_runner(path: Path, threads: int):
    import openvino

    core = openvino.Core()
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
    request = core.compile_model(core.read_model(str(path)), "CPU", options).create_infer_request()
    return lambda x: request.infer({0: x})[0]


def runners(folder: Path, arguments, rows: int) -> tuple[dict, int]:
    """Name to function of the rows, and the packed bytes; what fails is said and left out."""
    plain, coded = folder / "level0.onnx", folder / "level4.onnx"
    size = [arguments.k, arguments.n, arguments.group, rows]
    n_bytes = model(plain, *size, 0)
    model(coded, *size, 4)
    threads = arguments.threads
    makers = {
        "tenon f32": lambda: tenon_runner(plain, threads, "fp32"),
        "tenon int8": lambda: tenon_runner(coded, threads, "int8"),
        "ort level 0": lambda: ort_runner(plain, threads),
        "ort level 4": lambda: ort_runner(coded, threads),
        "openvino": lambda: openvino_runner(plain, threads),
    }
    made = {}
    for name, make in makers.items():
        try:
            made[name] = make()
        except Exception as error:  # a peer that cannot is a row of the table, not the end of it
            print(f"{rows:5} {name:12} {str(error).splitlines()[0][:100]}")
    return made, n_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, default=4096)
    parser.add_argument("--n", type=int, default=65536)
    parser.add_argument("--group", type=int, default=32)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 128])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    print(f"{'rows':>5} {'runtime':12} {'ms':>9} {'GB/s':>7} {'off':>8}")
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as folder:
            made, n_bytes = runners(Path(folder), arguments, rows)
            x = np.random.default_rng(2).standard_normal((rows, arguments.k)).astype("f")
            results = {name: run(x) for name, run in made.items()}
            exact = next(iter(results.values()))
            times: dict[str, list[float]] = {name: [] for name in made}
            for _ in range(arguments.rounds if rows <= 8 else 3):
                for name, run in made.items():
                    begin = time.perf_counter()
                    run(x)
                    times[name].append(time.perf_counter() - begin)
        for name, seconds in times.items():
            median = statistics.median(seconds)
            off = np.abs(results[name] - exact).max() / np.abs(exact).max()
            print(
                f"{rows:5} {name:12} {median * 1e3:9.3f} {n_bytes / median * 1e-9:7.2f} {off:8.1e}"
            )


if __name__ == "__main__":
    main()
