# SPDX-License-Identifier: Apache-2.0
"""What layers of networks are made of. Images are [batch, channels, height, width]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import types
from .eager import anywhere
from .elementwise import as_float
from .trace import alike, as_value, cast, current

__all__: list[str] = []
Sizes = int | Sequence[int]
_AUTO_PAD = {"same": "SAME_UPPER", "valid": "VALID"}


def _public(function: Any) -> Any:
    __all__.append(function.__name__)
    return anywhere(function)


def _each(sizes: Sizes, rank: int) -> list[int]:
    return [sizes] * rank if isinstance(sizes, int) else list(sizes)


@_public
def op(name: str, /, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
    """One node of any operator that a plugin brings: `tn.op("Relu", x)`, `tn.op("acme.Squircle", x,
    power=4)`; what stands before the last dot is the domain. None: an input that is left out.
    outputs: how many it has; several are a tuple."""
    domain, _, kind = name.rpartition(".")
    values = [None if x is None else as_value(x) for x in inputs]
    return current().node(kind, values, outputs=outputs, domain=domain, **attributes)


@_public
def softmax(x: Any, /, axis: int = -1) -> Any:
    """exp(x) divided by its sum over axis; the shape of x."""
    return current().node("Softmax", [as_float(x)], axis=axis)


@_public
def log_softmax(x: Any, /, axis: int = -1) -> Any:
    """The logarithm of softmax; the shape of x."""
    return current().node("LogSoftmax", [as_float(x)], axis=axis)


@_public
def one_hot(labels: Any, classes: int, /, dtype: Any = "float32") -> Any:
    """labels [...] of integers become [..., classes]: 1 at the label's place, else 0."""
    from .creation import arange
    from .functions import expand_dims

    value = as_value(labels)
    places = arange(classes, dtype=value.dtype)
    same = current().node("Equal", [expand_dims(value, -1), places])
    return cast(same, types.name_of(dtype))


@_public
def linear(x: Any, weight: Any, bias: Any = None, /) -> Any:
    """x [..., n] times weight [n, m], and bias [m] added: [..., m]."""
    left, right = alike(x, weight)
    product = current().node("MatMul", [left, right])
    return product if bias is None else current().node("Add", alike(product, bias))


@_public
def conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    /,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Any:
    """x [b, c, ...] with weight [m, c/groups, ...] gives [b, m, ...].

    padding: zeros before and after each axis, or "same" (the size of the result is that of x
    divided by stride, rounded up) or "valid" (none).
    """
    inputs = alike(x, weight) + ([] if bias is None else alike(weight, bias)[1:])
    rank = len(inputs[0].shape) - 2
    if not isinstance(padding, str):
        pads: dict[str, Any] = {"pads": _each(padding, rank) * 2}
    elif padding in _AUTO_PAD:
        pads = {"auto_pad": _AUTO_PAD[padding]}
    else:
        raise ValueError(f"padding: expected numbers, 'same' or 'valid', got '{padding}'")
    return current().node(
        "Conv",
        inputs,
        strides=_each(stride, rank),
        dilations=_each(dilation, rank),
        group=groups,
        **pads,
    )


def _pool(op: str, x: Any, window: Sizes, stride: Sizes | None, padding: Sizes, **more: int) -> Any:
    value = as_float(x)
    rank = len(value.shape) - 2
    return current().node(
        op,
        [value],
        kernel_shape=_each(window, rank),
        strides=_each(window if stride is None else stride, rank),
        pads=_each(padding, rank) * 2,
        **more,
    )


@_public
def max_pool(x: Any, window: Sizes, /, stride: Sizes | None = None, padding: Sizes = 0) -> Any:
    """The largest element of each window over the axes after [batch, channels]."""
    return _pool("MaxPool", x, window, stride, padding)


@_public
def avg_pool(x: Any, window: Sizes, /, stride: Sizes | None = None, padding: Sizes = 0) -> Any:
    """The mean of each window over the axes after [batch, channels]; padding is not counted."""
    return _pool("AveragePool", x, window, stride, padding, count_include_pad=0)


@_public
def layer_norm(x: Any, scale: Any, bias: Any = None, /, epsilon: float = 1e-5) -> Any:
    """x [..., n] less its mean, divided by its deviation over the last axis, times scale [n]."""
    inputs = alike(*(a for a in (x, scale, bias) if a is not None))
    return current().node("LayerNormalization", inputs, axis=-1, epsilon=epsilon)


def __getattr__(name: str) -> Any:
    """What networks are made of, beside the functions: see `layers.py`."""
    from . import layers

    return getattr(layers, name)


def __dir__() -> list[str]:
    from . import layers

    return sorted([*__all__, *dir(layers)])
