# SPDX-License-Identifier: Apache-2.0
"""Reads a safetensors blob into NumPy arrays (8 bytes of header length, JSON header, data)."""

import json

import numpy as np

_DTYPES = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}


def load(blob: bytes) -> dict[str, np.ndarray]:
    n_header = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + n_header])
    data = memoryview(blob)[8 + n_header :]
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], _DTYPES[entry["dtype"]])
        # The data part starts anywhere; NumPy's matmul is slow on unaligned arrays.
        arrays[name] = array.reshape(entry["shape"]).copy()
    return arrays
