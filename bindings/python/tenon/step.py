# SPDX-License-Identifier: Apache-2.0
"""Training steps: forward, backward and update of the parameters in one plan."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _core, tree
from .component import listed
from .dispatch import as_input, float_type, parameter_names, refuse_nan, type_of
from .errors import InvalidArgument, OutOfRange
from .model import Model
from .optim import Optimizer, by_name
from .options import plan_options
from .trace import Trace, as_value, current, tracing
from .transforms import Compiled

_RATE = "learning_rate"
_AVERAGE = "/average"
_COUNT = "step/count"


def setting(name: str, value: float) -> Any:
    """A number of a loss, a function or a network (`tenon.nn`) that a schedule can drive.

        def loss(params, x, y):
            logits = model(params, x) / tn.setting("temperature", 4.0)
            ...
        cooling = tn.schedule.linear(**{"from": 4, "to": 1, "steps": 1000})
        step = tn.Step(loss, params, optimizer, settings={"temperature": cooling})

    Where nothing drives it, and outside of a trace, it is value.
    """
    if not tracing():
        return float(value)
    return current().setting(name, value)


def _without_memory(leaf: Any) -> Any:
    """Of an array, its type and shape alone."""
    if not isinstance(leaf, np.ndarray):
        return leaf
    return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)


class Step:
    """One step of training; call it with a batch. It gives the loss before the update.

        def loss(params, x, y):                  # x [b, 784], y [b] of integers; a float scalar
            logits = tn.linear(x, params["w"], params["b"])
            return -(tn.log_softmax(logits) * tn.one_hot(y, 10)).sum(-1).mean()

        step = tn.Step(loss, {"w": w, "b": b}, tn.optim.adamw(lr=1e-3))
        for x, y in batches:
            print(step(x, y))
        step.parameters                          # the tree again, trained

    The parameters and what the optimizer keeps are states inside the plan: a step moves none of
    them, and lets go of the arrays that it was given. Batches of another shape have a plan of their
    own, beside the first one: the states are in memory once. has_aux: the loss gives (loss, more),
    and so does the step. check_nan: FloatingPointError that names the node which made the first NaN
    of a step. joint: passes on forward and backward together, behind the gradient and in this
    order, with their options: {"autodiff.recompute": {}} keeps few values in between;
    `step.joint_reports` has their reports.

    accumulate: so many calls make one update, as one batch of all their samples does; a batch
    counts by the first axis of its first array. The learning rate's schedule goes by updates.
    clip_norm: the largest norm of all gradients together, clip_value: of each number in them; with
    accumulate they bound the gradient of the whole window. groups: as those of `tn.train`:
    {"slow": {"parameters": "*.encoder.*", "rate": 0.1, "options": {"weight_decay": 0}}}. A name
    begins with that of the loss's first argument: "params.encoder.w".
    average: how much of a moving average of the parameters is kept in an update; see `averages`.
    settings: numbers that change from step to step, by name: those of `tenon.setting` in the loss,
    options of the optimizer (weight_decay); each a number, a schedule or a function of the update's
    number. `step.settings` is that mapping: a value put there holds from the next step on.
    Other options are those of `Model.compile`.
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        parameters: Any,
        optimizer: Optimizer | str,
        has_aux: bool = False,
        check_nan: bool = False,
        joint: Mapping[str, Mapping[str, Any]] | None = None,
        accumulate: int = 1,
        average: float = 0,
        settings: Mapping[str, float | Callable[[int], float]] | None = None,
        backend: str | list[str] | None = None,
        precision: str | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        self._loss = loss._inline if isinstance(loss, Compiled) else loss
        self._names = parameter_names(loss) or ["params"]
        self._parameters = parameters
        self._optimizer = by_name(optimizer)
        self._has_aux = has_aux
        self._check_nan = check_nan
        self._joint = dict(joint or {})
        #: Reports of the passes of `joint` on the batch traced last, by id.
        self.joint_reports: dict[str, Any] = {}
        if accumulate < 1 or accumulate != int(accumulate):
            raise InvalidArgument(
                f"Step: accumulate: expected a whole number, at least 1 batch, got {accumulate}"
            )
        self._accumulate = accumulate
        if accumulate > 1 and "trainer.clip" in self._joint:
            raise InvalidArgument(
                "Step: joint: trainer.clip would bound each batch of a window by itself: "
                "expected clip_norm or clip_value in its place"
            )
        self._clip = {key: options.pop(f"clip_{key}", 0) for key in ("norm", "value")}
        self._groups: dict[str, Mapping[str, Any]] = dict(options.pop("groups", None) or {})
        self._average = average
        #: What drives numbers of the step, by their names.
        self.settings: dict[str, float | Callable[[int], float]] = dict(settings or {})
        self._driven = list(self.settings)
        self._inputs: list[list[str]] = [[], []]  # those before the learning rate, and behind it
        self._options = plan_options(backend, precision, threads, options)
        self._doubles: dict[Any, set[str]] = {}  # of each plan, the inputs that are float64
        self._plans: dict[Any, tuple[_core.Plan, Model, Any]] = {}
        self._watched: dict[Any, list[str] | None] = {}  # of each plan, where check_nan is on
        self._now: _core.Plan | None = None
        self._states: list[str] = []
        #: How many steps were taken.
        self.count = 0

    def __call__(self, *batch: Any) -> Any:
        leaves, _, structure = tree.flatten(batch)
        key = (repr(structure), tuple(type_of(leaf) for leaf in leaves))
        if key not in self._plans:
            self._plans[key] = self._build(batch)
            model = self._plans[key][1]
            self._doubles[key] = {p.name for p in model.inputs if p.dtype == "float64"}
            report = model.report
            self._watched[key] = report["values"] if self._check_nan and report else None
        plan, model, results = self._plans[key]
        if set(self.settings) != set(self._driven):
            raise InvalidArgument(
                f"Step: settings: expected the names it was made with, {sorted(self._driven)}, "
                f"got {sorted(self.settings)}"
            )
        if self._now is None:
            self._begin(plan, model)
        self._now = plan
        update = self.count // self._accumulate

        def typed(name: str, number: float) -> Any:
            return np.float64(number) if name in self._doubles[key] else np.float32(number)

        def setting(name: str) -> Any:
            return typed(f"setting/{name}", self._setting(name, update))

        numbers = [setting(name) for name in self._inputs[0]]
        if self._accumulate > 1:
            numbers.append(np.float32((self.count + 1) % self._accumulate == 0))
        numbers.append(typed(_RATE, self._optimizer.rate(update)))
        numbers += [setting(name) for name in self._inputs[1]]
        if self._float_type(leaves) == "float64":
            leaves = [np.float64(x) if type(x) is float else x for x in leaves]
        made = plan.arrays(*leaves, *numbers)
        self.count += 1
        refuse_nan("Step", self._watched[key], made)
        return tree.unflatten(results, iter(made))

    def __reduce__(self):
        raise TypeError(
            "a Step holds a plan and is neither copied nor pickled: keep state(), make the Step "
            "again, and hand it to set_state()"
        )

    def _for_plan(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a pass, with the plan's precision where it has an option for that."""
        precision = json.loads(self._options).get("precision")
        for one in listed("tenon.pass/1") if precision and "precision" not in given else ():
            option = (one["schema"] or {}).get("properties", {}).get("precision", {})
            if one["id"] == name and precision in option.get("enum", ()):
                return {**given, "precision": precision}
        return dict(given)

    def _drive(self, model: Model, time: int) -> Model:
        """Before the gradient, and again behind the update, whose numbers are there then."""
        if not self._driven:
            return model
        model = model.apply("trainer.drive", names=self._driven, may_miss=time == 0)
        self._inputs[time] = model.report["inputs"]
        return model

    def _float_type(self, leaves: list[Any]) -> str:
        return float_type([*tree.flatten(self._parameters)[0], *leaves])

    def _setting(self, name: str, update: int) -> float:
        given = self.settings[name]
        value = float(given(update) if callable(given) else given)
        if not math.isfinite(value):
            raise OutOfRange(f"Step: setting {name}: expected a finite number, got {value}")
        return value

    def _build(self, batch: tuple) -> tuple[_core.Plan, Model, Any]:
        model, results = self.trace(*batch)
        return _core.Plan(model._native, self._options, [], self._now), model, results

    def trace(self, *batch: Any) -> tuple[Model, Any]:
        """The graph of a step for batches like this one, and the structure of its results."""
        with Trace() as trace:
            trace.floats = self._float_type(tree.flatten(batch)[0])
            arguments, trained = [], []
            for i, argument in enumerate((self._parameters, *batch)):
                name = self._names[i] if i < len(self._names) else f"argument{i}"
                leaves, names, structure = tree.flatten(argument, name)
                made = [as_input(trace, x, n, None) for x, n in zip(leaves, names)]
                arguments.append(tree.unflatten(structure, iter(made)))
                if i == 0:
                    trained = names
            result = self._loss(*arguments)
            leaves, _, results = tree.flatten(result)
            model = Model(trace.finish([as_value(leaf) for leaf in leaves]))
            if trace.captured:
                raise InvalidArgument("Step: expected a loss that uses no traced values of outside")
        model = self._drive(model, 0)
        model = model.apply("autodiff.value_and_grad", wrt=trained, has_aux=self._has_aux)
        for name, given in self._joint.items():
            model = model.apply(name, **self._for_plan(name, given))
            self.joint_reports[name] = model.report
        if self._accumulate > 1:
            first = np.shape(tree.flatten(batch)[0][0]) if tree.flatten(batch)[0] else ()
            model = model.apply("trainer.accumulate", samples=first[0] if first else 1)
        if any(self._clip.values()):
            model = model.apply("trainer.clip", **self._clip)
        groups = {"groups": self._groups} if self._groups else {}
        model = model.apply("trainer.step", optimizer=self._optimizer, rate=_RATE, **groups)
        if self._average:
            model = model.apply("trainer.average", decay=self._average, parameters=trained)
        if self._accumulate > 1:
            model = model.apply("trainer.accumulate_step")
        model = self._drive(model, 1)
        return (model.apply("autodiff.first_nan") if self._check_nan else model), results

    def _begin(self, plan: _core.Plan, model: Model) -> None:
        """The parameters become states of the first plan, in common with those beside it."""
        self._states = [port.name for port in model.states]
        leaves, names, _ = tree.flatten(self._parameters, self._names[0])
        for i, name in enumerate(names):
            plan.set_state(name, leaves[i])
            if self._average:  # begins with the parameters themselves
                plan.set_state(name + _AVERAGE, leaves[i])
        # The plan has them now: the arrays that were given need not stay in memory.
        self._parameters = tree.map_leaves(_without_memory, self._parameters)
        leaves.clear()
        _core.give_back_pages()

    def _started(self) -> _core.Plan:
        if self._now is None:
            raise InvalidArgument("Step: expected at least one step before its state is read")
        return self._now

    @property
    def parameters(self) -> Any:
        """Copies of the parameters as they are now, in the structure that was given."""
        return self._copies("")

    @property
    def averages(self) -> Any:
        """Copies of the moving averages of the parameters, in the same structure."""
        if not self._average:
            raise InvalidArgument("Step: expected option average, the share that is kept, got none")
        return self._copies(_AVERAGE)

    def _copies(self, of: str) -> Any:
        if self._now is None:
            return self._parameters
        _, names, structure = tree.flatten(self._parameters, self._names[0])
        return tree.unflatten(structure, iter([self._now.get_state(n + of) for n in names]))

    def state(self) -> dict[str, np.ndarray]:
        """Copies of all states by name, the optimizer's too, and `step/count`, how many steps were
        taken, which schedules and windows go by: enough to go on elsewhere."""
        plan = self._started()
        states = {name: plan.get_state(name) for name in self._states}
        return {**states, _COUNT: np.array(self.count)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave, after a first step with any batch."""
        plan = self._started()
        expected = {*self._states, _COUNT}
        if set(state) != expected:
            raise InvalidArgument(f"state: expected {sorted(expected)}, got {sorted(state)}")
        for name in self._states:
            plan.set_state(name, state[name])
        self.count = int(state[_COUNT])

    def describe(self) -> dict[str, Any]:
        """Of the plan last used: partitions, `fallback_nodes`, `arena_bytes`."""
        return json.loads(self._started().describe())
