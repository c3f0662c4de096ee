# SPDX-License-Identifier: Apache-2.0
"""Options of components and plans, as the library takes them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _core
from .errors import InvalidArgument
from .events import session


def split_options(options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What JSON can say, as JSON, and the rest: components, models, arrays."""
    plain: dict[str, Any] = {}
    objects: dict[str, Any] = {}
    for key, value in options.items():
        native = _data_of_arrays(value) if _are_arrays(value) else getattr(value, "_native", value)
        if isinstance(native, (_core.Component, _core.Model)) or hasattr(value, "__dlpack__"):
            scalar = isinstance(value, np.generic)
            (plain if scalar else objects)[key] = value.item() if scalar else native
        else:
            plain[key] = os.fspath(value) if isinstance(value, os.PathLike) else value
    for key, value in plain.items():
        try:
            json.dumps(value, default=as_json, allow_nan=False)
        except ValueError:
            raise InvalidArgument(f"option {key}: expected finite numbers, got {value}") from None
        except TypeError as error:
            hint = "; make it a data set by tn.data.samples(...)" if _are_samples(value) else ""
            raise TypeError(f"option {key}: {error}{hint}") from None
    return json.dumps(plain, default=as_json), objects


def _are_arrays(value: Any) -> bool:
    """A dictionary with an array stands for a data set. One of numbers and lists alone does not: it
    is an option of names, such as the schedules of a curriculum."""
    return (
        isinstance(value, Mapping)
        and all(isinstance(key, str) for key in value)
        and any(_is_array(x) for x in value.values())
    )


def _is_array(x: Any) -> bool:
    return hasattr(x, "__dlpack__") and not isinstance(x, np.generic)


def _are_samples(value: Any) -> bool:
    """What PyTorch's map-style data sets have, and no plain data."""
    return (
        hasattr(value, "__len__")
        and hasattr(value, "__getitem__")
        and not isinstance(value, (str, bytes, list, tuple, Mapping))
    )


def arrays_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a data set as arrays: lists of numbers become NumPy's."""
    made: dict[str, Any] = {}
    for name, x in fields.items():
        try:
            made[name] = x if _is_array(x) else np.asarray(x)
        except ValueError as error:  # lists of uneven lengths
            raise _no_array(name, str(error)) from None
        if not _is_array(x) and made[name].dtype.kind in "OSU":
            raise _no_array(name, type(x).__name__)
    return made


def _no_array(name: str, got: str) -> InvalidArgument:
    return InvalidArgument(f"field {name}: expected an array or a list of numbers, got {got}")


def _data_of_arrays(fields: Mapping[str, Any]) -> _core.Component:
    return _core.Component(session(), "tenon.dataset/1", "datasets.arrays", "{}", arrays_of(fields))


def as_json(value: Any) -> Any:
    """What `json` does not write by itself: NumPy's numbers, paths."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"expected numbers, texts, lists, got {type(value).__name__}")


def plan_options(
    backend: str | list[str] | None,
    precision: str | None,
    threads: int | None,
    more: dict[str, Any],
) -> str:
    """Options of a plan as JSON, see `Model.compile`."""
    options = {**more, "backend": backend, "precision": precision, "threads": threads}
    given = {key: value for key, value in options.items() if value is not None}
    return json.dumps(given, default=as_json)
