# SPDX-License-Identifier: Apache-2.0
"""Functions become graphs: while one is traced, each operation on its values adds a node."""

from __future__ import annotations

import linecache
import sys
import threading
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core, types
from .errors import InvalidArgument, TenonError, TracedValueError, from_status
from .events import session
from .types import Dim

_OUTLIVED = (
    "{}: expected a value of the function being traced, got one that outlived its function: "
    "return it instead of keeping it elsewhere"
)


class _Stack(threading.local):
    def __init__(self) -> None:
        self.traces: list[Trace] = []


_stack = _Stack()


def users_line() -> str:
    """`file.py:12: source` of the innermost line outside this package."""
    frame = sys._getframe(1)
    while frame and frame.f_globals.get("__name__", "").split(".")[0] in ("tenon", "numpy"):
        frame = frame.f_back
    if frame is None:
        return "?"
    source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}: `{source}`"


def tracing() -> bool:
    """Whether this thread is inside a function that is being traced."""
    return bool(_stack.traces)


def current() -> Trace:
    """The trace that operations go to."""
    if not _stack.traces:
        raise TracedValueError(_OUTLIVED.format(users_line()))
    return _stack.traces[-1]


def _checksum(array: Any) -> int:
    try:
        view = array if isinstance(array, np.ndarray) else np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError):
        return 0  # not NumPy's to read: such an array counts as one that does not change
    return zlib.crc32(np.ascontiguousarray(view).reshape(-1).view(np.uint8))


class Value:
    """A value of the graph under trace; `Traced` adds what users do with it."""

    __slots__ = ("trace", "id", "dtype", "shape", "weak")

    def __init__(self, trace: Trace, id: int, weak: bool = False) -> None:
        _, dtype, shape, _ = trace.native.type_of(id)
        self.trace = trace
        self.id = id
        self.dtype: str = dtype
        self.shape: tuple[Dim, ...] = shape
        self.weak = weak


class Trace:
    """One graph under construction. `with Trace() as t:` makes it the one that operations go to."""

    value_class: type[Value] = Value  # Traced, once it is defined

    def __init__(self) -> None:
        self.native = _core.Builder(session())
        #: Values of the traces around this one that it uses; each became an input of this one.
        self.captured: list[Value] = []
        self._own: dict[int, Value] = {}
        self._constants: dict[Any, tuple[Any, Value]] = {}
        self._names: set[str] = set()
        self.model: _core.Model | None = None  # once it is finished
        #: What a float of Python becomes that is an argument.
        self.floats: str = _stack.traces[-1].floats if _stack.traces else "float32"
        self.n_checkpoints = 0  # calls of such functions: each draws other numbers

    def __enter__(self) -> Trace:
        _stack.traces.append(self)
        _core.count_traces(1)
        return self

    def __exit__(self, *_: Any) -> None:
        _stack.traces.pop()
        _core.count_traces(-1)

    def input(self, name: str, dtype: str, shape: Sequence[Dim], weak: bool = False) -> Value:
        name = name or "x"
        while name in self._names:
            name += "_"
        self._names.add(name)
        return self.value_class(self, self.native.add_input(name, dtype, shape), weak)

    def node(
        self,
        op: str,
        inputs: Sequence[Value | None],
        outputs: int = 1,
        domain: str = "",
        **attributes: Any,
    ) -> Any:
        """One node; its value, or a tuple of them when outputs is not 1."""
        ids = [0 if value is None else value.id for value in inputs]
        try:
            made = self.native.add_node(domain, op, "", ids, outputs, attributes)
        except TenonError as failed:
            raise from_status(
                failed.code, failed.domain, f"{users_line()}: {failed.whole or failed}"
            ) from None
        values = tuple(self.value_class(self, id) for id in made)
        return values[0] if outputs == 1 else values

    def constant(self, array: Any) -> Value:
        """The array is copied; the same object, unchanged, gives the same value again."""
        key = (id(array), _checksum(array))  # a loop may fill one array anew
        known = self._constants.get(key)
        if known is None:
            made = self.value_class(self, self.native.add_constant("constant", array))
            known = self._constants[key] = (array, made)
        return known[1]

    def setting(self, name: str, value: float) -> Value:
        """A named scalar, of the type of the trace's floats; one for all who ask for it."""
        before, made = self._constants.get(("setting", name), (value, None))
        if before != value:
            raise InvalidArgument(f"setting {name}: expected {before} again, got {value}")
        if made is None:
            number = np.asarray(value, self.floats)
            made = self.value_class(self, self.native.add_constant(name, number))
            self._constants["setting", name] = (value, made)
        return made

    def number(self, number: Any, dtype: str) -> Value:
        return self.value_class(self, self.native.number(number, dtype))

    def lift(self, value: Value) -> Value:
        """The value as one of this trace: a value of a trace around it becomes an input."""
        if value.trace is self:
            return value
        if value.trace not in _stack.traces:
            raise TracedValueError(_OUTLIVED.format(users_line()))
        known = self._own.get(id(value))
        if known is None:
            name = f"captured{len(self.captured)}"
            known = self.input(name, value.dtype, value.shape, value.weak)
            self._own[id(value)] = known
            self.captured.append(value)
        return known

    def finish(self, results: Sequence[Value]) -> _core.Model:
        """The graph with these results as its outputs."""
        for i, value in enumerate(results):
            self.native.add_output(f"result{i}", value.id)
        self.model = self.native.build()
        return self.model

    def splice(self, model: _core.Model, inputs: Sequence[Value], scope: str = "") -> list[Value]:
        """Copies a graph in; its results."""
        made = self.native.splice(model, scope, [self.lift(v).id for v in inputs])
        return [self.value_class(self, id) for id in made]


def as_value(x: Any, dtype: str | None = None) -> Value:
    """x as a value of the current trace: a number takes dtype, an array becomes a constant."""
    trace = current()
    if isinstance(x, Value):
        return trace.lift(x)
    if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
        return trace.number(x, dtype or types.name_of(type(x)))
    if isinstance(x, (list, tuple)):
        if any(isinstance(item, Value) for item in x):
            raise TracedValueError(
                f"{users_line()}: expected one array, got a list with traced values; use tn.stack"
            )
        x = np.asarray(x)
        if x.dtype == np.float64:
            made = trace.native.numbers(x.shape, x.ravel().tolist())
            return trace.value_class(trace, made)
        return trace.constant(x)
    if hasattr(x, "__dlpack__") or hasattr(x, "__array__"):
        return trace.constant(x)
    raise TypeError(f"{users_line()}: expected an array or a number, got {type(x).__name__}")


def as_operand(x: Any) -> Value:
    """As as_value, but a number of Python takes the type of what it meets, and keeps its digits."""
    if type(x) not in (int, float):
        return as_value(x)
    trace = current()
    made = as_value(x, trace.floats if type(x) is float else None)
    made.weak = True
    return made


def cast(x: Value, dtype: str) -> Value:
    if x.dtype == dtype:
        return x
    return current().node("Cast", [x], to=_core.ElementType(dtype))


def as_index(x: Any) -> Value:
    """Positions along an axis, in a type that ONNX allows for them."""
    value = as_value(x)
    return value if value.dtype in ("int32", "int64") else cast(value, "int64")


def integers(values: Sequence[int]) -> Value:
    """A constant list of int64, as shapes and axes are."""
    trace = current()
    return trace.value_class(trace, trace.native.integers(list(values)))
