# SPDX-License-Identifier: Apache-2.0
"""`tenon.nn`: networks made of layers, and models made of networks.

    class Block(nn.Module):
        def __init__(self, width):
            self.conv1 = nn.Conv(width, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm()

        def forward(self, x):
            return tn.relu(self.bn1(self.conv1(x)) + x)

    net = nn.Sequential(nn.Conv(16, 3, padding=1), Block(16), nn.GlobalAvgPool(), nn.Linear(10))
    model = nn.build(net, {"image": ("N", 3, 32, 32)}, seed=0)      # a tn.Model
    model = tn.train(model, data, epochs=5)

Layers are components of the role `tenon.layer/1`, of any plugin: `nn.Linear` makes `layers.linear`.
What comes out of them is read from what goes in, so that sizes are said once. Their options are
those of their schemas (`help(nn.Conv)`), the first ones (most often those without a default) may be
given in order. Parameters
are called by where a layer is kept: `0.weight`, `1.conv1.weight`, as PyTorch calls them.

`nn.init.he(mode="fan_out")` makes an initializer; where it has no options its name will do:
`nn.BatchNorm(init="zeros")`.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import _core
from .builder import Graph
from .component import Component
from .errors import InvalidArgument
from .events import session
from .model import Model
from .model import load as load_model
from .torch_modules import from_torch as from_torch
from .torch_modules import state_dict as state_dict
from .torch_modules import untied
from .trace import Trace, as_value, current
from .types import Dim, Input

_LAYER = "tenon.layer/1"
_INITIALIZER = "tenon.initializer/1"
_OWN = ["Input", "Layer", "Module", "Residual", "Sequential", "build"]
_OWN += ["from_torch", "init", "load", "state_dict"]


class _Building(threading.local):
    """The network that is being built: names of its layers, and the seed."""

    def __init__(self) -> None:
        self.names: dict[int, str] | None = None
        self.used: dict[str, int] = {}  # how many layers of a kind were named by it
        self.kept: list[Layer] = []  # so that no other one gets its address, and its name
        self.seed = 0


_building = _Building()


class Layer(Component):
    """A layer with its options. Inside of `nn.build` it is a function of traced values; one that is
    used twice has one set of parameters."""

    def __init__(self, id: str, /, **options: Any) -> None:
        super().__init__(_LAYER, id, **options)

    def __call__(self, *inputs: Any, outputs: int = 1) -> Any:
        """None: an input that is left out. outputs: how many results; several are a tuple."""
        name = _name_of(self)
        ids = [0 if x is None else as_value(x).id for x in inputs]
        trace = current()
        try:
            made = trace.native.add_layer(self._native, name, _building.seed, ids, outputs)
        except Exception as failed:
            failed.add_note(f"in layer {name or self.id}")
            raise
        values = tuple(trace.value_class(trace, id) for id in made)
        return values[0] if outputs == 1 else values


class Module:
    """A part of a network: layers and modules as attributes, in lists or dicts, and `forward`,
    which says what is computed with them. Attributes need no registration."""

    def forward(self, *inputs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: expected a method forward")

    def __call__(self, *inputs: Any) -> Any:
        return self.forward(*inputs)


class Sequential(Module):
    """One after the other: layers, modules and functions (`tn.relu`)."""

    def __init__(self, *layers: Callable[..., Any]) -> None:
        self.layers = layers

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Residual(Module):
    """activation(body(x) + shortcut(x)); without a shortcut x, without activation the sum."""

    def __init__(
        self,
        body: Callable[..., Any],
        shortcut: Callable[..., Any] | None = None,
        activation: Callable[..., Any] | None = None,
    ) -> None:
        self.body, self.shortcut, self.activation = body, shortcut, activation

    def forward(self, x: Any) -> Any:
        total = self.body(x) + (x if self.shortcut is None else self.shortcut(x))
        return total if self.activation is None else self.activation(total)


def named_layers(network: Any, name: str = "") -> Iterator[tuple[str, Layer]]:
    """The layers of a network in order, with their names."""
    if isinstance(network, Layer):
        yield name, network
        return
    children: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(network, Sequential):
        children = iter(enumerate(network.layers))
    elif isinstance(network, Module):
        children = iter(vars(network).items())
    elif isinstance(network, (list, tuple)):
        children = iter(enumerate(network))
    elif isinstance(network, dict):
        children = iter(network.items())
    for key, child in children:
        yield from named_layers(child, f"{name}.{key}" if name else str(key))


def build(
    network: Callable[..., Any],
    inputs: Mapping[str, Input | Sequence[Dim]],
    seed: int = 0,
) -> Model:
    """A model of a network: a module, a layer, or a function that uses some.

        model = nn.build(net, {"image": ("N", 3, 32, 32)})
        model = nn.build(net, {"token": nn.Input(("N", 64), "int64")}, seed=1)

    inputs: by name, in the order of the network's arguments; sizes, and names of those that are
    known at run time. seed: of the initial values of parameters, which depend on it and on their
    names alone. Dropout and BatchNorm are as in inference; `tn.train` trains the model.
    """
    with _names(network, seed), Trace() as trace:
        given = []
        for name, wanted in inputs.items():
            shape, dtype = wanted if isinstance(wanted, Input) else (wanted, "float32")
            given.append(trace.input(name, dtype, shape))
        result = network(*given)
        results = result if isinstance(result, (tuple, list)) else [result]
        return Model(trace.finish([as_value(one) for one in results]))


def load(model: Model, weights: Any, **options: Any) -> Model:
    """The model with weights of another one or of a file, by name: a state dict of PyTorch saved as
    safetensors, say; or arrays by name (NumPy, DLPack), or a module of PyTorch with its
    `state_dict()`, which are copied. Options are those of the pass `layers.load`: prefix, update,
    partial.

        model = nn.load(nn.build(net, inputs), torch_module)
        model = nn.load(model, step.parameters, update=True)    # some of its weights
    """
    return model.apply("layers.load", weights=_as_model(weights, model), **options)


def _as_model(weights: Any, model: Model) -> Model:
    """Weights as a model that is nothing but constants."""
    if isinstance(weights, Model):
        return weights
    if isinstance(weights, (str, os.PathLike)):
        return load_model(os.fspath(weights))
    state = weights
    if hasattr(weights, "state_dict"):  # one name of tied weights is enough
        state = untied(weights.state_dict(), model.constants())
    if not isinstance(state, Mapping):
        raise TypeError(
            "nn.load: expected a model, a file, arrays by name or a module with state_dict, got "
            f"{type(weights).__name__}"
        )
    graph = Graph()
    for name, array in state.items():
        if hasattr(array, "detach"):  # PyTorch's parameters export no numbers otherwise
            array = array.detach()
        try:
            value = graph.add_constant(array, name)
        except (BufferError, TypeError, ValueError, RuntimeError) as failed:
            raise InvalidArgument(f"nn.load: {name}: {failed}") from failed
        graph.add_output(name, value)
    return graph.build()


@contextlib.contextmanager
def _names(network: Any, seed: int) -> Iterator[None]:
    before = _building.names, _building.used, _building.kept, _building.seed
    names: dict[int, str] = {}
    for name, layer in named_layers(network):
        names.setdefault(id(layer), name)
    _building.names, _building.used, _building.kept, _building.seed = names, {}, [], seed
    try:
        yield
    finally:
        _building.names, _building.used, _building.kept, _building.seed = before


def _name_of(layer: Layer) -> str:
    """Where it is kept, or, for a layer that a function uses by itself, its kind and a number."""
    if _building.names is None:
        raise TypeError(f"{layer.id}: expected to be called inside nn.build")
    if id(layer) not in _building.names:
        word = layer.id.rpartition(".")[2]
        count = _building.used[word] = _building.used.get(word, 0) + 1
        _building.names[id(layer)] = f"{word}{count}"
        _building.kept.append(layer)
    return _building.names[id(layer)]


def _known(role: str) -> dict[str, dict[str, Any]]:
    """The components of a role by the name of their class: what the schema says, or the last word
    of the id (`global_avg_pool` is GlobalAvgPool)."""
    found: dict[str, dict[str, Any]] = {}
    for one in json.loads(_core.components(session(), role)):
        word = one["id"].rpartition(".")[2]
        camel = "".join(part.capitalize() for part in word.split("_"))
        found.setdefault((one["schema"] or {}).get("class", camel), one)
    return found


def _help(one: dict[str, Any]) -> str:
    schema = one["schema"] or {}
    lines = [f"{one['summary']}.", ""]
    for name, option in schema.get("properties", {}).items():
        default = f" (default {option['default']})" if "default" in option else ""
        lines.append(f"{name}: {option.get('description', '')}{default}")
    return "\n".join(lines)


def _maker(name: str, one: dict[str, Any]) -> Callable[..., Layer]:
    schema = one["schema"] or {}
    order = schema.get("order", schema.get("required", []))

    def make(*given: Any, **options: Any) -> Layer:
        if len(given) > len(order):
            raise TypeError(
                f"nn.{name}: expected {', '.join(order) or 'nothing'} in order and options by "
                f"name, got {len(given)} values"
            )
        return Layer(one["id"], **dict(zip(order, given)), **options)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = _help(one)
    return make


class _Initializers:
    """`nn.init.he(mode="fan_out")`: an initializer of any plugin, by the last word of its id."""

    def __getattr__(self, name: str) -> Callable[..., Component]:
        ids = [one["id"] for one in json.loads(_core.components(session(), _INITIALIZER))]
        ends = [id for id in ids if name in (id, id.rpartition(".")[2])]
        if name.startswith("_") or not ends:
            words = ", ".join(id.rpartition(".")[2] for id in ids)
            raise AttributeError(f"nn.init: expected one of {words}, got '{name}'")

        def make(**options: Any) -> Component:
            return Component(_INITIALIZER, ends[0], **options)

        make.__name__ = name
        return make


init = _Initializers()


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    known = _known(_LAYER)
    if name not in known:
        raise AttributeError(f"nn: expected one of {', '.join(sorted(known))}, got '{name}'")
    return _maker(name, known[name])


def __dir__() -> list[str]:
    return sorted([*_OWN, *_known(_LAYER)])
