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
    return tn.clip(x, 0, 6)


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


def gelu(x):
    return current().node("Gelu", [x])


def heads(x, count):
    batch, length, width = x.shape
    return tn.permute_dims(tn.reshape(x, (batch, length, count, width // count)), (0, 2, 1, 3))


def attention(q, k, v):
    scores = tn.matmul(q, tn.matrix_transpose(k)) * (1 / q.shape[-1] ** 0.5)
    made = tn.permute_dims(tn.matmul(tn.softmax(scores), v), (0, 2, 1, 3))
    return tn.reshape(made, (made.shape[0], made.shape[1], -1))


def cross_entropy(scores, labels):
    return -(tn.log_softmax(scores) * tn.one_hot(labels, scores.shape[-1])).sum(-1).mean()


def make_step(network, engine: str, precision: str, threads: int):
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
    trained = tn.Step(
        loss,
        network.weights.trained,
        optimizer,
        has_aux=True,
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
