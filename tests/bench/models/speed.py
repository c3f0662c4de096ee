# SPDX-License-Identifier: Apache-2.0
"""fp32 against the peers on one row, by versus.py."""

import json
import pathlib
import subprocess
import sys

import rows as table

VERSUS = pathlib.Path(__file__).resolve().parents[1] / "versus.py"


def measure(row: table.Row, threads: int) -> dict:
    command = [sys.executable, str(VERSUS), str(row.file()), "--json", "--threads", str(threads)]
    command += ["--rounds", "3"]
    shapes = dict(row.shapes) | {name: array.shape for name, array in row.given.items()}
    for name, shape in shapes.items():
        command += ["--shape", f"{name}={'x'.join(map(str, shape))}"]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"complaint": (done.stderr.strip().splitlines() or ["no answer"])[-1]}


def text(found: dict | None) -> str:
    if not found:
        return ""
    if "complaint" in found or not found.get("ratio"):
        return f"  speed: {found.get('complaint', 'no figures')}"
    times = ", ".join(f"{r['contestant']} {r['median_ms']:.2f}" for r in found["figures"])
    return f"  {found['ratio']:.2f}x ({times} ms)"
