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
            raise TypeError(f"option {key}: {error}") from None
    return json.dumps(plain, default=as_json), objects


def _are_arrays(value: Any) -> bool:
    """A dictionary of arrays stands for a data set of them."""
    return (
        isinstance(value, Mapping)
        and len(value) > 0
        and all(isinstance(key, str) and hasattr(x, "__dlpack__") for key, x in value.items())
        and not all(isinstance(x, np.generic) for x in value.values())
    )


def _data_of_arrays(fields: Mapping[str, Any]) -> _core.Component:
    return _core.Component(session(), "tenon.dataset/1", "datasets.arrays", "{}", dict(fields))


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
