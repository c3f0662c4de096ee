# SPDX-License-Identifier: Apache-2.0
"""Element types of traced values, by name, and which one two of them give together."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

_FLOAT_BITS = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}


# A type has a short and a long name everywhere: "bf16" is "bfloat16", "fp32" and "f32" "float32".
_LONG = {"bf": "bfloat", "fp": "float", "f": "float", "i": "int", "u": "uint"}
_SHORT = re.compile(r"(bf|fp|f|i|u)(\d+)")


def is_float(dtype: str) -> bool:
    return dtype in _FLOAT_BITS


def name_of(dtype: Any) -> str:
    """ "float32" for np.float32, "float32", a NumPy dtype, or Python's own bool, int, float."""
    if isinstance(dtype, str):
        short = _SHORT.fullmatch(dtype)
        return _LONG[short.group(1)] + short.group(2) if short else dtype
    own = {bool: "bool", int: "int64", float: "float32"}
    if dtype in own:
        return own[dtype]
    return np.dtype(dtype).name


def together(a: str, b: str) -> str:
    """The type of `x + y`: a float wins over integers and keeps its width."""
    if a == b:
        return a
    if is_float(a) and is_float(b):
        if _FLOAT_BITS[a] == _FLOAT_BITS[b]:
            return "float32"  # float16 with bfloat16
        return a if _FLOAT_BITS[a] > _FLOAT_BITS[b] else b
    if is_float(a) or is_float(b):
        return a if is_float(a) else b
    return np.promote_types(a, b).name


def with_number(dtype: str | None, number: Any) -> str:
    """The type of `x + 2`: a number of Python takes the array's type where its kind is no wider."""
    own = name_of(type(number))
    if dtype is None or dtype == own:
        return own
    if isinstance(number, bool) or is_float(dtype):
        return dtype
    if isinstance(number, int):
        return own if dtype == "bool" else dtype
    return own
