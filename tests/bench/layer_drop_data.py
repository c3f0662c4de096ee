# SPDX-License-Identifier: Apache-2.0
"""The digits that `layer_drop.py` and its twin in PyTorch learn."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

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
