# SPDX-License-Identifier: Apache-2.0
"""Windows of English text by character: characters_train.npz, characters_test.npz.

`token` and `label` are int64 [n, 64]: 96 symbols (those of ASCII that can be printed, and the end
of a line), and each one's successor. The texts are licences from Debian's base-files; those to test
with are by other authors than those to train with.
"""

import pathlib
import re

import numpy as np

from models import wheels
from models.output import Output

STEPS = 64
TEXT_ROOT = pathlib.Path("/usr/share/common-licenses")
TRAIN_TEXTS = ("GPL-3", "GPL-2", "LGPL-2.1", "GFDL-1.3", "MPL-2.0")
TEST_TEXTS = ("Apache-2.0", "Artistic", "CC0-1.0")


def symbols_of(texts: tuple[str, ...]) -> np.ndarray:
    missing = [name for name in texts if not (TEXT_ROOT / name).exists()]
    if missing:
        raise wheels.FetchError(
            f"characters: expected the text {TEXT_ROOT / missing[0]} (package base-files)"
        )
    joined = "\n".join((TEXT_ROOT / name).read_text(errors="ignore") for name in texts)
    kept = re.sub(r"[^ -~\n]", "", re.sub(r"[ \t]+", " ", joined))
    return np.array([95 if c == "\n" else ord(c) - 32 for c in kept])


def windows(texts: tuple[str, ...], count: int, seed: int) -> dict[str, np.ndarray]:
    symbols = symbols_of(texts)
    begin = np.random.default_rng(seed).integers(0, len(symbols) - STEPS, count)
    taken = symbols[begin[:, None] + np.arange(STEPS + 1)]
    return {"token": taken[:, :-1], "label": taken[:, 1:]}


def build(output: Output, n_train=8000, n_test=1000, seed=6) -> None:
    output.put_arrays("characters_train.npz", windows(TRAIN_TEXTS, n_train, seed))
    output.put_arrays("characters_test.npz", windows(TEST_TEXTS, n_test, seed + 1))
