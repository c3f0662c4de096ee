# SPDX-License-Identifier: Apache-2.0
"""Tenon's default int8 beside NNCF's and ONNX Runtime's, on pretrained models and real data.

  quantizers.py [--only 'minilm*'] [--with tenon,nncf] [--samples 400] [--work FOLDER]
                [--networks FOLDER] [--python PYTHON] [--json FILE]

Everyone has the same samples to quantize with and is judged on others, of which nobody has seen
any: signal to noise, decisions that stay the float model's, and the task's own figure. ONNX Runtime
runs every file without its optimizations, so that what counts is what the file says. One process
for each quantizer (quantize_one.py), in --python, which has to have the peers. With
`--with tenon_search,nncf_control --min-snr DB` both search for layers to leave in float.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors
from quantizer_cases import CASES, Case, Missing, Scores
from quantizer_macs import integer_macs, session_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from figures import decibels  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CONTESTANTS = ("tenon", "nncf", "nncf_mixed", "ort_minmax", "ort_percentile", "ort_entropy")
COLUMNS = (
    "model", "by", "SNR dB", "less than Tenon", "decisions %", "task %", "less than Tenon's",
    "MB", "int8 MACs %", "CPU s",
)  # fmt: skip


def quantized(case: Case, by: str, folder: pathlib.Path, args) -> dict:
    """What quantize_one.py prints, with `file`; or `error`."""
    target = folder / f"{case.name}.{by}.onnx"
    command = [args.python, str(HERE / "quantize_one.py"), str(case.model(args)), str(target)]
    command += ["--by", by, "--data", str(folder / f"{case.name}.calib.npz")]
    command += ["--transformer"] if case.is_transformer else []
    command += ["--min-snr", str(args.min_snr)]
    path = os.pathsep.join([str(args.build / "python"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "TENON_BUILD": str(args.build)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["no answer"])[-1]}
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "file": str(target)}


def interval(difference: np.ndarray, digits: int) -> str:
    if len(difference) < 2:
        return ""
    half = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
    return f"{difference.mean():+.{digits}f} ± {half:.{digits}f}"


def judged(case: Case, path: str, feeds: list[dict], labels) -> Scores:
    session = session_of(path)
    names = {one.name for one in session.get_inputs()}
    outputs = [session.run(None, {k: v for k, v in one.items() if k in names}) for one in feeds]
    return case.scores(outputs, labels)


def rows(case: Case, folder: pathlib.Path, args):
    calibration, feeds, labels = case.data(args)
    np.savez(folder / f"{case.name}.calib.npz", **calibration)
    float_file = str(case.model(args))
    right = judged(case, float_file, feeds, labels)
    yield {
        "model": case.name,
        "by": "float",
        "task %": f"{100 * right.task.mean():.2f}" if right.task is not None else "",
        "MB": f"{os.path.getsize(float_file) / 1e6:.3f}",
    }
    own = None
    for by in args.contestants.split(","):
        report = quantized(case, by, folder, args)
        if "error" in report:
            yield {"model": case.name, "by": by, "SNR dB": report["error"][:80]}
            continue
        try:
            found = judged(case, report["file"], feeds, labels)
        except ort_errors.Fail as error:  # ONNX Runtime refuses some files of its own quantizer
            if by == "tenon":
                raise
            yield {"model": case.name, "by": by, "SNR dB": f"refused: {str(error)[:80]}"}
            continue
        snr = decibels(right.signal, found.signal)
        same = np.array([np.mean(a == b) for a, b in zip(right.decided, found.decided)])
        row = {
            "model": case.name,
            "by": by,
            "SNR dB": f"{snr.mean():.2f}",
            "decisions %": f"{100 * same.mean():.2f}" if len(same) else "",
            "task %": f"{100 * found.task.mean():.2f}" if found.task is not None else "",
            "MB": f"{os.path.getsize(report['file']) / 1e6:.3f}",
            "int8 MACs %": f"{100 * integer_macs(report['file'], feeds[0])['share']:.1f}",
            "CPU s": f"{report['cpu_seconds']:.1f}",
            "chosen": report.get("chosen", ""),
        }
        if by.startswith("tenon"):
            own = (snr, found)
        elif own is not None:
            row["less than Tenon"] = interval(own[0] - snr, 2)
            if found.task is not None:
                row["less than Tenon's"] = interval(100 * (own[1].task - found.task), 2)
        yield row


def line(cells) -> str:
    return f"| {' | '.join(cells)} |"


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="quantizers", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="patterns of names, by commas")
    parser.add_argument("--with", dest="contestants", default=",".join(CONTESTANTS))
    parser.add_argument("--samples", type=int, default=400, help="to judge on")
    parser.add_argument("--min-snr", type=float, default=30, help="of tenon_search, nncf_control")
    parser.add_argument("--calibration", type=int, default=128, help="samples to quantize with")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / ".cache" / "models")
    networks = ROOT / "runs" / "networks"
    parser.add_argument(
        "--networks", type=pathlib.Path, default=networks, help="kept ones, as ONNX"
    )
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--work", type=pathlib.Path, help="keeps the files here")
    parser.add_argument("--json", type=pathlib.Path, help="rows go there as well")
    args = parser.parse_args(argv)
    sys.path.insert(0, str(args.build / "python"))  # quantizer_macs imports tenon
    all_rows = []
    print(line(COLUMNS) + "\n" + line(["---"] * len(COLUMNS)), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.work or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in CASES:
            if not any(fnmatch.fnmatch(case.name, one) for one in args.only.split(",")):
                continue
            try:
                for row in rows(case, folder, args):
                    all_rows.append(row)
                    print(line([row.get(column, "") for column in COLUMNS]), flush=True)
            except Missing as why:
                print(line([case.name, str(why)]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(all_rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
