# SPDX-License-Identifier: Apache-2.0
"""Data sets and what is measured on them.

`tenon.data.npz("calib.npz")` makes the component `datasets.npz`; every data set of every plugin
can be had by its name this way. `tenon.data.open(path)` chooses by the file's name,
`tenon.data.arrays(x=...)` takes arrays in memory, `tenon.data.samples(...)` a PyTorch data set.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from .component import Component, Named, full_id
from .errors import InvalidArgument
from .events import session
from .model import Model, Plan
from .options import arrays_of, plan_options

_DATASET = "tenon.dataset/1"
_METRIC = "tenon.metric/1"


class Dataset(Component):
    """Samples by index. Each sample has named fields; `fields` holds their dtype and shape."""

    def __init__(self, id: str, /, **options: Any) -> None:
        super().__init__(_DATASET, id, **options)
        self.fields: list[dict[str, Any]] = json.loads(self._native.dataset_fields())

    @classmethod
    def _of(cls, native: _core.Component, id: str) -> Dataset:
        made = cls.__new__(cls)
        made.role, made.id, made._native = _DATASET, id, native
        made.fields = json.loads(native.dataset_fields())
        return made

    def __len__(self) -> int:
        size = self._native.dataset_size()
        if size is None:
            raise TypeError(f"{self.id}: expected a size, got a stream")
        return size

    def batch(self, index: Sequence[int], seed: int = 0) -> dict[str, np.ndarray]:
        """The samples of these numbers: field -> array, [len(index), ...shape of the field]."""
        arrays = self._native.dataset_batch(list(index), seed, len(self.fields))
        return {field["name"]: array for field, array in zip(self.fields, arrays)}

    def __getitem__(self, i: int) -> dict[str, np.ndarray]:
        """Sample i, without a batch axis."""
        size = len(self)
        if not -size <= i < size:
            raise IndexError(f"sample {i}: expected a number below {size}")
        return {name: array[0] for name, array in self.batch([i % size]).items()}

    def batches(self, size: int) -> Iterator[dict[str, np.ndarray]]:
        """All samples in order, `size` at a time."""
        if size < 1:
            raise ValueError(f"batches: expected a size of at least 1, got {size}")
        for start in range(0, len(self), size):
            yield self.batch(range(start, min(start + size, len(self))))

    def part(self, start: int, count: int) -> Dataset:
        """`count` samples from `start`."""
        return Dataset("datasets.subset", data=self, skip=start, count=count)

    def split(self, share: float) -> tuple[Dataset, Dataset]:
        """The first `share` of the samples, and the rest."""
        if not 0 < share < 1:
            raise ValueError(f"split: expected a share between 0 and 1, got {share}")
        first = round(len(self) * share)
        return self.part(0, first), self.part(first, len(self) - first)


def arrays(**fields: Any) -> Dataset:
    """Arrays in memory as a data set: the first axis of each counts samples.

        data = tn.data.arrays(x=images, label=labels)

    NumPy's arrays, anything with `__dlpack__` (PyTorch, JAX) and lists of numbers. Memory is
    shared: leave it as it is while the data set lives. An option that is a data set takes a
    dictionary as well when one of its values is an array: `tn.train(model, {"x": images, ...})`.
    """
    return Dataset("datasets.arrays", **arrays_of(fields))


def samples(source: Any, fields: Sequence[str] | None = None) -> Dataset:
    """A sequence of samples as a data set, as PyTorch's map-style data sets are:
    `tn.data.samples(torchvision.datasets.FashionMNIST(...), fields=("image", "label"))`.

    source: has `len(source)` and `source[i]`, a tuple of arrays and numbers, one array, or a
    dictionary of them by name. fields: the names of a tuple's values, ("x", "label") by default;
    the name of a lone array, "x"; of a dictionary those that are taken, by default all. All samples
    have the names, shapes and types of the first.

    Samples are asked for from the thread that prepares batches. What one raises while `tenon.train`
    prepares a batch is raised as InvalidArgument with that error's text; where the calling thread
    reads them (`evaluate`, calibration, `batch`), the error itself is raised.
    """
    size = len(source)
    if size == 0:
        raise InvalidArgument("tn.data.samples: expected at least one sample, got none")
    rows = _Rows(source, fields)
    first = rows[0]

    def batch(index: list[int], seed: int) -> list[np.ndarray]:
        taken = [rows[i] for i in index]
        for i, row in zip(index, taken):
            for name, array, like in zip(rows.names, row, first):
                if array.shape != like.shape or array.dtype != like.dtype:
                    raise InvalidArgument(
                        f"sample {i}: field {name}: expected {like.dtype}{list(like.shape)} as "
                        f"sample 0 has, got {array.dtype}{list(array.shape)}"
                    )
        return [np.stack(column) for column in zip(*taken)]

    listed = [
        {"name": name, "dtype": array.dtype.name, "shape": list(array.shape)}
        for name, array in zip(rows.names, first)
    ]
    native = _core.dataset_of_function(session(), size, json.dumps(listed), batch)
    return Dataset._of(native, "python.function")


class _Rows:
    """The samples of a source as arrays in the order of `names`, which sample 0 fixes."""

    def __init__(self, source: Any, fields: Sequence[str] | None) -> None:
        sample = source[0]
        self._source = source
        self._keys = list(sample) if isinstance(sample, Mapping) else None
        self._takes_all = fields is None
        if isinstance(fields, str):
            fields = (fields,)
        if fields is None:
            is_tuple = isinstance(sample, (tuple, list))
            fields = self._keys or (("x", "label") if is_tuple else ("x",))
        self.names = list(fields)

    def __getitem__(self, i: int) -> list[np.ndarray]:
        sample = self._source[i]
        if self._keys is not None:
            sample = self._by_name(i, sample)
        elif isinstance(sample, Mapping):
            raise InvalidArgument(
                f"sample {i}: expected values without names as sample 0 has, got the keys "
                f"{_listed(sample)}; return samples of one kind"
            )
        elif not isinstance(sample, (tuple, list)):
            sample = (sample,)
        if len(self.names) != len(sample):
            raise InvalidArgument(
                f"sample {i}: expected {len(self.names)} values for fields {_listed(self.names)}, "
                f"got {len(sample)} (name them by fields=...)"
            )
        return [np.asarray(value) for value in sample]

    def _by_name(self, i: int, sample: Any) -> list[Any]:
        if not isinstance(sample, Mapping):
            raise InvalidArgument(
                f"sample {i}: expected a dictionary with the keys {_listed(self.names)} as sample "
                f"0 is one, got {type(sample).__name__}; return samples of one kind"
            )
        missing = [name for name in self.names if name not in sample]
        if missing or (self._takes_all and len(sample) != len(self.names)):
            why = " as sample 0 has" if self._takes_all else ""
            raise InvalidArgument(
                f"sample {i}: expected the keys {_listed(self.names)}{why}, got "
                f"{_listed(sample)}; fields=... takes those that all samples have"
            )
        return [sample[name] for name in self.names]


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names)) or "(none)"


def open(path: str | os.PathLike, **options: Any) -> Dataset:
    """The data set of the kind that the file's name asks for."""
    text = os.fspath(path)
    id = _core.component_for_file(session(), _DATASET, text)
    return Dataset(id, path=text, **options)


def _make(id: str, path: str | os.PathLike | None = None, **options: Any) -> Dataset:
    if path is not None:
        options["path"] = os.fspath(path)
    return Dataset(id, **options)


_named = Named(__name__, _DATASET, "datasets", _make)
__getattr__, __dir__ = _named.get, _named.names
__all__ = ["Component", "Dataset", "arrays", "evaluate", "open", "samples"]


def evaluate(
    model: Model | Plan,
    data: Dataset | Mapping[str, Any],
    metric: str = "accuracy",
    batch: int | None = None,
    reference: Model | None = None,
    metric_options: dict[str, Any] | None = None,
    limit: int = 0,
    **compile_options: Any,
) -> dict[str, Any]:
    """Runs the model over the data set and measures: {"metric", "value", "higher_is_better",
    "details", "samples", ...} and the value under the metric's own name.

    Fields with the name of an input are fed; the metric's option `label` names the field that is
    right. With `reference` the metric compares with that model's outputs instead, in its own
    precision. batch: samples at once; None: what the model fixes, or 32. limit: only the first so
    many samples. A plan is compiled once more, as it was: it keeps its own states and shapes.
    """
    if isinstance(model, Plan):
        plan, graph = model._options, model._model
    else:
        own = {key: compile_options.pop(key, None) for key in ("backend", "precision", "threads")}
        plan, graph = plan_options(**own, more=compile_options), model
    how = json.loads(plan)
    id = full_id(_METRIC, "metrics", metric)
    options: dict[str, Any] = {"data": data, "metric": id, "limit": limit, "plan": how}
    options["metric_options"] = metric_options or {}
    if batch is not None:
        options["batch"] = batch
    if reference is not None:
        options["against"] = reference
        options["against_plan"] = {key: how[key] for key in ("backend", "threads") if key in how}
    result = graph.apply("metrics.evaluate", **options).report
    assert result is not None
    if result["value"] is None:  # JSON has no NaN
        result["value"] = float("nan")
    return {**result, id.rsplit(".", 1)[-1]: result["value"]}
