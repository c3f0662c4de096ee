# SPDX-License-Identifier: Apache-2.0
"""Models as functions: of their inputs, and of their parameters as well."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from .errors import InvalidArgument
from .trace import Value, as_value, cast, current


def traced_call(
    model: Any,
    /,
    *inputs: Any,
    parameters: Mapping[str, Any] | None = None,
    training: bool = False,
    key: Any = None,
) -> Any:
    """`Model.__call__` in a trace. Models are not named here, because they import this."""
    ports = model.inputs
    if len(inputs) != len(ports):
        names = ", ".join(port.name for port in ports)
        raise InvalidArgument(f"model: expected {len(ports)} inputs ({names}), got {len(inputs)}")
    if model.states:
        raise InvalidArgument("model: expected one without states; compile it to run it")
    values = [_typed(x, port) for x, port in zip(inputs, ports)]
    draws = None
    if parameters or training:
        parameters = model.parameters() if parameters is None else parameters
        model = _form(model, tuple(sorted(parameters)), training)
        places = model.inputs[len(ports) : len(ports) + len(parameters)]
        values += [_parameter(parameters[port.name], port) for port in places]
        draws = model.report["key"]
    if draws and key is None:
        raise InvalidArgument(
            "model: expected key=[seed, step], two integers by which Dropout draws, another pair "
            "in each step; got none"
        )
    if draws:
        values.append(_typed(key, model.inputs[-1]))
    elif key is not None:
        raise InvalidArgument(
            "key: expected none where nothing is drawn: "
            + ("the model has no Dropout" if training else "training=True draws")
        )
    results = current().splice(model._native, values)
    return results[0] if len(results) == 1 else tuple(results)


def parameter_names(model: Any, patterns: tuple[str, ...]) -> list[str]:
    """What `tn.train` would train, or what of it matches the patterns."""
    return model.apply("trainer.functional", parameters=list(patterns)).report["parameters"]


def _form(model: Any, names: tuple[str, ...], training: bool) -> Any:
    """The model with these parameters as inputs behind its own; it is kept with the model."""
    made = model._forms.get((names, training))
    if made is not None:
        return made
    known = parameter_names(model, ())
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3) or known[:3]
            raise InvalidArgument(
                f"parameters: expected names that Model.parameters() gives ({', '.join(near)}, "
                f"...), got '{name}'"
            )
    frozen = [name for name in known if name not in names]
    made = model.apply("trainer.functional", frozen=frozen, training=training)
    model._forms[names, training] = made
    return made


def _typed(x: Any, port: Any) -> Value:
    value = as_value(x, port.dtype)
    return cast(value, port.dtype) if port.dtype else value


def _parameter(x: Any, port: Any) -> Value:
    value = _typed(x, port)
    if value.shape != port.shape:
        raise InvalidArgument(
            f"parameters: {port.name}: expected the shape {list(port.shape or ())}, got "
            f"{list(value.shape)}"
        )
    return value
