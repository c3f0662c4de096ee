# SPDX-License-Identifier: Apache-2.0
"""The functions of arrays, by the array API's names: one for each row of the table in
`bindings/arrays`, which knows what types and axes mean and which operators a function is.

NumPy arrays, numbers and traced values may be mixed; a number takes the array's type.
"""

from __future__ import annotations

import inspect
import itertools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core, types
from .eager import anywhere
from .errors import ArgumentError, AxisError, TenonError, from_status
from .trace import Value, as_value, current, users_line

__all__: list[str] = ["op"]
GROUPS: dict[str, list[str]] = {}  # names by the group that the table has them in
#: Functions of the parts of the API, `linalg` and `fft`, by the part and the name in it.
PARTS: dict[str, dict[str, Any]] = {}
_ERRORS = {ArgumentError.code: ArgumentError, AxisError.code: AxisError}


def _operand(x: Any) -> Any:
    """A value of the trace, or a number or None as it is."""
    plain = x is None or (isinstance(x, (bool, int, float)) and not isinstance(x, np.generic))
    return x if plain else as_value(x)


def _operands(arrays: Any) -> list[Any]:
    return [_operand(x) for x in arrays]


def _dtype(dtype: Any) -> str | None:
    return None if dtype is None else types.name_of(dtype)


_READ: dict[str, Callable[[Any], Any]] = {"array": _operand, "arrays": _operands, "dtype": _dtype}


def _as_it_is(x: Any) -> Any:
    return x


def _signature(parameters: list[dict[str, Any]]) -> inspect.Signature:
    made, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    for each in parameters:
        if each.get("variadic"):
            made.append(inspect.Parameter(each["name"], inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        default = each.get("default", inspect.Parameter.empty)
        made.append(inspect.Parameter(each["name"], kind, default=default))
    return inspect.Signature(made)


def _define(row: dict[str, Any]) -> None:
    name, parameters, results = row["name"], row["parameters"], row["results"]
    readers = {each["name"]: _READ.get(each["kind"], _as_it_is) for each in parameters}
    in_order = list(readers.values())
    last = _as_it_is
    variadic = [bool(each.get("variadic")) for each in parameters]
    if True in variadic:
        last = _operand
        in_order = in_order[: variadic.index(True)]
    part, _, short = name.rpartition(".")
    several = namedtuple(short, results) if isinstance(results, list) else None

    def function(*args: Any, **named: Any) -> Any:
        trace = current()
        given = [
            read(x) for read, x in zip(itertools.chain(in_order, itertools.repeat(last)), args)
        ]
        more = {key: readers.get(key, _as_it_is)(x) for key, x in named.items()}
        try:
            made = trace.native.call(name, *given, **more)
        except TenonError as failed:
            if failed.code in _ERRORS:
                raise _ERRORS[failed.code](f"{users_line()}: {failed}") from None
            text = f"{users_line()}: {failed.whole or failed}"
            raise from_status(failed.code, failed.domain, text) from None
        # What comes back as it was given stays a number of Python.
        known = {x.id: x for x in given if isinstance(x, Value)}
        values = [known[id] if id in known else trace.value_class(trace, id) for id in made]
        if several:
            return several(*values)
        return tuple(values) if results else values[0]

    function.__name__ = function.__qualname__ = short
    function.__doc__ = row["doc"]
    function.__signature__ = _signature(parameters)  # type: ignore[attr-defined]
    if part:
        PARTS.setdefault(part, {})[short] = anywhere(function)
    else:
        globals()[name] = anywhere(function)
        __all__.append(name)
    GROUPS.setdefault(row["group"], []).append(name)


@anywhere
def op(name: str, /, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
    """One node of any operator that a plugin brings: `tn.op("Relu", x)`, `tn.op("acme.Squircle", x,
    power=4)`; what stands before the last dot is the domain. None: an input that is left out.
    outputs: how many it has; several are a tuple."""
    domain, _, kind = name.rpartition(".")
    values = [None if x is None else as_value(x) for x in inputs]
    return current().node(kind, values, outputs=outputs, domain=domain, **attributes)


for _row in _core.array_functions():
    _define(_row)
