# SPDX-License-Identifier: Apache-2.0
"""The steps that two builds choose for the same models, compared.

.venv/bin/python tests/bench/onednn/chosen.py OLD_BUILD NEW_BUILD MODEL.onnx[:NAME=AxBxC[,...]] ...

Each model is compiled in fp32 and in bf16 for this CPU and for lesser ones (oneDNN's
ONEDNN_MAX_CPU_ISA); a line says how many steps each build has, the first step that differs, and
how long each took to compile, in ms. Exits with 1 where steps differ.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

CPUS = ("DEFAULT", "AVX512_CORE_BF16", "AVX512_CORE", "AVX2")
SAME = ("name", "op", "kernel", "flops", "bytes")


def bench(build: Path, model: str, precision: str, cpu: str) -> dict:
    """What `tenon bench --layers` says of one build."""
    path, _, shapes = model.partition(":")
    command = [build / "bin/tenon", "bench", path, "--backend", "onednn", "--precision", precision]
    command += ["--threads", "2", "--rounds", "1", "--layers", "--json"]
    for shape in filter(None, shapes.split(",")):
        command += ["--shape", shape]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": cpu}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        return {"layers": [{"name": done.stderr.strip()}], "compile_ms": 0.0, "arena_bytes": 0}
    return json.loads(done.stdout)


def first_difference(old: list[dict], new: list[dict]) -> str:
    """Of two lists of layers: nothing where all are the same."""
    for i in range(max(len(old), len(new))):
        rows = [
            [layers[i].get(key) for key in SAME] if i < len(layers) else None
            for layers in (old, new)
        ]
        if rows[0] != rows[1]:
            return f"step {i}: expected {rows[0]}, got {rows[1]}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--cpus", nargs="+", default=CPUS)
    arguments = parser.parse_args()
    n_different = 0
    for model in arguments.models:
        for cpu in arguments.cpus:
            for precision in ("fp32", "bf16"):
                old, new = (
                    bench(build, model, precision, cpu) for build in (arguments.old, arguments.new)
                )
                why = first_difference(old["layers"], new["layers"])
                if not why and old["arena_bytes"] != new["arena_bytes"]:
                    why = f"arena: expected {old['arena_bytes']}, got {new['arena_bytes']}"
                n_different += bool(why)
                print(
                    f"{Path(model.partition(':')[0]).name:20} {precision} {cpu:17}",
                    f"{len(old['layers']):4} {len(new['layers']):4} steps",
                    f"{old['compile_ms']:8.1f} {new['compile_ms']:8.1f} ms  {why or 'same'}",
                    flush=True,
                )
    return int(n_different > 0)


if __name__ == "__main__":
    sys.exit(main())
