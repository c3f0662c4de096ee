# SPDX-License-Identifier: Apache-2.0
"""Calibration data for the peers' own quantizers, from the npz that Tenon takes."""

import numpy as np
import onnx


def input_names(path: str) -> list[str]:
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    return [value.name for value in graph.input if value.name not in weights]


class Rows:
    """Hands out an npz batch by batch, as ONNX Runtime's CalibrationDataReader does."""

    def __init__(self, path: str, names: list[str], n_samples: int, batch: int):
        with np.load(path) as data:
            self.arrays = {name: data[name][: n_samples or None] for name in names}
        self.n_rows = len(next(iter(self.arrays.values())))
        self.batch = batch
        self.begin = 0

    def get_next(self):
        if self.begin >= self.n_rows:
            return None
        end = self.begin + self.batch
        rows = {name: array[self.begin : end] for name, array in self.arrays.items()}
        self.begin = end
        return rows

    def __len__(self):
        return -(-self.n_rows // self.batch)

    def set_range(self, start_index: int, end_index: int):
        raise NotImplementedError("the whole of the data is calibrated at once")
