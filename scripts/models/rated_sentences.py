# SPDX-License-Identifier: Apache-2.0
"""Sentences from film reviews with a human rating from -4 to 4 (Hutto and Gilbert, ICWSM 2014).

The texts belong to their authors: they are read from the package and never kept in the repository.
"""

import numpy as np

from models import wheels
from models.output import Output

_INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
_TABLE = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"


def parse(text: str) -> list[tuple[str, int]]:
    """(sentence, 1 if rated positive else 0), without repeats and without neutral ones."""
    rows, seen = [], set()
    for line in text.splitlines():
        parts = line.split("\t", 2)
        if len(parts) != 3 or float(parts[1]) == 0 or parts[2].strip().lower() in seen:
            continue
        seen.add(parts[2].strip().lower())
        rows.append((parts[2].strip(), int(float(parts[1]) > 0)))
    return rows


def divide(rows, sizes: dict[str, int], seed: int):
    """Seeded shuffle, then consecutive parts: {name: (texts, int64 labels)}; no row is in two."""
    if sum(sizes.values()) > len(rows):
        raise wheels.FetchError(
            f"rated sentences: expected at most {len(rows)} in all, got {sum(sizes.values())}"
        )
    order = np.random.default_rng(seed).permutation(len(rows))
    parts, begin = {}, 0
    for name, n_rows in sizes.items():
        chosen = [rows[i] for i in order[begin : begin + n_rows]]
        begin += n_rows
        parts[name] = ([row[0] for row in chosen], np.array([row[1] for row in chosen], np.int64))
    return parts


def read(output: Output, sizes: dict[str, int], seed: int):
    """Parts of so many sentences by name, in this order; see `divide`."""
    table = wheels.nested_member(output.member(wheels.VADER, _INNER), _TABLE)
    rows = parse(table.decode("latin-1"))
    parts = divide(rows, sizes, seed)
    listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
    output.say(f"rated sentences: {len(rows)} in all, {listed}, seed {seed}")
    return parts


def split(output: Output, n_calib: int, n_eval: int, n_train: int, seed: int):
    return read(output, {"eval": n_eval, "calib": n_calib, "train": n_train}, seed)
