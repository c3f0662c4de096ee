# SPDX-License-Identifier: Apache-2.0
"""`tenon.nn.from_torch`: a module of PyTorch as a model, through its own exporter to ONNX.

PyTorch and onnxscript are needed where this is called, and nowhere else.
"""

from __future__ import annotations

import itertools
import re
import tempfile
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .model import Model
from .model import load as load_model
from .types import Dim, Input, name_of

_RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"}
_RANDOM |= {"RandomUniform", "RandomUniformLike"}
#: What the exporter notes of each node and no model should carry: folders of this machine.
_STACK = "pkg.torch.onnx.stack_trace"


def from_torch(module: Any, inputs: Mapping[str, Input | Sequence[Dim]]) -> Model:
    """A model of a `torch.nn.Module`, for inference and to go on training with `tn.train`.

        model = nn.from_torch(torch_module, {"image": ("N", 3, 32, 32)})
        model = nn.from_torch(torch_module, {"token": nn.Input(("N", 64), "int64")})

    inputs: by name, in the order of the module's arguments, as those of `nn.build`. Parameters keep
    the names of the state dict, so that `module.load_state_dict` takes them back. Modes of the
    module are as they were afterwards.

    `nn.Dropout` is there and does nothing until the model is trained. Dropout of other kinds
    (`Dropout2d`, `AlphaDropout`, ...) and inside of layers (`LSTM(dropout=)`, attention) is left
    out, in training too; a warning names those. `F.dropout(x, training=self.training)` is left out
    without one, for nobody can see it. ValueError: what the exporter does not take, with the sizes
    that stood for names (sizes that the module fixes must be given as numbers), or random numbers.
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
    sizes = _free_sizes(named, {size for one in module.parameters() for size in one.shape})
    examples = tuple(_example(torch, one, sizes) for one in named.values())
    free = tuple(
        {axis: torch.export.Dim.DYNAMIC for axis, size in enumerate(one.shape) if size in sizes}
        for one in named.values()
    )
    _warn_of_lost_dropout(torch, module)
    modes = {part: part.training for part in module.modules()}
    try:
        module.eval()
        for part in modes:
            # The one that is exported as a node of its own: others would be random numbers.
            part.training = type(part) is torch.nn.Dropout
        exported = _exported(torch, module, examples, free, list(named))
    except Exception as failed:
        raise ValueError(_failure(failed, sizes)) from failed
    finally:
        for part, mode in modes.items():
            part.training = mode
    return loaded(exported, named)


def _warn_of_lost_dropout(torch: Any, module: Any) -> None:
    lost = []
    for name, part in module.named_modules():
        kind = type(part)
        rate = getattr(part, "p" if "Dropout" in kind.__name__ else "dropout", 0.0)
        if kind is not torch.nn.Dropout and isinstance(rate, (int, float)) and rate > 0:
            lost.append(f"{name or 'the module itself'} ({kind.__name__})")
    if lost:
        warnings.warn(
            f"nn.from_torch: dropout that is left out of training: {', '.join(lost)}; "
            "only torch.nn.Dropout is kept",
            stacklevel=3,
        )


def _free_sizes(inputs: Mapping[str, Input], taken: Collection[int] = ()) -> dict[str, int]:
    """Names of sizes, and what stands for them: numbers that differ from each other, from the sizes
    that are given and from those taken, so that none looks like another; large enough for windows
    and strides, and even."""
    given = [size for one in inputs.values() for size in one.shape]
    numbers = (n for n in itertools.count(64, 32) if n not in given and n not in taken)
    return dict(zip(dict.fromkeys(size for size in given if isinstance(size, str)), numbers))


def _failure(failed: Exception, sizes: Mapping[str, int]) -> str:
    """What PyTorch said in one line, and which sizes it may be about."""
    cause = failed.__cause__ or failed
    said = (str(cause).strip() or repr(cause)).splitlines()[0]
    text = f"nn.from_torch: torch.onnx.export failed: {type(cause).__name__}: {said}"
    if not sizes:
        return text
    stood = ", ".join(f"{size} for {name}" for name, size in sizes.items())
    text = text.replace("failed:", f"failed with {stood}:", 1)
    blamed = [name for name, size in sizes.items() if re.search(rf"\b{size}\b", said)]
    names = " or ".join(blamed or sizes)
    return f"{text}; where the module fixes it, give a number instead of {names}"


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


def _nodes(graph: Any) -> Iterator[Any]:
    """Those of graphs inside of it too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            inside = [attribute.g] if attribute.HasField("g") else attribute.graphs
            for one in inside:
                yield from _nodes(one)


def loaded(proto: Any, inputs: Mapping[str, Input]) -> Model:
    for node in _nodes(proto.graph):
        if node.op_type in _RANDOM:
            raise ValueError(
                "nn.from_torch: expected a module whose results are the same each time, got "
                f"{node.op_type} ({node.name}); make random numbers an input of it"
            )
        if node.op_type == "Dropout" and len(node.input) > 2:
            del node.input[2]  # training_mode
        kept = [entry for entry in node.metadata_props if entry.key != _STACK]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    for port, one in zip(proto.graph.input, inputs.values()):
        for dim, size in zip(port.type.tensor_type.shape.dim, one.shape):
            if isinstance(size, str):
                dim.dim_param = size
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.onnx"
        path.write_bytes(proto.SerializeToString())
        return load_model(str(path))
