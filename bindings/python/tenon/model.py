# SPDX-License-Identifier: Apache-2.0
"""Models and plans."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _core, lists
from .eager import anywhere
from .events import session
from .functional import parameter_names, traced_call
from .options import as_json, plan_options, split_options
from .types import Dim


class Port(NamedTuple):
    """An input or output. shape holds sizes, names of symbolic sizes ("batch"), and None where
    nothing is known; shape None: not even the rank. dtype is NumPy's name ("float32")."""

    name: str
    dtype: str | None
    shape: tuple[Dim, ...] | None
    kind: str = "tensor"


class Outputs(tuple):
    """The results of a run: by position, or by name as in `y["logits"]`."""

    names: tuple[str, ...]

    def __new__(cls, arrays: Iterable[Any], names: tuple[str, ...]) -> Outputs:
        made = super().__new__(cls, arrays)
        made.names = names
        return made

    def __getitem__(self, key):
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"expected one of {', '.join(self.names)}, got '{key}'")
            return super().__getitem__(self.names.index(key))
        return super().__getitem__(key)

    def __reduce__(self):
        return Outputs, (list(self), self.names)


class Plan:
    """A model compiled over backends. Call it with the inputs, by position or by name.

    Inputs: NumPy arrays, anything with `__dlpack__` (PyTorch, JAX), numbers and lists. Dense memory
    is used as it is, without a copy; that of a GPU when the plan runs there and its option
    `input_stream` names the CUDA stream that makes it: `torch.cuda.current_stream().cuda_stream`,
    or 1 where that is 0, the default stream. Outputs: NumPy arrays over memory of their own.
    One plan may be called from many threads at once when it has no state. Sequences are lists of
    arrays, optionals an array, a list of arrays, or None.
    """

    def __init__(self, native: _core.Plan, model: Model, options: str, taps: list[str]) -> None:
        self._native = native
        self._model = model
        self._options = options
        self.inputs: list[Port] = model.inputs
        self.outputs: list[Port] = model.outputs
        self.names: tuple[str, ...] = tuple(port.name for port in self.outputs) + tuple(taps)
        self._has_lists = any(port.kind != "tensor" for port in self.inputs + self.outputs)

    def __call__(self, *args: Any, **named: Any) -> Outputs:
        """Runs: the model's outputs in order, then the taps, as NumPy arrays."""
        if self._has_lists:
            return self._with_lists(args, named)
        return Outputs(self._native.arrays(*args, **named), self.names)

    def run(self, inputs: dict[str, Any]) -> Outputs:
        """As a call, for names that are not Python's ("input.1")."""
        return self(**inputs)

    def _with_lists(self, args: tuple, named: dict[str, Any]) -> Outputs:
        kinds = {port.name: port.kind for port in self.inputs}
        packed = [lists.pack(value, port.kind) for value, port in zip(args, self.inputs)]
        packed += args[len(packed) :]
        named = {name: lists.pack(v, kinds.get(name, "tensor")) for name, v in named.items()}
        results = self._native.arrays(*packed, **named)
        wanted = [port.kind for port in self.outputs]
        wanted += ["tensor"] * (len(results) - len(wanted))
        return Outputs(map(lists.unpack, results, wanted), self.names)

    def tensors(self, *args: Any, **named: Any) -> Outputs:
        """As a call, but results are `tenon.Tensor`: for `torch.from_dlpack` in types that NumPy
        cannot export, as bfloat16."""
        return Outputs(self._native.tensors(*args, **named), self.names)

    def prepare(self, *args: Any, **named: Any) -> None:
        """Compiles for inputs of these shapes now, so that the first run does not."""
        self._native.prepare(*args, **named)

    def describe(self) -> dict[str, Any]:
        """Of the shapes last run: partitions, `fallback_nodes`, `arena_bytes`, `copies_per_run`."""
        return json.loads(self._native.describe())

    def profile(self, *args: Any, **named: Any) -> list[dict[str, Any]]:
        """Runs once; for each layer name, op, backend, kernel, ns, flops, bytes."""
        return json.loads(self._native.profile(*args, **named))

    def get_state(self, name: str) -> np.ndarray:
        """A copy of the state of the input of this name; zeros before the first run."""
        return self._native.get_state(name)

    def set_state(self, name: str, value: Any) -> None:
        """Sets a state, as to go on where another plan stopped."""
        self._native.set_state(name, value)

    def __reduce__(self):
        """Copied and pickled as its model, options and states: the other plan is compiled again."""
        taps = list(self.names[len(self.outputs) :])
        states = {port.name: self.get_state(port.name) for port in self._model.states}
        return _compiled_again, (self._model, self._options, taps, states)

    def __repr__(self) -> str:
        return f"<tenon.Plan {signature(self.inputs, self.outputs)}>"


class Model:
    """A graph with its weights, never changed: `apply` gives a new one that shares weights."""

    def __init__(self, native: _core.Model, report: dict[str, Any] | None = None) -> None:
        self._native = native
        #: The report of the pass that made this model; None for others.
        self.report = report
        self._forms: dict[Any, Model] = {}  # as functions of some parameters (functional.py)

    @property
    def inputs(self) -> list[Port]:
        """Names, types and shapes of what a run takes, in order; states are not among them."""
        return [Port(*port) for port in self._native.inputs()]

    @property
    def outputs(self) -> list[Port]:
        """Names, types and shapes of what a run gives, in order."""
        return [Port(*port) for port in self._native.outputs()]

    @property
    def states(self) -> list[Port]:
        """What a plan keeps from run to run; not given with the inputs."""
        return [Port(*port) for port in self._native.states()]

    def __call__(
        self,
        *inputs: Any,
        parameters: Mapping[str, Any] | None = None,
        training: bool = False,
        key: Any = None,
    ) -> Any:
        """The model as a function of its inputs, by position: for arrays, and inside of `tn.jit`,
        `tn.grad`, `tn.vmap`. One output is a value, several are a tuple. To run it many times on a
        chosen backend, `compile` it.

        parameters: numbers in the place of its own, by name, all or some, so that the model is a
        function of them too, which is differentiated, mapped or updated in a loop of one's own:

            def loss(params, x, y):
                return ((model(x, parameters=params) - y) ** 2).mean()
            step = tn.Step(loss, model.parameters(), tn.optim.adamw(lr=1e-3))
            ...
            trained = tn.nn.load(model, step.parameters, update=True)

        training: Dropout draws by key, [seed, step], two integers; BatchNormalization uses the
        statistics of the batch. The running ones stay: `recovery.statistics` estimates them.
        """
        named = {"parameters": parameters, "training": training or None, "key": key}
        if isinstance(key, (list, tuple)):  # as an array, so that another key is no other function
            named["key"] = np.asarray(key, "int64")
        given = {name: x for name, x in named.items() if x is not None}
        return anywhere(traced_call)(self, *inputs, **given)

    def parameters(self, *patterns: str) -> dict[str, np.ndarray]:
        """Copies of what `tn.train` would train, by name: all, or those that match a pattern."""
        constants = self.constants()
        return {name: np.array(constants[name]) for name in parameter_names(self, patterns)}

    def apply(self, pass_id: str, /, **options: Any) -> Model:
        """A new model, changed by a pass: `model.apply("quantizer.static", data=train)`.

        The options are those of the pass's schema (`tenon.components("pass")`); a data set, a
        model or an array may be given as it is.
        """
        native, report = self._native.apply(pass_id, *split_options(options))
        return Model(native, json.loads(report) if report else None)

    def save(self, path: str | os.PathLike, **options: Any) -> None:
        """Writes the whole file or none; the format is the writer's for this name, or `format=`."""
        self._native.save(os.fspath(path), json.dumps(options, default=as_json))

    def text(self, data: bool = False) -> str:
        """Canonical text, byte-stable. Large constants by hash unless data."""
        return self._native.text(data)

    def diff(self, after: Model) -> str:
        """Lines that differ between the two texts; empty when equal."""
        return self._native.diff(after._native)

    def inspect(self) -> dict[str, Any]:
        """Inputs, outputs, operators with counts, parameters, bytes, flops for each node."""
        return json.loads(self._native.inspect())

    def constants(self) -> dict[str, _core.Tensor]:
        """Weights by name, sharing the model's memory: `np.asarray(model.constants()["w"])`."""
        return self._native.constants()

    def compile(
        self,
        backend: str | list[str] | None = None,
        precision: str | None = None,
        threads: int | None = None,
        taps: Iterable[str] = (),
        **options: Any,
    ) -> Plan:
        """A plan that runs this model.

        backend: id, or ids in order of preference; without one what this machine is best with.
        What none of them takes runs on "reference" and is listed in `plan.describe()`.
        precision: "fp32", "bf16", as the backend knows them. taps: names of values to hand out
        beside the outputs. plan_cache: how many input shapes are kept compiled (64).
        max_value_bytes: a cap for results whose size comes from data, as NonZero's: a larger one
        raises ResourceExhausted and names the node. Other options are the backend's own.
        """
        names = list(taps)
        text = plan_options(backend, precision, threads, options)
        return Plan(_core.Plan(self._native, text, names), self, text, names)

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self

    def __reduce__(self):
        """Pickled as text, with all weights. What applies to it in the other process is that
        process's: plugins are not carried along."""
        return _restored, (self.text(data=True), self.report)

    def __repr__(self) -> str:
        return f"<tenon.Model {signature(self.inputs, self.outputs)}>"


def _compiled_again(model: Model, options: str, taps: list[str], states: dict[str, Any]) -> Plan:
    plan = Plan(_core.Plan(model._native, options, taps), model, options, taps)
    for name, value in states.items():
        plan.set_state(name, value)
    return plan


def signature(inputs: list[Port], outputs: list[Port]) -> str:
    """(x: float32[1, 3]) -> (y: float32[1, 10])"""

    def ports(all: list[Port]) -> str:
        return ", ".join(f"{p.name}: {p.dtype}{list(p.shape or ['...'])}" for p in all)

    return f"({ports(inputs)}) -> ({ports(outputs)})"


def load(path: str | os.PathLike, **options: Any) -> Model:
    """Reads a model; the format follows from its first bytes and its name, or by `format=`."""
    text = json.dumps(options, default=as_json)
    return Model(_core.load(session(), os.fspath(path), text))


def _restored(text: str, report: dict[str, Any] | None) -> Model:
    return Model(_core.parse(session(), text), report)


def parse(text: str) -> Model:
    """A model from its canonical text (`Model.text(data=True)`)."""
    return Model(_core.parse(session(), text))
