# SPDX-License-Identifier: Apache-2.0
"""Crops of scikit-learn's two photographs as ImageNet-style input: float32 [n, 3, 224, 224].

Calibration crops come from one photograph and evaluation crops from the other.
"""

import io

import numpy as np

from models import wheels
from models.output import Output

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


def crops(image, count: int, rng) -> np.ndarray:
    """Random square crops of 40 to 100 % of the short side, half of them mirrored."""
    from PIL import Image

    out = np.zeros((count, 3, 224, 224), np.float32)
    for row in out:
        side = int(min(image.size) * rng.uniform(0.4, 1))
        left = int(rng.integers(0, image.width - side + 1))
        top = int(rng.integers(0, image.height - side + 1))
        box = (left, top, left + side, top + side)
        pixels = np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR, box), np.float32)
        if rng.random() < 0.5:
            pixels = pixels[:, ::-1]
        row[:] = ((pixels / 255 - MEAN) / DEVIATION).transpose(2, 0, 1)
    return out


def build(output: Output, n_calib=64, n_eval=32, seed=3) -> None:
    from PIL import Image

    rng = np.random.default_rng(seed)
    for part, count, file in (("calib", n_calib, "china.jpg"), ("eval", n_eval, "flower.jpg")):
        packed = output.member(wheels.SKLEARN, f"sklearn/datasets/images/{file}")
        image = Image.open(io.BytesIO(packed)).convert("RGB")
        output.put_arrays(f"photos_{part}.npz", {"image": crops(image, count, rng)})
    output.say(f"photos: calibration from china.jpg, evaluation from flower.jpg, seed {seed}")
