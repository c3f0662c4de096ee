# SPDX-License-Identifier: Apache-2.0
"""The layers of networks.py in PyTorch, and its training step."""

import sys

import numpy as np
import torch
import torch.nn.functional as F

relu = F.relu
relu6 = F.relu6


def conv(x, weight, stride, padding, groups=1):
    return F.conv2d(x, weight, None, stride, padding, 1, groups)


def batch_norm(x, w, running, name):
    mean, variance = running[f"{name}.mean"], running[f"{name}.variance"]
    return F.batch_norm(x, mean, variance, w[f"{name}.weight"], w[f"{name}.bias"], True, 0.1, 1e-5)


def max_pool(x, window, stride, padding):
    return F.max_pool2d(x, window, stride, padding)


def mean_of_image(x):
    return x.mean((2, 3))


def flatten(x):
    return x.flatten(1)


def linear(x, weight, bias):
    return F.linear(x, weight.t(), bias)


def rows(table, places):
    return F.embedding(places, table)


def layer_norm(x, weight, bias):
    return F.layer_norm(x, weight.shape, weight, bias, 1e-12)


def gelu(x, tanh=False):
    return F.gelu(x, approximate="tanh" if tanh else "none")


def dropout(x, ratio):
    return F.dropout(x, ratio)


def heads(x, count):
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def attention(q, k, v, causal=False):
    made = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return made.transpose(1, 2).flatten(2)


def scores_of_rows(x, table):
    return F.linear(x, table).flatten(0, 1)


def conv_transpose(x, weight, stride):
    return F.conv_transpose2d(x, weight, None, stride)


def joined(x, y):
    return torch.cat((x, y), 1)


def lstm(x, w, names):
    """What torch.nn.LSTM calls."""
    parts = ("input_gates", "hidden_gates", "input_bias_gates", "hidden_bias_gates")
    flat = [w[f"{name}.{part}"] for name in names for part in parts]
    zeros = x.new_zeros(len(names), x.shape[1], flat[1].shape[1])
    return torch.lstm(x, (zeros, zeros), flat, True, len(names), 0.0, True, False, False)[0]


def cross_entropy(scores, labels, axis=-1):
    return F.cross_entropy(scores.float(), labels if axis == 1 else labels.flatten())


def stored_as_torch_does(name: str, array: np.ndarray):
    """A matrix lies as torch.nn.Linear keeps it, [out, in]; the function above sees [in, out]."""
    if name.endswith(".weight") and array.ndim == 2:
        return torch.from_numpy(np.ascontiguousarray(array.T)).t()
    return torch.from_numpy(array.copy())


def make_step(network, engine: str, precision: str, threads: int):
    """A function of a batch of NumPy arrays that trains once and gives the loss."""
    torch.set_num_threads(threads)
    layout = torch.channels_last if "channels_last" in engine else torch.contiguous_format

    def placed(tensor):
        return tensor.contiguous(memory_format=layout) if tensor.ndim == 4 else tensor

    w = {
        name: placed(stored_as_torch_does(name, array)).requires_grad_()
        for name, array in network.weights.trained.items()
    }
    running = {name: torch.from_numpy(a.copy()) for name, a in network.weights.running.items()}
    if network.optimizer == "adamw":
        decayed = [p for p in w.values() if p.ndim > 1]
        plain = [p for p in w.values() if p.ndim == 1]
        groups = [{"params": decayed}, {"params": plain, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, network.rate, weight_decay=0.01, fused=True)
    else:
        optimizer = torch.optim.SGD(w.values(), network.rate, momentum=0.9, fused=True)
    low = precision == "bf16"

    def loss(x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            return network.loss(ops, w, running, x, y)

    ops = sys.modules[__name__]
    if "compile" in engine:
        loss = torch.compile(loss)

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        made = loss(placed(torch.from_numpy(x)), torch.from_numpy(y))
        made.backward()
        optimizer.step()
        return float(made.detach())

    return step
