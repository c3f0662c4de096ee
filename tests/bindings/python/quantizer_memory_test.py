# SPDX-License-Identifier: Apache-2.0
"""Repairs of quantized models take the same memory for any number of samples."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from onnx import helper
from onnx_models import constant, info, model_of

CHANNELS, SIZE, BATCH = 32, 64, 2
VALUE_MB = CHANNELS * SIZE * SIZE * 4 / 2**20  # one activation of one sample

# Prints by how many MB the process grows for a pass over so many samples.
MEASURE = """
import pathlib, sys
import tenon

def megabytes(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024

model, data, samples, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
whole = tenon.load(model)
small = whole.apply("quantizer.static", data=data, samples=2, batch=2, observer="minmax")
def repaired(samples):
    return small.apply("quantizer.correct_bias", data=data, original=whole, samples=samples,
                       batch=batch)
repaired(batch)  # what does not depend on samples
start = megabytes("VmRSS")
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the highest mark starts again
assert repaired(samples).report["samples"] == samples
print(megabytes("VmHWM") - start)
"""


def convolutions(folder: Path) -> str:
    """x [N, 1, 64, 64] -> three Convs of 32 channels; the first result is added at the end."""
    rng = np.random.default_rng(1)
    weights, nodes, read = [], [], "x"
    for i, n in enumerate([1, CHANNELS, CHANNELS]):
        weights += [
            constant(f"w{i}", rng.standard_normal((CHANNELS, n, 3, 3)).astype("f") / 8),
            constant(f"b{i}", rng.standard_normal(CHANNELS).astype("f")),
        ]
        nodes += [
            helper.make_node("Conv", [read, f"w{i}", f"b{i}"], [f"c{i}"], pads=[1] * 4),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
        ]
        read = f"r{i}"
    nodes.append(helper.make_node("Add", ["r0", read], ["y"]))
    shape = ["N", CHANNELS, SIZE, SIZE]
    inputs, outputs = [info("x", ["N", 1, SIZE, SIZE])], [info("y", shape)]
    path = folder / "model.onnx"
    path.write_bytes(model_of(nodes, inputs, outputs, weights).SerializeToString())
    return path.as_posix()


def test_bias_correction_takes_no_memory_for_more_samples(tmp_path: Path) -> None:
    samples = 96
    x = np.random.default_rng(2).standard_normal((samples, 1, SIZE, SIZE)).astype("f")
    data = tmp_path / "x.npz"
    np.savez(data, x=x)
    command = [sys.executable, "-c", MEASURE, convolutions(tmp_path), data.as_posix()]
    grown = []
    for n in (16, samples):
        made = subprocess.run([*command, str(n), str(BATCH)], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        grown.append(float(made.stdout))
    # Two models that each keep at least one value of all samples would grow by twice this.
    assert grown[1] - grown[0] < 0.5 * VALUE_MB * (samples - 16)
