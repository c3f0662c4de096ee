# SPDX-License-Identifier: Apache-2.0
"""Quantizes one model with one quantizer and prints how long that took: one line of JSON.

  quantize_one.py MODEL OUT --by tenon|nncf|nncf_mixed|ort_minmax|ort_percentile|ort_entropy
                  |tenon_search|nncf_control --data FILE.npz [--transformer] [--min-snr DB]

Times are those of the quantizer alone, without imports; Tenon's is that of the command, all of it.
tenon_search and nncf_control leave layers in float until the outputs have --min-snr of the float
model's: the recipe's own search, and NNCF's accuracy control with that ratio as its metric.
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import figures  # noqa: E402
import peer_rows  # noqa: E402


def processor_seconds() -> float:
    """Of this process and those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def by_tenon(args) -> dict:
    command = [os.path.join(os.environ["TENON_BUILD"], "bin", "tenon"), "optimize", args.model]
    command += ["-o", args.out, "--recipe", "int8", "--data", args.data, "--json", "--trust"]
    command += ["--min-snr", str(args.min_snr)] if args.by == "tenon_search" else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    report = json.loads(done.stdout)
    return {
        "chosen": {
            key: report.get(key)
            for key in ("observer", "methods", "weak", "chosen_by", "mixed", "snr_db")
        }
    }


def newer(path: str, folder: str) -> str:
    """The model in opset 17 where it is older than 13: scales for channels begin there."""
    import onnx
    from onnx import version_converter

    model = onnx.load(path)
    if all(one.version >= 13 for one in model.opset_import if one.domain in ("", "ai.onnx")):
        return path
    made = os.path.join(folder, "newer.onnx")
    onnx.save(version_converter.convert_version(model, 17), made)
    return made


def worst_decibels(wanted: list, found: list) -> float:
    """Of all outputs of floats, at most the 100 that NNCF's metric takes as one."""
    pairs = zip(wanted, found, strict=True)
    floats = [(a, b) for a, b in pairs if a.dtype.kind == "f"]
    return min([100.0, *figures.decibels([a for a, _ in floats], [b for _, b in floats])])


def snr_validation(model, batches: list[dict]):
    """NNCF's validation function: SNR over 100, so that a drop of 0.8 leaves 20 dB."""
    import numpy as np
    import onnxruntime

    def outputs(one) -> list[list]:
        session = onnxruntime.InferenceSession(one.SerializeToString())
        return [session.run(None, batch) for batch in batches]

    wanted = outputs(model)

    def validate(one, _dataset):
        found = outputs(one.model_for_inference if hasattr(one, "model_for_inference") else one)
        each = [worst_decibels(*pair) / 100 for pair in zip(wanted, found, strict=True)]
        return float(np.mean(each)), each

    return validate


def by_nncf_control(args) -> dict:
    import nncf
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = newer(args.model, folder)
        rows = peer_rows.Rows(args.data, peer_rows.input_names(path), 0, 1)
        batches = list(iter(rows.get_next, None))
        seen = len(batches) * 3 // 4  # as the recipe, which judges on an eighth of the rest
        model = onnx.load(path)
        options = {"model_type": nncf.ModelType.TRANSFORMER} if args.transformer else {}
        made = nncf.quantize_with_accuracy_control(
            model,
            nncf.Dataset(batches[:seen]),
            nncf.Dataset(batches[seen:]),
            snr_validation(model, batches[seen:]),
            max_drop=1 - args.min_snr / 100,
            drop_type=nncf.DropType.ABSOLUTE,
            subset_size=seen,
            **options,
        )
        onnx.save(made, args.out)
    return {}


def by_nncf(args) -> dict:
    if args.by == "nncf_control":
        return by_nncf_control(args)
    import nncf
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        model = newer(args.model, folder)
        rows = peer_rows.Rows(args.data, peer_rows.input_names(model), 0, 1)
        batches = list(iter(rows.get_next, None))
        presets = {"nncf": "PERFORMANCE", "nncf_mixed": "MIXED"}
        preset = nncf.QuantizationPreset[presets[args.by]]
        options = {"subset_size": len(batches), "preset": preset}
        if args.transformer:
            options["model_type"] = nncf.ModelType.TRANSFORMER
        onnx.save(nncf.quantize(onnx.load(model), nncf.Dataset(batches), **options), args.out)
    return {}


def by_onnxruntime(args) -> dict:
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    methods = {one.name.lower(): one for one in quantization.CalibrationMethod}
    with tempfile.TemporaryDirectory() as folder:
        model = newer(args.model, folder)
        prepared = os.path.join(folder, "prepared.onnx")
        quant_pre_process(model, prepared, skip_symbolic_shape=True)
        quantization.quantize_static(
            prepared,
            args.out,
            peer_rows.Rows(args.data, peer_rows.input_names(model), 0, 1),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            calibrate_method=methods[args.by.removeprefix("ort_")],
        )
    return {}


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="quantize_one", description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--by", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--transformer", action="store_true")
    parser.add_argument("--min-snr", type=float, default=30, help="dB, of a search")
    args = parser.parse_args(argv)
    kinds = {"tenon": by_tenon, "nncf": by_nncf, "ort": by_onnxruntime}
    quantize = kinds[args.by.split("_")[0]]
    with contextlib.redirect_stdout(sys.stderr):  # peers print their progress
        if args.by.startswith("nncf"):
            import nncf  # noqa: F401
        begin, cpu = time.perf_counter(), processor_seconds()
        report = quantize(args)
        seconds, cpu = time.perf_counter() - begin, processor_seconds() - cpu
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu, **report}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
