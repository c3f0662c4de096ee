# SPDX-License-Identifier: Apache-2.0
"""Sequences and optionals as the packed lists that plans take and give (abi/lists.md).

A sequence is a list of arrays, an optional the array or list itself, or None.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MAGIC = 0x003154534C4E54
_ALIGNMENT = 64
_CODES = {"bool": (6, 8), "bfloat16": (4, 16)} | {
    f"{name}{bits}": (code, bits)
    for code, name, widths in (
        (0, "int", (8, 16, 32, 64)),
        (1, "uint", (8, 16, 32, 64)),
        (2, "float", (16, 32, 64)),
    )
    for bits in widths
}
_NAMES = {code | bits << 8 | 1 << 16: name for name, (code, bits) in _CODES.items()}


def _dtype(name: str) -> np.dtype:
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _packed(items: list[Any]) -> np.ndarray:
    data = bytearray()

    def words(*numbers: int) -> None:
        data.extend(bytes(-len(data) % 8))
        data.extend(np.asarray(numbers, "<u8").tobytes())

    words(_MAGIC, len(items))
    for item in items:
        array = _packed(item) if isinstance(item, (list, tuple)) else np.asarray(item)
        if array.dtype.name not in _CODES:
            raise TypeError(f"sequence: expected one of {', '.join(_CODES)}, got {array.dtype}")
        code, bits = _CODES[array.dtype.name]
        words(int(isinstance(item, (list, tuple))), code | bits << 8 | 1 << 16, array.ndim)
        words(*array.shape)
        data.extend(bytes(-len(data) % _ALIGNMENT))
        data.extend(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(bytes(data), np.uint8)


def _unpacked(raw: np.ndarray) -> list[Any]:
    data, at = raw.tobytes(), 0

    def words(count: int) -> list[int]:
        nonlocal at
        at += -at % 8
        found = np.frombuffer(data, "<u8", count, at).tolist()
        at += 8 * count
        return found

    magic, count = words(2)
    if magic != _MAGIC:
        raise ValueError("expected a packed list, got other bytes")
    items: list[Any] = []
    for _ in range(count):
        is_list, code, rank = words(3)
        shape = words(rank)
        at += -at % _ALIGNMENT
        dtype = _dtype(_NAMES[code])
        size = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(data, dtype, size, at).reshape(shape).copy()
        at += size * dtype.itemsize
        items.append(_unpacked(array) if is_list else array)
    return items


def pack(value: Any, kind: str) -> Any:
    """What a plan takes for an input of this kind ("tensor", "sequence", "optional")."""
    if kind == "tensor":
        return value
    if kind == "sequence":
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"expected a list of arrays, got {type(value).__name__}")
        return _packed(list(value))
    return _packed([] if value is None else [value])


def unpack(value: Any, kind: str) -> Any:
    """What a plan gave for an output of this kind."""
    if kind == "tensor":
        return value
    items = _unpacked(value)
    if kind == "sequence":
        return items
    return items[0] if items else None
