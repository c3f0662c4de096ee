# SPDX-License-Identifier: Apache-2.0
"""Numbers over time: learning rates, sparsity, temperature.

`tenon.schedule.cosine(base=1e-3, warmup=100)` makes the component `scheduler.cosine`; every
schedule of every plugin can be had by its name this way. Call it with a step, from 0 on, and where
its length was not given with the number of steps: `lr(step, 1000)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core
from .component import Component, Named, listed
from .events import session

_SCHEDULE = "tenon.schedule/1"


class Schedule(Component):
    """A number for each step."""

    def __init__(self, id: str, /, **options: Any) -> None:
        wrapped = {
            name: function(value) if name in _parts(id) and callable(value) else value
            for name, value in options.items()
        }
        super().__init__(_SCHEDULE, id, **wrapped)

    def __call__(self, step: int, steps: int | None = None) -> float:
        return _core.schedule_value(self._native, step, steps)


def function(call: Callable[[int, int | None], float]) -> Schedule:
    """A Python function of (step, steps or None) as a schedule, also within others."""
    if isinstance(call, Schedule):
        return call
    made = Schedule.__new__(Schedule)
    made.role, made.id = _SCHEDULE, "python.function"
    made._native = _core.schedule_of_function(session(), call)
    return made


def _parts(id: str) -> set[str]:
    """The options of this schedule that are schedules themselves."""
    for one in listed(_SCHEDULE):
        if one["id"] == id:
            properties = one["schema"].get("properties", {})
            return {name for name, option in properties.items() if option.get("role") == _SCHEDULE}
    return set()


_named = Named(__name__, _SCHEDULE, "scheduler", Schedule)
__getattr__, __dir__ = _named.get, _named.names
__all__ = ["Schedule", "function"]
