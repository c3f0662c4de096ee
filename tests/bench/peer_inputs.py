# SPDX-License-Identifier: Apache-2.0
"""Inputs of a timed run: shapes and files from the command line, random floats, zero integers.

The rules are those of `tenon bench`, so that every contestant computes on the same kind of data.
"""

import numpy as np


def pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise ValueError(f"expected NAME=VALUE, got '{text}'")
    return name, value


def shapes_of(pairs: list[str]) -> dict[str, tuple[int, ...]]:
    """NAME=1x3x224x224 for each input."""
    out = {}
    for text in pairs:
        name, value = pair(text)
        try:
            out[name] = tuple(int(part) for part in value.split("x"))
        except ValueError as error:
            raise ValueError(f"expected NAME=1x3x224x224, got '{text}'") from error
    return out


def arrays_of(pairs: list[str]) -> dict[str, np.ndarray]:
    """NAME=FILE.npy for each input that is given."""
    return {name: np.load(path) for name, path in map(pair, pairs)}


def make(wanted: dict[str, tuple[np.dtype, list]], shapes, given, seed=0) -> dict[str, np.ndarray]:
    """wanted: each input's dtype and declared dims (None where dynamic)."""
    unknown = sorted((set(shapes) | set(given)) - set(wanted))
    if unknown:
        raise ValueError(f"input {unknown[0]}: expected one of {', '.join(wanted)}")
    rng = np.random.default_rng(seed)
    out = {}
    for name, (dtype, dims) in wanted.items():
        if name in given:
            out[name] = np.ascontiguousarray(given[name], dtype)
            continue
        shape = shapes.get(name, tuple(dims))
        if any(extent is None for extent in shape):
            raise ValueError(f"input {name}: expected --shape for dynamic dims {list(dims)}")
        if np.issubdtype(dtype, np.floating):
            out[name] = rng.standard_normal(shape).astype(dtype)
        else:
            out[name] = np.zeros(shape, dtype)
    return out
