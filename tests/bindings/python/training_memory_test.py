# SPDX-License-Identifier: Apache-2.0
"""What training takes in memory besides its steps."""

import subprocess
import sys

# Prints how much more memory the end of a training takes than its last step, in sizes of the
# weights.
MEASURE = """
import pathlib
import numpy as np
import tenon as tn

WIDTH = 2048
layers = tn.nn.Sequential(tn.nn.Linear(WIDTH), tn.nn.Linear(3))
model = tn.nn.build(layers, {"x": ("N", WIDTH)}, seed=0)
data = {"x": np.zeros((4, WIDTH), "float32"), "label": np.zeros(4, "int64")}

def kilobytes(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

def step(point):
    global last
    last = kilobytes("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the highest mark starts again

tn.train(model, data, epochs=2, optimizer="adam", callbacks=tn.callback(step=step))
print((kilobytes("VmHWM") - last) * 1024 / (4 * WIDTH * WIDTH))
"""


def test_the_optimizers_states_are_not_copied_for_the_trained_model():
    made = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    # The weights in the model, and while they are put there. The two states are as large each.
    assert float(made.stdout) < 2.9
