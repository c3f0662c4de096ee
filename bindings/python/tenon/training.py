# SPDX-License-Identifier: Apache-2.0
"""`tenon.train`: the loop over epochs, on a data set, with checkpoints."""

from __future__ import annotations

from typing import Any

from .data import Dataset
from .model import Model
from .optim import Optimizer
from .schedule import Schedule, function

_PASS = "trainer.train"


def _over_steps(lr: Any) -> Any:
    """An optimizer's function takes the step alone, a schedule how many there are as well."""
    if not callable(lr) or isinstance(lr, Schedule):
        return lr
    return lambda step, steps: lr(step)


def train(model: Model, data: Dataset, **options: Any) -> Model:
    """A new model, trained on the data set.

        small = tn.train(model, data=train, validation=test, metric="accuracy", epochs=5,
                         loss=tn.loss.cross_entropy(label_smoothing=0.1),
                         optimizer=tn.optim.adamw(lr=tn.schedule.cosine(base=1e-3, warmup=100)))
        small.report["history"]            # one record for each epoch

    Fields of the data set are matched with the model's inputs by name; the one that is left is what
    the loss compares with. precision="bf16" computes in bfloat16. With run="folder" the run can go
    on after it was stopped or killed, to the same bits: run="folder", resume=True. All options are
    those of the pass `trainer.train` (`tenon.components("pass")`).
    """
    optimizer = options.get("optimizer")
    if isinstance(optimizer, Optimizer):
        options.setdefault("rate", _over_steps(optimizer.lr))
    if callable(options.get("rate")):
        options["rate"] = function(options["rate"])
    return model.apply(_PASS, data=data, **options)
