# SPDX-License-Identifier: Apache-2.0
"""The int8 files of one row: ours, which everyone runs, and those of the peers' own quantizers."""

import pathlib
import subprocess
import sys
import tempfile

import check
import rows as table
import tenon

FOLDER = table.CACHE / "exports" / "int8"
QUANTIZE = pathlib.Path(__file__).resolve().parents[1] / "peer_quantize.py"
TRANSFORMERS = ("minilm", "bert_base", "vit_s", "swin_t", "gpt2")
# Who runs the file: the peer's quantizer as peer_quantize.py names it.
OWN = {"onnxruntime": "onnxruntime", "openvino": "nncf"}
MOST_SECONDS = 600


def path_of(row: table.Row, by: str) -> pathlib.Path:
    return FOLDER / f"{row.name.replace(' ', '_')}.{by}.onnx"


def make_own(row: table.Row, quantizer: str, data: str) -> None:
    """A peer's own file; where it does not take the model, its last line is kept in its place."""
    path = path_of(row, quantizer)
    command = [sys.executable, str(QUANTIZE), str(row.file()), str(path)]
    command += ["--with", quantizer, "--data", data]
    if quantizer == "nncf" and row.network() in TRANSFORMERS:
        command += ["--transformer"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
        failed = done.returncode != 0
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        failed, why = True, f"no file within {MOST_SECONDS} s"
    if failed:
        path.with_suffix(".txt").write_text(why + "\n")


def prepare(row: table.Row) -> None:
    """Makes what is not there yet. Peers have no file of their own for dynamic recipes."""
    if not row.recipe:
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    model = tenon.load(row.file())
    with tempfile.TemporaryDirectory() as folder:
        ours = path_of(row, "tenon")
        if not ours.exists():
            check.quantized(row, model, folder).save(ours)
        if row.recipe != "quantizer.static":
            return
        data = str(check.calibration(row, model, folder))
        for quantizer in OWN.values():
            path = path_of(row, quantizer)
            if not path.exists() and not path.with_suffix(".txt").exists():
                make_own(row, quantizer, data)


def contestants(row: table.Row) -> list[str]:
    """versus.py's --int8 options."""
    prepare(row)
    if not row.recipe:
        return [f"all={row.file()}"]
    files = [f"all={path_of(row, 'tenon')}"]
    for engine, quantizer in OWN.items():
        path = path_of(row, quantizer)
        files += [f"{engine}={path}"] if path.exists() else []
    return files


def refusals(row: table.Row) -> dict[str, str]:
    """Quantizers that gave no file, and why."""
    notes = {quantizer: path_of(row, quantizer).with_suffix(".txt") for quantizer in OWN.values()}
    return {by: note.read_text().strip() for by, note in notes.items() if note.exists()}
