# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface: `run_model(model, inputs, device="onednn")`, so that ONNX's own tests
run against every backend of Tenon. A device is the id of a backend; "CPU" is "reference".
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from . import _core
from .events import session
from .model import Model, Outputs, Plan, load


def _id(device: str) -> str:
    name = device.split(":")[0]
    return "reference" if name.upper() == "CPU" else name


def model_of(proto: onnx.ModelProto | bytes) -> Model:
    """Reads a model from memory, by way of a file: readers map files."""
    data = proto if isinstance(proto, bytes) else proto.SerializeToString()
    with tempfile.TemporaryDirectory(prefix="tenon_") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(data)
        return load(path, format="onnx")


class Prepared(BackendRep):
    """A model ready to run. `plan` is the plan itself."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def run(self, inputs: Any, **kwargs: Any) -> Outputs:
        """inputs: one array, a list in the order of the model's inputs, or a dict by name."""
        if isinstance(inputs, dict):
            return self.plan.run(inputs)
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        return self.plan(*inputs)


class TenonBackend(Backend):
    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model can be read and planned here."""
        try:
            cls.prepare(model, device, **kwargs)
        except Exception:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Other arguments are options of `Model.compile`."""
        return Prepared(model_of(model).compile(backend=_id(device), **kwargs))

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> Outputs:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> Outputs:
        """One node, typed by the arrays that it is given; `opset_version` chooses its version."""
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        given = [np.asarray(array) for array in inputs]
        names = [name for name in node.input if name]
        ports = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in zip(names, given)
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", ports, outputs)
        imports = [onnx.helper.make_opsetid(node.domain, opset)]
        proto = onnx.helper.make_model(graph, opset_imports=imports)
        return cls.run_model(proto, given, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        known = json.loads(_core.components(session(), "tenon.backend/1"))
        return any(one["id"] == _id(device) for one in known)


is_compatible = TenonBackend.is_compatible
prepare = TenonBackend.prepare
run_model = TenonBackend.run_model
run_node = TenonBackend.run_node
supports_device = TenonBackend.supports_device
