# SPDX-License-Identifier: Apache-2.0
"""Outlines of leaves as series (OSULeaf of the UCR archive): leaves_train.npz, leaves_test.npz.

`series` float32 [n, 427, 1], each with mean 0 and deviation 1; `label` int64, six species. The
split is the archive's: 200 to train, 242 to test. An outline begins anywhere: each of those to
train is there `turns` times, first as it was, then from other points on.
"""

import numpy as np

from models import wheels
from models.output import Output

MEMBER = "aeon/datasets/data/OSULeaf/OSULeaf_{}.ts"


def parsed(text: str) -> dict[str, np.ndarray]:
    """The archive's form: a header up to @data, then "number,number,...:class" a line."""
    rows = [line.rsplit(":", 1) for line in text.partition("@data")[2].split()]
    series = np.array([[float(number) for number in row[0].split(",")] for row in rows], "f")
    classes = sorted({row[1] for row in rows}, key=float)
    return {"series": series[..., None], "label": np.array([classes.index(r[1]) for r in rows])}


def rotated(leaves: dict[str, np.ndarray], turns: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    series, length = leaves["series"], leaves["series"].shape[1]
    more = [np.roll(one, rng.integers(length), 0) for _ in range(turns - 1) for one in series]
    return {
        "series": np.concatenate([series, more]) if more else series,
        "label": np.tile(leaves["label"], turns),
    }


def build(output: Output, turns=16, seed=10) -> None:
    parts = {}
    for part in ("train", "test"):
        text = output.member(wheels.AEON, MEMBER.format(part.upper())).decode()
        parts[part] = parsed(text)
    output.put_arrays("leaves_train.npz", rotated(parts["train"], turns, seed))
    output.put_arrays("leaves_test.npz", parts["test"])
