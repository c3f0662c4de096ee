# SPDX-License-Identifier: Apache-2.0
"""8x8 digits of scikit-learn, and a multilayer perceptron 64-64-32-10 trained on them in NumPy."""

import gzip
import io

import numpy as np
from onnx import TensorProto

from models import wheels
from models.graph import Graph
from models.output import Output

SIZES = (64, 64, 32, 10)
N_TRAIN = 1297


def load(output: Output, seed: int):
    """(train x, train y, test x, test y); x: [n, 64] in 0..1."""
    packed = output.member(wheels.SKLEARN, "sklearn/datasets/data/digits.csv.gz")
    table = np.loadtxt(io.BytesIO(gzip.decompress(packed)), delimiter=",", dtype=np.float32)
    table = table[np.random.default_rng(seed).permutation(len(table))]
    x, y = table[:, :-1] / 16, table[:, -1].astype(np.int64)
    return x[:N_TRAIN], y[:N_TRAIN], x[N_TRAIN:], y[N_TRAIN:]


def forward(layers, x):
    """Activations of every layer, the input first and the logits last."""
    values = [x]
    for index, (weight, bias) in enumerate(layers):
        x = x @ weight.T + bias
        if index < len(layers) - 1:
            x = np.maximum(x, 0)
        values.append(x)
    return values


def train(x, y, seed: int, sizes=SIZES, epochs=40, batch=32, rate=0.05, momentum=0.9):
    """Plain SGD with momentum on the cross-entropy; returns [(weight, bias)]."""
    rng = np.random.default_rng(seed)
    layers = [
        [rng.normal(0, np.sqrt(2 / n_in), (n_out, n_in)), np.zeros(n_out)]
        for n_in, n_out in zip(sizes[:-1], sizes[1:])
    ]
    speeds = [[np.zeros_like(part) for part in layer] for layer in layers]
    for epoch in range(epochs):
        step = rate * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
        order = rng.permutation(len(x))
        for begin in range(0, len(x), batch):
            chosen = order[begin : begin + batch]
            values = forward(layers, x[chosen])
            shifted = np.exp(values[-1] - values[-1].max(axis=1, keepdims=True))
            error = shifted / shifted.sum(axis=1, keepdims=True)
            error[np.arange(len(chosen)), y[chosen]] -= 1
            error /= len(chosen)
            for index in reversed(range(len(layers))):
                slopes = (error.T @ values[index], error.sum(axis=0))
                error = (error @ layers[index][0]) * (values[index] > 0)
                for part, slope in enumerate(slopes):
                    speeds[index][part] = momentum * speeds[index][part] - step * slope
                    layers[index][part] += speeds[index][part]
    return [tuple(part.astype(np.float32) for part in layer) for layer in layers]


def graph_of(layers) -> Graph:
    graph = Graph("digits_mlp")
    x = graph.input("pixels", TensorProto.FLOAT, ["batch", layers[0][0].shape[1]])
    for index, (weight, bias) in enumerate(layers, start=1):
        name = f"fc{index}"
        inputs = [x, graph.constant(name + ".weight", weight), graph.constant(name + ".bias", bias)]
        x = graph.node("Gemm", inputs, name, transB=1)
        if index < len(layers):
            x = graph.node("Relu", [x], f"relu{index}")
    graph.rename_last("logits")
    graph.output("logits", ["batch", layers[-1][0].shape[0]])
    return graph


def build(output: Output, seed=2) -> None:
    train_x, train_y, test_x, test_y = load(output, seed)
    layers = train(train_x, train_y, seed)
    accuracy = np.mean(forward(layers, test_x)[-1].argmax(axis=1) == test_y)
    output.say(f"digits_mlp.onnx: test accuracy {accuracy:.4f} over {len(test_y)}, seed {seed}")
    output.put_model("digits_mlp.onnx", graph_of(layers).model())
    output.put_arrays("digits_train.npz", {"pixels": train_x, "label": train_y})
    output.put_arrays("digits_test.npz", {"pixels": test_x, "label": test_y})
