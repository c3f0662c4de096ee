# SPDX-License-Identifier: Apache-2.0
"""Graphs built node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _core
from .events import session
from .model import Model
from .types import Dim


class Value(NamedTuple):
    """A value of a graph under construction."""

    id: int


class Graph:
    """Builds a model:

    g = tenon.Graph()
    x = g.add_input("x", "float32", ["batch", 4])
    w = g.add_constant(np.ones((4, 2), "float32"))
    g.add_output("y", g.add_node("MatMul", [x, w]))
    model = g.build()
    """

    def __init__(self) -> None:
        self._native = _core.Builder(session())

    def add_input(
        self, name: str, dtype: str = "float32", shape: Sequence[Dim] | None = None
    ) -> Value:
        """shape: sizes, names of symbolic sizes, None; shape None: any rank."""
        return Value(self._native.add_input(name, dtype, shape))

    def add_constant(self, array: Any, name: str = "constant") -> Value:
        """A copy of the array becomes part of the model."""
        return Value(self._native.add_constant(name, array))

    def add_node(
        self,
        op: str,
        inputs: Sequence[Value | None] = (),
        outputs: int = 1,
        name: str = "",
        domain: str = "",
        **attributes: Any,
    ) -> Value | tuple[Value, ...]:
        """One node; its value, or a tuple of them when outputs is not 1. None: an absent input."""
        ids = [0 if value is None else value.id for value in inputs]
        made = self._native.add_node(domain, op, name, ids, outputs, attributes)
        values = tuple(Value(id) for id in made)
        return values[0] if outputs == 1 else values

    def add_output(self, name: str, value: Value) -> None:
        """Outputs are in the order in which they are added."""
        self._native.add_output(name, value.id)

    def build(self) -> Model:
        """The model, when all rules of a graph hold. The builder is of no use afterwards."""
        return Model(self._native.build())
