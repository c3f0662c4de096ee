# SPDX-License-Identifier: Apache-2.0
"""The same encoder in plain NumPy: an independent answer for tests, and features for the probe."""

import math

import numpy as np

from models.bert import BertShape

_ERF = np.frompyfunc(math.erf, 1, 1)


def erf(x: np.ndarray) -> np.ndarray:
    """Abramowitz and Stegun 7.1.26 (error below 1.5e-7), evaluated in double."""
    sign, x = np.sign(x), np.abs(x.astype(np.float64))
    t = 1 / (1 + 0.3275911 * x)
    poly = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        poly = (poly + factor) * t
    return (sign * (1 - poly * np.exp(-x * x))).astype(np.float32)


def exact_erf(x: np.ndarray) -> np.ndarray:
    return _ERF(x).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def layer_norm(x, weights, name, epsilon):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt(variance + np.float32(epsilon))
    return scaled * weights[name + ".weight"] + weights[name + ".bias"]


def dense(x, weights, name):
    # One flat product: NumPy runs a stack of matrices one by one.
    flat = x.reshape(-1, x.shape[-1]) @ weights[name + ".weight"].T + weights[name + ".bias"]
    return flat.reshape(*x.shape[:-1], -1)


def encode(shape: BertShape, weights, input_ids, attention_mask, token_type_ids, erf=erf):
    """Last hidden state, [batch, seq, hidden]."""
    batch, seq = input_ids.shape
    head_dim = shape.hidden // shape.n_heads

    def heads(x):
        return x.reshape(batch, seq, shape.n_heads, head_dim).transpose(0, 2, 1, 3)

    x = weights["embeddings.word_embeddings.weight"][input_ids]
    x = x + weights["embeddings.token_type_embeddings.weight"][token_type_ids]
    x = x + weights["embeddings.position_embeddings.weight"][:seq]
    x = layer_norm(x, weights, "embeddings.LayerNorm", shape.epsilon)
    bias = ((1 - attention_mask) * -10000.0).astype(np.float32)[:, None, None, :]
    for index in range(shape.n_layers):
        name = f"encoder.layer.{index}."
        query, key, value = (
            heads(dense(x, weights, f"{name}attention.self.{part}"))
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(head_dim))
        context = softmax(scores + bias) @ value
        context = context.transpose(0, 2, 1, 3).reshape(batch, seq, shape.hidden)
        x = x + dense(context, weights, f"{name}attention.output.dense")
        x = layer_norm(x, weights, f"{name}attention.output.LayerNorm", shape.epsilon)
        inner = dense(x, weights, f"{name}intermediate.dense")
        inner = inner * (erf(inner / np.float32(math.sqrt(2))) + 1) * np.float32(0.5)
        x = x + dense(inner, weights, f"{name}output.dense")
        x = layer_norm(x, weights, f"{name}output.LayerNorm", shape.epsilon)
    return x


def embed(shape: BertShape, weights, input_ids, attention_mask, token_type_ids, erf=erf):
    """Mean-pooled sentence vectors of length one, [batch, hidden]."""
    hidden = encode(shape, weights, input_ids, attention_mask, token_type_ids, erf)
    mask = attention_mask[:, :, None].astype(np.float32)
    mean = (hidden * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1e-9)
    return mean / np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)
