# SPDX-License-Identifier: Apache-2.0
"""Sizes and element types of traced values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

#: A size: known, by its name, or unknown.
Dim = int | str | None


class Input(NamedTuple):
    """An input of a network: sizes, and names of those that are known at run time."""

    shape: Sequence[Dim]
    dtype: str = "float32"


# Element types by the array API's names; NumPy takes them, and compares equal to them.
int8, int16, int32, int64 = "int8", "int16", "int32", "int64"
uint8, uint16, uint32, uint64 = "uint8", "uint16", "uint32", "uint64"
float16, bfloat16, float32, float64 = "float16", "bfloat16", "float32", "float64"

_FLOATS = {"float16", "bfloat16", "float32", "float64"}


# A type has a short and a long name everywhere: "bf16" is "bfloat16", "fp32" and "f32" "float32".
_LONG = {"bf": "bfloat", "fp": "float", "f": "float", "i": "int", "u": "uint"}
_SHORT = re.compile(r"(bf|fp|f|i|u)(\d+)")


def is_float(dtype: str) -> bool:
    return dtype in _FLOATS


def name_of(dtype: Any) -> str:
    """ "float32" for np.float32, "float32", a NumPy dtype, or Python's own bool, int, float."""
    if isinstance(dtype, str):
        short = _SHORT.fullmatch(dtype)
        return _LONG[short.group(1)] + short.group(2) if short else dtype
    own = {bool: "bool", int: "int64", float: "float32"}
    if dtype in own:
        return own[dtype]
    return np.dtype(dtype).name
