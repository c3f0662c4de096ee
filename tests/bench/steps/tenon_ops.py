# SPDX-License-Identifier: Apache-2.0
"""The layers of networks.py in Tenon, and its training step."""

import sys

import numpy as np
import tenon as tn
from tenon.trace import current

MOMENTUM = 0.9


def relu(x):
    return tn.relu(x)


def relu6(x):
    return tn.relu6(x)


def conv(x, weight, stride, padding, groups=1):
    return tn.conv(x, weight, stride=stride, padding=padding, groups=groups)


def batch_norm(x, w, running, name):
    mean, variance = f"{name}.mean", f"{name}.variance"
    inputs = [x, w[f"{name}.weight"], w[f"{name}.bias"], running[mean], running[variance]]
    made = current().node("BatchNormalization", inputs, 3, training_mode=1, momentum=MOMENTUM)
    running[mean], running[variance] = made[1:]
    return made[0]


def max_pool(x, window, stride, padding):
    return tn.max_pool(x, window, stride=stride, padding=padding)


def mean_of_image(x):
    return tn.mean(x, axis=(2, 3))


def flatten(x):
    return tn.reshape(x, (x.shape[0], -1))


def linear(x, weight, bias):
    return tn.linear(x, weight, bias)


def rows(table, places):
    return tn.take(table, places, axis=0)


def layer_norm(x, weight, bias):
    return tn.layer_norm(x, weight, bias, epsilon=1e-12)


def gelu(x, tanh=False):
    return current().node("Gelu", [x], approximate="tanh" if tanh else "none")


def dropout(x, ratio):
    return tn.dropout(x, ratio)


def heads(x, count):
    batch, length, width = x.shape
    return tn.permute_dims(tn.reshape(x, (batch, length, count, width // count)), (0, 2, 1, 3))


def attention(q, k, v, causal=False):
    scores = tn.matmul(q, tn.matrix_transpose(k)) * (1 / q.shape[-1] ** 0.5)
    if causal:
        hidden = np.triu(np.full((q.shape[2], q.shape[2]), -np.inf, np.float32), 1)
        scores = scores + hidden
    made = tn.permute_dims(tn.matmul(tn.softmax(scores), v), (0, 2, 1, 3))
    return tn.reshape(made, (made.shape[0], made.shape[1], -1))


def scores_of_rows(x, table):
    made = tn.matmul(x, tn.matrix_transpose(table))
    return tn.reshape(made, (-1, table.shape[0]))


def conv_transpose(x, weight, stride):
    return current().node("ConvTranspose", [x, weight], strides=[stride, stride])


def joined(x, y):
    return tn.concat((x, y), axis=1)


def lstm(x, w, names):
    for name in names:
        bias = [w[f"{name}.{part}_bias_gates"][None] for part in ("input", "hidden")]
        inputs = [x, *(w[f"{name}.{part}_gates"][None] for part in ("input", "hidden"))]
        inputs.append(tn.concat(bias, axis=1))
        width = w[f"{name}.hidden_gates"].shape[1]
        x = current().node("LSTM", inputs, 1, hidden_size=width)[:, 0]
    return x


def cross_entropy(scores, labels, axis=-1):
    classes = scores.shape[axis]
    if axis == 1:  # of an image's pixels
        hit = tn.permute_dims(tn.one_hot(labels, classes), (0, 3, 1, 2))
    else:
        hit = tn.one_hot(tn.reshape(labels, (-1,)), classes)
    return -(tn.log_softmax(scores, axis=axis) * hit).sum(axis).mean()


def stored_as_onnx_does(name: str, array: np.ndarray) -> np.ndarray:
    """Gates of an LSTM lie as i, o, f, c; those of the network as i, f, g, o."""
    if not name.endswith("_gates"):
        return array
    i, f, g, o = np.split(array, 4)
    return np.concatenate((i, o, f, g))


def make_step(network, engine: str, precision: str, threads: int, joint=None):
    """A function of a batch of NumPy arrays that trains once and gives the loss."""
    ops = sys.modules[__name__]
    running = network.weights.running

    def loss(params, running, x, y):
        now = dict(running)
        return network.loss(ops, params, now, x, y), now

    if network.optimizer == "adamw":
        optimizer = tn.optim.adamw(lr=network.rate, weight_decay=0.01, decay_vectors=False)
    else:
        optimizer = tn.optim.sgd(lr=network.rate, momentum=0.9)
    weights = network.weights.trained
    trained = tn.Step(
        loss,
        {name: stored_as_onnx_does(name, array) for name, array in weights.items()},
        optimizer,
        has_aux=True,
        joint=joint,
        backend="onednn",
        precision=precision,
        threads=threads,
    )

    def step(x, y):
        nonlocal running
        made, running = trained(running, x, y)
        return float(np.asarray(made))

    step.trained = trained
    return step
