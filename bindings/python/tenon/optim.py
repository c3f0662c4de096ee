# SPDX-License-Identifier: Apache-2.0
"""Optimizers: `tenon.optim.adamw(lr=1e-3)` makes the component `trainer.adamw`; every optimizer of
every plugin can be had by its id or its last word. Other options are those of its schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .component import Component, Named, full_id
from .errors import InvalidArgument

_OPTIMIZER = "tenon.optimizer/1"


class Optimizer(Component):
    """How parameters are updated. lr: the learning rate, a number or a function of the step's
    number, which counts from 0."""

    def __init__(self, id: str, /, lr: float | Callable[[int], float], **options: Any) -> None:
        super().__init__(_OPTIMIZER, id, **options)
        self.lr = lr

    def rate(self, step: int) -> float:
        """The learning rate of this step."""
        return float(self.lr(step) if callable(self.lr) else self.lr)


def by_name(optimizer: Optimizer | str) -> Optimizer:
    """An optimizer; of a name ("adamw") or an id the one with rate 0.01, as in `tenon.train`."""
    if isinstance(optimizer, Optimizer):
        return optimizer
    if isinstance(optimizer, str):
        return Optimizer(full_id(_OPTIMIZER, "trainer", optimizer, "tn.optim"), lr=0.01)
    given = getattr(optimizer, "__name__", type(optimizer).__name__)
    raise InvalidArgument(f"optimizer: expected one, as tn.optim.adamw(lr=1e-3), got {given}")


_named = Named(__name__, _OPTIMIZER, "trainer", Optimizer)
__getattr__, __dir__ = _named.get, _named.names
__all__ = ["Optimizer", "by_name"]
