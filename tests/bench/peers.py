# SPDX-License-Identifier: Apache-2.0
"""Times one model in one engine: one process, one contestant, one line of JSON.

  peers.py MODEL --engine onnxruntime|openvino [--precision fp32|bf16|int8]
           [--shape NAME=1x3x224x224]... [--input NAME=FILE.npy]... [--threads N] [--rest fp32|bf16]

int8 means that MODEL already holds QuantizeLinear/DequantizeLinear (see peer_quantize.py); --rest
is OpenVINO's precision for what such a file leaves in floating point.
The thread count is fixed, shapes are made static where the engine can, one request at a time.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy as np
import onnx
import peer_inputs

ROOT = pathlib.Path(__file__).resolve().parents[2]


def declared(path: str):
    """Each input's dtype and dims of an ONNX file, None for a dynamic dim."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    out = {}
    for value in graph.input:
        if value.name in weights:
            continue
        kind = value.type.tensor_type
        dims = [d.dim_value if d.dim_value > 0 else None for d in kind.shape.dim]
        out[value.name] = (onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type), dims)
    return out


def fixed_symbols(path: str, inputs) -> dict[str, int]:
    """The extent of each symbolic dim; a symbol that stands for two extents ('?') is left out."""
    extents = {}
    for value in onnx.load(path, load_external_data=False).graph.input:
        shape = inputs[value.name].shape if value.name in inputs else ()
        for dim, extent in zip(value.type.tensor_type.shape.dim, shape):
            if dim.dim_param:
                extents.setdefault(dim.dim_param, set()).add(extent)
    return {symbol: found.pop() for symbol, found in extents.items() if len(found) == 1}


def onnxruntime_run(path: str, precision: str, threads: int, inputs, rest: str = "fp32"):
    if "bf16" in (precision, rest):
        raise ValueError("onnxruntime: precision: expected fp32 or int8, got 'bf16' (none on x86)")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    for symbol, extent in fixed_symbols(path, inputs).items():
        options.add_free_dimension_override_by_name(symbol, extent)
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def openvino_properties(precision: str, threads: int) -> dict:
    return {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[precision],
    }


def openvino_run(path: str, precision: str, threads: int, inputs, rest: str = "fp32"):
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({name: list(array.shape) for name, array in inputs.items()})
    properties = openvino_properties(rest if precision == "int8" else precision, threads)
    request = core.compile_model(model, "CPU", properties).create_infer_request()
    for name, array in inputs.items():
        request.set_tensor(name, openvino.Tensor(array))
    return request.infer


ENGINES = {"onnxruntime": onnxruntime_run, "openvino": openvino_run}


def measure(run, warmup: int, seconds: float, least: int) -> list[float]:
    """Milliseconds of each run, over at least so many seconds and so many runs."""
    for _ in range(warmup):
        run()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def contest_arguments(description: str, only: str) -> argparse.ArgumentParser:
    """Of a program that measures contestants in processes of their own: itself with --one."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("model")
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32")
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default=only)
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--inputs", help=argparse.SUPPRESS)
    return parser


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="peers.py", description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--engine", choices=sorted(ENGINES), required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1x3x224x224")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy")
    parser.add_argument("--rest", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--runs", type=int, default=10, help="at least so many")
    args = parser.parse_args(argv)
    try:
        shapes = peer_inputs.shapes_of(args.shape)
        given = peer_inputs.arrays_of(args.input)
        inputs = peer_inputs.make(declared(args.model), shapes, given)
        begin = time.perf_counter()
        make = ENGINES[args.engine]
        run = make(args.model, args.precision, args.threads, inputs, args.rest)
        compile_ms = 1e3 * (time.perf_counter() - begin)
        times = measure(run, args.warmup, args.seconds, args.runs)
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        print(f"peers: {error}", file=sys.stderr)
        return 1
    result = {
        "contestant": args.engine,
        "model": args.model,
        "precision": args.precision,
        "threads": args.threads,
        "median_ms": float(np.median(times)),
        "min_ms": min(times),
        "p90_ms": float(np.percentile(times, 90)),
        "compile_ms": compile_ms,
        "runs": len(times),
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
