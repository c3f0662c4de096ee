# SPDX-License-Identifier: Apache-2.0
"""A function that is traced and compiled when it is called: what `jit` and the functions outside of
a trace have in common."""

from __future__ import annotations

import functools
import inspect
import json
import operator
import pickle
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core, tree
from .events import session
from .options import plan_options
from .trace import Trace, Value, as_value

Function = Callable[..., Any]


class Stats(NamedTuple):
    """What a compiled function did so far: graphs compiled, calls that found one, graphs kept."""

    compiles: int
    hits: int
    entries: int


class Dispatched(_core.Dispatch):
    """Compiled for each set of types and shapes of its arguments; see `Compiled`."""

    def __init__(
        self,
        inline: Function,
        named_after: Function,
        backend: str | list[str] | None = None,
        precision: str | None = None,
        threads: int | None = None,
        static_argnums: int | Sequence[int] = (),
        batch_axes: int | Sequence[int | None] | None = None,
        cache_size: int = 64,
        check_nan: bool = False,
        **options: Any,
    ) -> None:
        if not callable(named_after):
            got = type(named_after).__name__
            raise TypeError(f"expected a function or a loaded model, got {got}")
        if cache_size < 1:
            raise ValueError(f"cache_size: expected at least 1, got {cache_size}")
        self._parameters = parameter_names(named_after)
        #: Positions of arguments that are no arrays, and their names where they are given by name.
        self.static = frozenset(_static_positions(static_argnums, named_after))
        self.static_names = frozenset(map(self._parameter, self.static))
        self._batch = batch_axes
        axes = self._axes_of(0 if batch_axes is None else 64)
        native = [_core.NO_BATCH if axis is None else axis for axis in axes]
        statics = (list(self.static), list(self.static_names))
        super().__init__(session(), Trace.value_class, *statics, native, cache_size)
        self._inline = inline
        self._limit = cache_size
        self._check_nan = check_nan
        self._warned = False
        self._plan = (backend, precision, threads, options)
        self.__name__ = type(named_after).__name__  # models and partial functions have no name
        functools.update_wrapper(self, named_after, updated=())

    def _axes_of(self, count: int) -> list[int | None]:
        if self._batch is None or isinstance(self._batch, int):
            return [self._batch] * count
        return (list(self._batch) + [None] * count)[:count]

    @property
    def stats(self) -> Stats:
        """Compiles, hits and kept graphs, for tests and for seeing why a call is slow."""
        return Stats(*self.counts())

    def describe(self) -> dict[str, Any]:
        """Of the plan last used: partitions, `fallback_nodes`, `arena_bytes`."""
        return json.loads(self._describe())

    def _trace(self, args: tuple, named: dict[str, Any]) -> tuple[_core.Model, Any]:
        with Trace() as trace:
            axes = self._axes_of(len(args))
            arrays = [arg for i, arg in enumerate(args) if i not in self.static]
            arrays += [arg for key, arg in named.items() if key not in self.static_names]
            trace.floats = float_type(tree.flatten(arrays)[0])
            given = [
                arg if i in self.static else _as_inputs(trace, arg, self._parameter(i), axes[i])
                for i, arg in enumerate(args)
            ]
            more = {
                key: arg if key in self.static_names else _as_inputs(trace, arg, key, None)
                for key, arg in named.items()
            }
            leaves, _, structure = tree.flatten(self._inline(*given, **more))
            model = trace.finish([as_value(leaf) for leaf in leaves])
        return model, structure

    def _parameter(self, i: int) -> str:
        return self._parameters[i] if i < len(self._parameters) else f"argument{i}"

    def _compile(self, args: tuple, named: dict[str, Any]) -> tuple[Any, str, Any]:
        """For the native half, on a call that finds no plan."""
        if self.stats.entries >= self._limit and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.__name__}: more than {self._limit} sets of shapes and types were compiled, "
                "the oldest are forgotten; use batch_axes for a size that varies, or cache_size",
                RuntimeWarning,
                stacklevel=2,
            )
        model, structure = self._trace(args, named)
        values: list[str] | None = None
        if self._check_nan:
            model, report = model.apply("autodiff.first_nan", "{}", {})
            values = json.loads(report)["values"]
        rebuild = None
        if values is not None or not tree.is_leaf(structure):

            def rebuild(arrays: list[Any]) -> Any:
                refuse_nan(self.__name__, values, arrays)
                return tree.unflatten(structure, iter(arrays))

        backend, precision, threads, options = self._plan
        return model, plan_options(backend, precision, threads, options), rebuild

    def __copy__(self) -> Dispatched:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Dispatched:
        return self

    def __reduce__(self) -> str:
        """Pickled by name, as functions are."""
        module, name = getattr(self, "__module__", ""), getattr(self, "__qualname__", "")
        try:
            found = operator.attrgetter(name)(sys.modules[module])
        except (AttributeError, KeyError):
            found = None
        if found is not self:
            raise pickle.PicklingError(
                f"{self!r} is not what {module}.{name or self.__name__} is, and compiled functions "
                "are pickled by name: pickle the function, and compile it where it is loaded"
            )
        return name

    def __get__(self, instance: Any, _: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<tenon function {self.__name__}, {self.stats.entries} compiled>"


def refuse_nan(who: str, values: list[str] | None, arrays: list[Any]) -> None:
    """Raises where the last array, what `autodiff.first_nan` added, names one of the values."""
    if values is not None and (first := int(arrays[-1])) < len(values):
        raise FloatingPointError(f"{who}: NaN: the first is in the result of {values[first]}")


def parameter_names(f: Function) -> list[str]:
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in plain]


def _static_positions(static_argnums: int | Sequence[int], f: Function) -> list[int]:
    is_one = hasattr(static_argnums, "__index__")
    positions = [operator.index(i) for i in ([static_argnums] if is_one else static_argnums)]
    if all(i >= 0 for i in positions):
        return positions
    count = 0 if _takes_any_number(f) else len(parameter_names(f))
    if min(positions) < -count:
        raise ValueError(
            f"static_argnums: expected positions of {count} parameters, got {min(positions)}"
            if count
            else "static_argnums: expected positions from 0, as the number of arguments may vary, "
            f"got {min(positions)}"
        )
    return [i if i >= 0 else i + count for i in positions]


def _takes_any_number(f: Function) -> bool:
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)


def _as_inputs(trace: Trace, argument: Any, name: str, batch: int | None) -> Any:
    leaves, names, structure = tree.flatten(argument, name)
    return tree.unflatten(
        structure, iter([as_input(trace, x, n, batch) for x, n in zip(leaves, names)])
    )


def as_input(trace: Trace, leaf: Any, name: str, batch: int | None) -> Value:
    dtype, shape, weak = type_of(leaf)
    if type(leaf) is float:
        dtype = trace.floats
    if batch is not None and -len(shape) <= batch < len(shape):
        sizes = list(shape)
        sizes[batch] = "batch"
        shape = tuple(sizes)
    return trace.input(name, dtype, shape, weak)


def float_type(leaves: Sequence[Any]) -> str:
    """What a float of Python among the arguments of a call becomes: beside float64 no digit of it
    is lost."""
    weak = (bool, int, float)
    doubles = (type(x) not in weak and type_of(x)[0] == "float64" for x in leaves)
    return "float64" if any(doubles) else "float32"


def type_of(leaf: Any) -> tuple[str, tuple, bool]:
    """Element type, shape, and whether it is a number of Python."""
    if isinstance(leaf, Value):
        return leaf.dtype, leaf.shape, leaf.weak
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.name, leaf.shape, False
    if isinstance(leaf, bool):
        return "bool", (), False
    if type(leaf) in (int, float):
        return ("int64" if isinstance(leaf, int) else "float32"), (), True
    tensor = _core.as_tensor(session(), leaf)
    return tensor.dtype, tensor.shape, False
