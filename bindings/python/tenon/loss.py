# SPDX-License-Identifier: Apache-2.0
"""What training makes small: `tenon.loss.cross_entropy(label_smoothing=0.1)` makes the component
`trainer.cross_entropy`; every loss of every plugin can be had by its id or its last word."""

from __future__ import annotations

from typing import Any

from .component import Component, Named

_LOSS = "tenon.loss/1"


class Loss(Component):
    """A number to be made small, of a model's outputs and what they should be."""

    def __init__(self, id: str, /, **options: Any) -> None:
        super().__init__(_LOSS, id, **options)


_named = Named(__name__, _LOSS, "trainer", Loss)
__getattr__, __dir__ = _named.get, _named.names
__all__ = ["Loss"]
