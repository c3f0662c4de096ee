# SPDX-License-Identifier: Apache-2.0
"""Tenon makes neural networks smaller and faster.

    import numpy as np
    import tenon as tn

    model = tn.load("resnet50.onnx")
    print(model.inputs)                        # [Port(name='x', dtype='float32', shape=(...))]
    plan = model.compile(backend="onednn")
    y = plan(np.zeros((1, 3, 224, 224), "float32"))[0]

    small = model.apply("quantizer.static", data=tn.data.npz("calib.npz"))
    small.save("small.onnx")

Functions become graphs, are compiled once for each set of shapes, and have gradients:

    jf = tn.jit(lambda x: x.T @ (x - x.mean(0)))          # [n, m] gives [m, m]
    g = tn.grad(lambda x: (x * x).sum())                  # g(x) has the shape of x
    v = tn.vmap(lambda a, b: a * b)                       # one example becomes many
    step = tn.Step(loss, parameters, tn.optim.adamw(lr=1e-3))   # a training step as one plan

What there is: `tn.components("pass")` (or "backend", "metric", "dataset", ...) with the options of
each, `tn.plugins()`, and `tn.doctor()` when something is missing. `python -m tenon` is the command.

Arrays of PyTorch, JAX and every other library with DLPack go in without a copy; results are NumPy
arrays. Log lines go to the logger "tenon" of `logging`, errors are classes of `TenonError`, and
Ctrl-C stops what runs.
"""

from __future__ import annotations

import json
from math import e, inf, nan, pi
from typing import Any

from . import (
    _core,
    arrays,
    data,
    fft,
    linalg,
    loss,
    nn,
    optim,
    schedule,
)
from ._core import Tensor
from .arrays import *  # noqa: F403
from .autodiff import grad, jvp, value_and_grad, vjp, vmap
from .builder import Graph, Value
from .component import Component, listed
from .control import cond, fori_loop, scan, while_loop
from .custom import checkpoint, custom_vjp
from .data import Dataset, evaluate
from .dtypes import can_cast, finfo, iinfo, isdtype, result_type
from .errors import (
    AlreadyExists,
    Cancelled,
    DataLoss,
    FailedPrecondition,
    InternalError,
    InvalidArgument,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    TenonError,
    TracedValueError,
    Unavailable,
    Unimplemented,
    UnknownError,
)
from .events import chrome_trace, configure, progress, session
from .jacobian import hessian, jacfwd, jacrev
from .model import Model, Outputs, Plan, Port, load, parse
from .step import Step, setting
from .traced import Traced
from .training import callback, train
from .transforms import Compiled, Stats, jit
from .types import (
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

__version__ = _core.version()
newaxis = None  # x[tn.newaxis]
bool = "bool"  # an element type like tn.float32, by the array API's name  # noqa: A001


def plugins() -> list[dict[str, Any]]:
    """The plugins that were found, with their components; runs none of their code."""
    return json.loads(session().plugins())


def doctor() -> Any:
    """Every folder and file that was searched for plugins, and why one is not used."""
    return json.loads(session().doctor())


def components(role: str = "") -> list[dict[str, Any]]:
    """Known components: role, id, summary, schema of the options. role: "pass", "backend", ..."""
    full = role if not role or role.startswith("tenon.") else f"tenon.{role}/1"
    return listed(full)


__all__ = [
    "AlreadyExists",
    "Cancelled",
    "Compiled",
    "Component",
    "DataLoss",
    "Dataset",
    "FailedPrecondition",
    "Graph",
    "InternalError",
    "InvalidArgument",
    "Model",
    "NotFound",
    "OutOfRange",
    "Outputs",
    "PermissionDenied",
    "Plan",
    "Port",
    "ResourceExhausted",
    "Stats",
    "Step",
    "TenonError",
    "Tensor",
    "Traced",
    "TracedValueError",
    "Unavailable",
    "Unimplemented",
    "UnknownError",
    "Value",
    "bfloat16",
    "bool",
    "callback",
    "can_cast",
    "checkpoint",
    "chrome_trace",
    "components",
    "cond",
    "configure",
    "custom_vjp",
    "data",
    "doctor",
    "e",
    "evaluate",
    "fft",
    "finfo",
    "float16",
    "float32",
    "float64",
    "fori_loop",
    "grad",
    "hessian",
    "iinfo",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "isdtype",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "linalg",
    "load",
    "loss",
    "nan",
    "newaxis",
    "nn",
    "optim",
    "parse",
    "pi",
    "plugins",
    "progress",
    "result_type",
    "scan",
    "schedule",
    "session",
    "setting",
    "train",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
    *arrays.__all__,
]


def __dir__() -> list[str]:
    return sorted(__all__)
