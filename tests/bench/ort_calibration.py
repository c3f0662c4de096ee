# SPDX-License-Identifier: Apache-2.0
"""Time and peak memory of ONNX Runtime's calibration on an npz: one line of JSON.

  ort_calibration.py MODEL DATA.npz [--method entropy] [--samples N] [--batch 1] [--threads N]

The model goes through ONNX Runtime's own preparation first (shape inference, folding), which is not
in the time. Peak memory is the process's, with what was resident before calibration beside it.
"""

import argparse
import contextlib
import json
import pathlib
import resource
import sys
import tempfile
import time

import peer_rows


def resident_mb() -> float:
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def calibrate(args, folder: str) -> dict:
    import onnxruntime
    from onnxruntime.quantization import calibrate as ort
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = str(pathlib.Path(folder) / "prepared.onnx")
    quant_pre_process(args.model, prepared, skip_symbolic_shape=True)
    method = getattr(ort.CalibrationMethod, args.method.capitalize())
    calibrator = ort.create_calibrator(
        prepared,
        augmented_model_path=str(pathlib.Path(folder) / "augmented.onnx"),
        calibrate_method=method,
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    calibrator.infer_session = onnxruntime.InferenceSession(
        str(pathlib.Path(folder) / "augmented.onnx"), options, ["CPUExecutionProvider"]
    )
    names = peer_rows.input_names(args.model)
    rows = peer_rows.Rows(args.data, names, args.samples, args.batch)
    before = resident_mb()
    begin, cpu = time.perf_counter(), time.process_time()
    calibrator.collect_data(rows)
    collected = time.perf_counter()
    ranges = calibrator.compute_data()
    end = time.perf_counter()
    return {
        "contestant": "onnxruntime",
        "method": args.method,
        "samples": rows.n_rows,
        "tensors": len(ranges.data),
        "seconds": end - begin,
        "cpu_seconds": time.process_time() - cpu,
        "collect_seconds": collected - begin,
        "compute_seconds": end - collected,
        "resident_before_mb": before,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="ort_calibration.py", description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--method", choices=("entropy", "minmax", "percentile"), default="entropy")
    parser.add_argument("--samples", type=int, default=0, help="first rows only; 0 for all")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        try:
            with contextlib.redirect_stdout(sys.stderr):  # it prints its own progress
                result = calibrate(args, folder)
        except (OSError, KeyError, ValueError, RuntimeError, ImportError) as error:
            print(f"ort_calibration: {error!r}", file=sys.stderr)
            return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
