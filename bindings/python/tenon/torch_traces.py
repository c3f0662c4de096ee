# SPDX-License-Identifier: Apache-2.0
"""Traces of modules of PyTorch whose ONNX would not be theirs: written in other words, or
refused."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def bags_of_one_size(torch: Any) -> Iterator[None]:
    """EmbeddingBag of [bags, size] as a sum over an axis: the exporter writes a loop that collects
    a sequence, which has no gradient."""
    functional = torch.nn.functional
    of_torch = functional.embedding_bag
    signature = inspect.signature(of_torch)

    def embedding_bag(*args: Any, **named: Any) -> Any:
        bound = signature.bind(*args, **named)
        bound.apply_defaults()
        given = bound.arguments
        if given["input"].dim() != 2 or given["max_norm"] is not None:
            return of_torch(*args, **named)
        token, padding = given["input"], given["padding_idx"]
        rows = functional.embedding(token, given["weight"])
        counts = token[..., None] != (-1 if padding is None else padding % len(given["weight"]))
        if given["mode"] == "max":
            largest = torch.where(counts, rows, -torch.inf).max(1).values
            return torch.where(counts.any(1), largest, 0)
        if given["per_sample_weights"] is not None:
            rows = rows * given["per_sample_weights"][..., None]
        total = torch.where(counts, rows, 0).sum(1)
        return total if given["mode"] == "sum" else total / counts.sum(1).clamp(min=1)

    functional.embedding_bag = embedding_bag
    try:
        yield
    finally:
        functional.embedding_bag = of_torch


def refuse_left_out(graph: Any) -> None:
    """What the exporter leaves out without a word."""
    for node in graph.graph.nodes:
        name = str(node.target)
        divisor = node.args[6] if len(node.args) > 6 else node.kwargs.get("divisor_override")
        if "avg_pool" in name and divisor is not None:
            raise ValueError("divisor_override of an average pool is not exported")
        if "cross_entropy_loss" in name and len(node.args) > 5 and node.args[5]:
            raise ValueError(
                "label_smoothing of a cross entropy is not exported; leave the loss to training: "
                "tenon.loss.cross_entropy(label_smoothing=...)"
            )
        if name == "aten.batch_norm.default" and node.args[5] and node.args[3] is not None:
            raise ValueError(
                "batch_norm with training=True in evaluation mode is exported as one of its "
                "running statistics; give it self.training, or no statistics"
            )
        if "scatter_reduce" in name and "mean" in node.args:
            raise ValueError("scatter_reduce by mean is not exported; divide the sum by the counts")


def give_sizes(graph: Any) -> None:
    """Sizes in place of fractional factors with align_corners: a file whose factors are fractions
    has the corners of a size that is not rounded."""
    for node in graph.graph.nodes:
        if ".upsample_" not in str(node.target) or len(node.args) != 4:
            continue
        image, _, corners, factors = node.args
        if not corners or not factors or all(float(one).is_integer() for one in factors):
            continue
        sizes = list(node.meta["val"].shape[2:])
        if not all(isinstance(one, int) for one in sizes):
            raise ValueError(
                f"scale_factor {factors} with align_corners=True is exported for sizes that are "
                "numbers alone; give them, or size in place of scale_factor"
            )
        node.args = (image, sizes, corners, None)
    graph.recompile()


def convolve_without_bias(torch: Any, graph: Any) -> None:
    """Convolutions over volumes that have no bias as the general one: the exporter gives them a
    bias of two axes."""
    for node in graph.graph.nodes:
        if str(node.target) != "aten.conv3d.default":
            continue
        image, weight, bias, strides, pads, dilations, groups = (
            *node.args,
            *(None, [1, 1, 1], [0, 0, 0], [1, 1, 1], 1)[len(node.args) - 2 :],
        )
        if bias is None and not node.kwargs:
            node.target = torch.ops.aten.convolution.default
            node.args = (image, weight, bias, strides, pads, dilations, False, [0, 0, 0], groups)
    graph.recompile()


def clip_by_numbers(torch: Any, graph: Any) -> None:
    """Clamps between two numbers as one Clip, whose gradient at its bounds is PyTorch's: the
    exporter writes Max and Min, which share it with the bound."""
    places = {"clamp": (0, 1), "clamp_min": (0,), "clamp_max": (1,)}
    for node in graph.graph.nodes:
        name, _, overload = str(node.target).removeprefix("aten.").partition(".")
        if overload != "default" or name not in places or node.kwargs:
            continue
        bounds = [-torch.inf, torch.inf]
        for place, number in zip(places[name], node.args[1:]):
            bounds[place] = bounds[place] if number is None else number
        are_numbers = all(isinstance(one, (int, float)) for one in bounds)
        is_float = node.args[0].meta["val"].dtype in (torch.float32, torch.float64)
        if is_float and are_numbers and bounds[0] < bounds[1]:
            node.target = torch.ops.aten.hardtanh.default
            node.args = (node.args[0], *bounds)
    graph.recompile()
