# SPDX-License-Identifier: Apache-2.0
"""What training makes small: `tenon.loss.cross_entropy(label_smoothing=0.1)` makes the component
`trainer.cross_entropy`; every loss of every plugin can be had by its last word this way."""

from __future__ import annotations

import json
from typing import Any

from . import _core
from .data import Component
from .errors import NotFound
from .events import session

_LOSS = "tenon.loss/1"


class Loss(Component):
    """A number to be made small, of a model's outputs and what they should be."""

    def __init__(self, id: str, /, **options: Any) -> None:
        super().__init__(_LOSS, id, **options)


def _id_of(name: str) -> str:
    ids = [one["id"] for one in json.loads(_core.components(session(), _LOSS))]
    if name in ids:
        return name
    if f"trainer.{name}" in ids:
        return f"trainer.{name}"
    for id in ids:
        if id.rpartition(".")[2] == name:
            return id
    known = ", ".join(id.rpartition(".")[2] for id in ids)
    raise NotFound(f"tenon.loss: expected one of {known}, got '{name}'")


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)

    def make(**options: Any) -> Loss:
        return Loss(_id_of(name), **options)

    make.__name__ = name
    return make
