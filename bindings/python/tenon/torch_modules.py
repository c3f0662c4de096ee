# SPDX-License-Identifier: Apache-2.0
"""`tenon.nn.from_torch`: a module of PyTorch as a model, through its own exporter to ONNX.

PyTorch and onnxscript are needed where this is called, and nowhere else.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .model import Model
from .model import load as load_model
from .types import Dim, Input, name_of


def from_torch(module: Any, inputs: Mapping[str, Input | Sequence[Dim]]) -> Model:
    """A model of a `torch.nn.Module`, for inference and to go on training with `tn.train`.

        model = nn.from_torch(torch_module, {"image": ("N", 3, 32, 32)})
        model = nn.from_torch(torch_module, {"token": nn.Input(("N", 64), "int64")})

    inputs: by name, in the order of the module's arguments, as those of `nn.build`. Parameters keep
    the names of the state dict, so that `module.load_state_dict` takes them back. Dropout is there
    and does nothing until the model is trained. Modes of the module are as they were afterwards.
    """
    try:
        import torch
    except ImportError as missing:
        raise ImportError("nn.from_torch: expected PyTorch to be installed") from missing
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"nn.from_torch: expected a torch.nn.Module, got {type(module).__name__}; "
            "nn.build makes a model of a network of nn's own"
        )
    named = {name: one if isinstance(one, Input) else Input(one) for name, one in inputs.items()}
    sizes = _free_sizes(named)
    examples = tuple(_example(torch, one, sizes) for one in named.values())
    free = tuple(
        {axis: torch.export.Dim.DYNAMIC for axis, size in enumerate(one.shape) if size in sizes}
        for one in named.values()
    )
    modes = {part: part.training for part in module.modules()}
    try:
        module.eval()
        for part in modes:
            if "Dropout" in type(part).__name__:
                part.train()
        exported = _exported(torch, module, examples, free, list(named))
    finally:
        for part, mode in modes.items():
            part.training = mode
    return loaded(exported, named)


def _free_sizes(inputs: Mapping[str, Input]) -> dict[str, int]:
    """Names of sizes, and what stands for them: numbers that differ, so that none looks like
    another, and are not 1, which the exporter would take for a size that is known."""
    names = [size for one in inputs.values() for size in one.shape if isinstance(size, str)]
    return {name: 3 + 2 * i for i, name in enumerate(dict.fromkeys(names))}


def _example(torch: Any, one: Input, sizes: Mapping[str, int]) -> Any:
    for size in one.shape:
        if size is None:
            raise ValueError("nn.from_torch: inputs: expected sizes or their names, got None")
    shape = [sizes.get(size, size) if isinstance(size, str) else size for size in one.shape]
    return torch.zeros(shape, dtype=getattr(torch, name_of(one.dtype)))


def _exported(torch: Any, module: Any, examples: tuple, free: tuple, names: list[str]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the mode of Dropout, which is meant
        program = torch.onnx.export(
            module,
            examples,
            dynamo=True,
            dynamic_shapes=free,
            input_names=names,
            optimize=False,  # keeps BatchNormalization apart from the product before it
            verbose=False,
        )
    return program.model_proto


def loaded(proto: Any, inputs: Mapping[str, Input]) -> Model:
    for node in proto.graph.node:
        if node.op_type == "Dropout" and len(node.input) > 2:
            del node.input[2]  # training_mode
    for port, one in zip(proto.graph.input, inputs.values()):
        for dim, size in zip(port.type.tensor_type.shape.dim, one.shape):
            if isinstance(size, str):
                dim.dim_param = size
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.onnx"
        path.write_bytes(proto.SerializeToString())
        return load_model(str(path))
