# SPDX-License-Identifier: Apache-2.0
"""`tenon.train`: the loop over epochs, on a data set, with checkpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from . import _core
from .component import Component, full_id
from .data import Dataset, samples
from .errors import InvalidArgument
from .events import session
from .model import Model
from .optim import Optimizer
from .schedule import _SCHEDULE, Schedule, function

_PASS = "trainer.train"
_CALLBACK = "tenon.callback/1"

Step = Callable[[dict[str, Any]], bool | None]
Epoch = Callable[[dict[str, Any], Model], bool | None]


def callback(*, step: Step | None = None, epoch: Epoch | None = None) -> Component:
    """Functions that are notified of a training run; True as answer ends it.

    `step(point)` is called after each step, with its `step`, `epoch`, `loss`, `rate` and `skipped`;
    `epoch(record, model)` after each epoch and its validation, with what the history keeps of it
    and the model as it is now. What they raise ends the run and is raised by `tenon.train`.
    """
    if not callable(step) and not callable(epoch):
        raise TypeError("tenon.callback: expected a function as step or epoch")

    def stepped(point: dict[str, Any]) -> Any:
        return _answer(step(point))

    def seen(record: str, native: _core.Model) -> Any:
        return _answer(epoch(json.loads(record), Model(native)))

    made = Component.__new__(Component)
    made.role, made.id = _CALLBACK, "python.function"
    made._native = _core.callback_of_functions(session(), step and stepped, epoch and seen)
    return made


def _answer(given: Any) -> Any:
    """A comparison of NumPy's numbers is a bool as well."""
    return bool(given) if isinstance(given, np.bool_) else given


def _joined(callbacks: Any) -> Component | None:
    """One callback of a component, its id, a function of the epoch, or several of these."""
    if isinstance(callbacks, Component):
        return callbacks
    if isinstance(callbacks, str):
        return Component(_CALLBACK, callbacks)
    if callable(callbacks):
        return callback(epoch=callbacks)
    parts = [_joined(one) for one in callbacks]
    joined = parts.pop() if parts else None
    for one in reversed(parts):
        joined = Component(_CALLBACK, "trainer.both", first=one, second=joined)
    return joined


def _over_steps(lr: Any) -> Any:
    """An optimizer's function takes the step alone, a schedule how many there are as well."""
    if not callable(lr) or isinstance(lr, Schedule):
        return lr
    return lambda step, steps: lr(step)


def _driven(schedules: Any) -> Any:
    """Schedules by name as one option: what JSON says as it is, else a list of live ones."""
    if not isinstance(schedules, Mapping):
        return schedules
    if all(
        isinstance(one, Mapping) and isinstance(one.get("schedule"), str)
        for one in schedules.values()
    ):
        return schedules
    listed = None
    for name, one in reversed(schedules.items()):
        rules = {}
        if isinstance(one, Mapping):
            given = dict(one)
            rules = {key: given.pop(key) for key in ("plateau", "follow") if key in given}
            one = given.pop("schedule", None)
            if isinstance(one, str):
                one = Schedule(full_id(_SCHEDULE, "scheduler", one), **given)
            elif given:
                raise InvalidArgument(
                    f"option schedules: {name}: expected schedule, plateau, follow, got "
                    f"{list(given)}"
                )
        if isinstance(one, (int, float)):
            one = Schedule("scheduler.constant", base=one)
        if not isinstance(one, Schedule) and not callable(one):
            raise InvalidArgument(
                f"option schedules: {name}: expected a schedule, a number or a function of "
                f"(step, steps), got {type(one).__name__}"
            )
        rest = {} if listed is None else {"next": listed}
        listed = Schedule("trainer.driven", name=name, schedule=function(one), rules=rules, **rest)
    return listed


def _as_data(option: str, given: Any) -> Any:
    """A list of samples is a data set; what can be walked through but once is none."""
    if isinstance(given, (list, tuple)):
        return samples(given)
    if isinstance(given, Iterator) or type(given).__name__ == "DataLoader":
        raise InvalidArgument(
            f"option {option}: expected a data set, arrays by name or a list of samples, as "
            f"batches are made here and in another order in each epoch, got {type(given).__name__}"
            + (": give its dataset" if hasattr(given, "dataset") else "")
        )
    return given


def _refuse_other_words(options: Mapping[str, Any]) -> None:
    """Words of other libraries, and a loss that only `Step` takes."""
    for word, known in (("batch_size", "batch"), ("lr", "rate"), ("learning_rate", "rate")):
        if word in options:
            raise InvalidArgument(f"tn.train: unknown option '{word}' (did you mean '{known}'?)")
    loss = options.get("loss")
    if callable(loss) and not isinstance(loss, Component):
        raise InvalidArgument(
            "tn.train: option loss: expected a component, as tn.loss.cross_entropy() makes it, or "
            "its id, got a function; tn.Step trains with one, with several outputs or targets too"
        )


def train(model: Model, data: Dataset | Mapping[str, Any], **options: Any) -> Model:
    """A new model, trained on the data set, or on arrays: {"x": images, "label": labels}.

        small = tn.train(model, data=train, validation=test, metric="accuracy", epochs=5,
                         loss=tn.loss.cross_entropy(label_smoothing=0.1),
                         optimizer=tn.optim.adamw(lr=tn.schedule.cosine(base=1e-3, warmup=100)))
        small.report["history"]            # one record for each epoch

    A list of samples, (x, label) or dictionaries, is a data set as well (`tn.data.samples`).
    Fields of the data set are matched with the model's inputs by name; the one that is left is what
    the loss compares with. precision="bf16" computes in bfloat16. With run="folder" the run can go
    on after it was stopped or killed, to the same bits: run="folder", resume=True; another run can
    begin at a step that it kept: keep_steps=[120], rewind="folder/step_120.safetensors". train_as
    and validate_as are passes that make of the model what is trained or validated. callbacks=[...]
    are functions of (record, model), called after each epoch, and what `tenon.callback` makes.
    schedules drives numbers by their names: schedules={"temperature": tn.schedule.linear(...),
    "dropout": lambda step, steps: ..., "learning_rate": {"schedule": "linear", "from": 1e-2,
    "to": 1e-4, "follow": {"value": "validation_loss", "begin": 2, "end": 0.1}}}. All
    options are those of the pass `trainer.train` (`tenon.components("pass")`).
    """
    _refuse_other_words(options)
    options["data"] = data
    for name in ("data", "validation"):
        if name in options:
            options[name] = _as_data(name, options[name])
    if (joined := _joined(options.pop("callbacks", []))) is not None:
        options["callbacks"] = joined
    optimizer = options.get("optimizer")
    if isinstance(optimizer, Optimizer):
        options.setdefault("rate", _over_steps(optimizer.lr))
    if "schedules" in options:
        options["schedules"] = _driven(options["schedules"])
    if callable(options.get("rate")):
        options["rate"] = function(options["rate"])
    try:
        return model.apply(_PASS, **options)
    except KeyboardInterrupt as stopped:
        run = options.get("run")
        stopped.add_note(
            f"tn.train: what was trained is saved; go on with run={os.fspath(run)!r}, resume=True"
            if run
            else "tn.train: nothing was kept: give run, a folder, to be able to go on"
        )
        raise
