# SPDX-License-Identifier: Apache-2.0
"""Writes fp8.json: eight steps of a two-layer network whose products have float8 operands.

    python tests/golden/fp8.py > tests/golden/fp8.json      # needs numpy and ml_dtypes

The formulas of delayed scaling of NVIDIA's Transformer Engine (recipe.DelayedScaling, HYBRID) in
NumPy, with the formats of ml_dtypes; sums of products in float64. What a step sees changes by
powers of two, so that scales saturate, grow and shrink.
"""

import json

import ml_dtypes
import numpy as np

FORMATS = {"E4M3": (ml_dtypes.float8_e4m3fn, 448.0), "E5M2": (ml_dtypes.float8_e5m2, 57344.0)}
TENSORS = {"x": "E4M3", "w1": "E4M3", "h": "E4M3", "w2": "E4M3", "dy": "E5M2", "dz": "E5M2"}
CASES = [
    {"history": 3, "margin": 1},
    {"history": 1, "margin": 0},
    {"history": 4, "margin": 0, "amax": "most_recent"},
    {"history": 1024, "margin": 0, "format": "e4m3"},
]
SIZES = [1, 1, 64, 0.25, 0.25, 0.25, 1024, 0]


class Tensor:
    def __init__(self, form, history, margin, amax):
        self.kind, self.largest = FORMATS[form]
        self.history = np.zeros(history, "f4")
        self.scale = np.float32(1)
        self.margin, self.amax = margin, amax

    def rounded(self, x):
        self.history[0] = np.abs(x).max()  # slot 0 collects what this step sees
        held = np.clip(x * self.scale, -self.largest, self.largest).astype("f4")
        return held.astype(self.kind).astype("f4") * (np.float32(1) / self.scale)

    def update(self):
        amax = self.history.max() if self.amax == "max" else self.history[0]
        self.history = np.roll(self.history, -1)
        self.history[0] = 0
        if amax > 0 and np.isfinite(amax):
            self.scale = np.float32(self.largest) / amax / np.float32(2.0**self.margin)


def product(a, b):
    return (a.astype("f8") @ b.astype("f8")).astype("f4")


def run(options):
    draws = np.random.default_rng(5)

    def numbers(*shape):
        return (draws.integers(-64, 65, shape) / 64).astype("f4")

    w1, w2, t = numbers(3, 5), numbers(5, 2), numbers(4, 2)
    hybrid = options.get("format", "hybrid") == "hybrid"
    tensors = {
        name: Tensor(
            form if hybrid else "E4M3",
            options["history"],
            options["margin"],
            options.get("amax", "max"),
        )
        for name, form in TENSORS.items()
    }
    steps = []
    for size in SIZES:
        x = numbers(4, 3) * np.float32(size)
        low = {name: tensors[name].rounded(v) for name, v in (("x", x), ("w1", w1))}
        z = product(low["x"], low["w1"])
        h = np.maximum(z, 0)
        low |= {name: tensors[name].rounded(v) for name, v in (("h", h), ("w2", w2))}
        d = product(low["h"], low["w2"]) - t
        low["dy"] = tensors["dy"].rounded(d * np.float32(0.25))
        dz = product(low["dy"], low["w2"].T) * (z > 0)
        low["dz"] = tensors["dz"].rounded(dz)
        for one in tensors.values():
            one.update()
        steps.append(
            {
                "x": x.ravel().tolist(),
                "loss": float(np.mean(d.astype("f8") ** 2)),
                "grad/w1": product(low["x"].T, low["dz"]).ravel().tolist(),
                "grad/w2": product(low["h"].T, low["dy"]).ravel().tolist(),
                "scales": {name: float(one.scale) for name, one in tensors.items()},
            }
        )
    weights = {"w1": w1.ravel().tolist(), "w2": w2.ravel().tolist(), "t": t.ravel().tolist()}
    return {"options": options, "weights": weights, "steps": steps}


if __name__ == "__main__":
    source = f"NumPy {np.__version__}, ml_dtypes {ml_dtypes.__version__}, by fp8.py beside this"
    print(json.dumps({"source": source, "cases": [run(options) for options in CASES]}))
