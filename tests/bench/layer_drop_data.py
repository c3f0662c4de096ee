# SPDX-License-Identifier: Apache-2.0
"""What `layer_drop.py` and its twin in PyTorch share: digits, and the interval of differences."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)  # 95 %, from 2 pairs on
BATCH = 64


@dataclass
class Digits:
    """Images of one channel, size x size, in patches; `scripts/fetch` made the files."""

    name: str
    size: int
    patch: int
    width: int  # of the network

    def read(self, folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
        with np.load(folder / f"{self.name}_{part}.npz") as arrays:
            image = next(arrays[name] for name in arrays if name != "label")
            return image.reshape(-1, 1, self.size, self.size), arrays["label"]


DATA = {"mnist": Digits("mnist", 28, 4, 64), "digits": Digits("digits", 8, 2, 32)}


def interval(values):
    """Mean and the ends of its 95 % interval."""
    mean, n = np.mean(values), len(values)
    margin = STUDENT[n - 2] * np.std(values, ddof=1) / n**0.5
    return mean, mean - margin, mean + margin
