# SPDX-License-Identifier: Apache-2.0
"""`tenon.nn.from_torch`: a module of PyTorch as a model, through its own exporter to ONNX.

PyTorch and onnxscript are needed where this is called, and nowhere else.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .model import Model
from .model import load as load_model
from .torch_gradients import hooked, own_gradients, without_gradient
from .torch_traces import (
    bags_of_one_size,
    clip_by_numbers,
    convolve_without_bias,
    give_sizes,
    refuse_left_out,
)
from .torch_training import (
    keep_statistics,
    lost_dropout,
    lost_figures,
    other_results,
    training_parts,
    tried,
)
from .types import Dim, Input, name_of

_RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"}
_RANDOM |= {"RandomUniform", "RandomUniformLike"}
#: What the exporter notes of each node and no model should carry: folders of this machine.
_STACK = "pkg.torch.onnx.stack_trace"
#: What it notes of an Identity that cuts the gradient.
_DETACH = "aten.detach.default"
_TRAINED_TYPES = (1, 11)  # ONNX's float and double
_WITHOUT = (
    "the exporter has no ONNX of this operator: compute the same by others, or outside of the "
    "module"
)
#: What the exporter does not take, by the exceptions that say so, and what to do.
_REMEDIES = {
    "GuardOnDataDependentSymNode": "a branch of Python goes by the numbers of an array: choose by "
    "torch.where or torch.cond",
    "UnsupportedOperatorException": _WITHOUT,
    "ConversionError": _WITHOUT,
}


def from_torch(module: Any, inputs: Mapping[str, Input | Sequence[Dim]]) -> Model:
    """A model of a `torch.nn.Module`, for inference and to go on training with `tn.train`.

        model = nn.from_torch(torch_module, {"image": ("N", 3, 32, 32)})
        model = nn.from_torch(torch_module, {"token": nn.Input(("N", 64), "int64")})

    inputs: by name, in the order of the module's arguments, as those of `nn.build`. Parameters keep
    the names of the state dict, so that `module.load_state_dict` takes them back. Modes of the
    module are as they were afterwards.

    What is trained are the module's parameters that require a gradient, scalars too; buffers, other
    tensors and statistics are not. `detach()` stays. `state_dict` gives the numbers back.

    `nn.Dropout` is there and does nothing until the model is trained. Dropout of other kinds
    (`Dropout2d`, `AlphaDropout`, `F.dropout`, dropped paths, ...) and inside of layers
    (`LSTM(dropout=)`, attention) is left out, in training too. So is what no file can hold: regions
    of `torch.no_grad()`, the gradients of a `torch.autograd.Function`, hooks on gradients, results
    that differ in training, running statistics with momentum=None, weights that `torch.cond` and
    loops read, buffers that training changes by itself (the vectors of a spectral norm, moving
    means), and `padding_idx`, `max_norm` and `scale_grad_by_freq` of embeddings. Warnings name
    them.
    ValueError: what the exporter does not take, with the sizes that stood for names (sizes that the
    module fixes must be given as numbers), or random numbers.
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
    for name, part in module.named_modules():
        if size := getattr(part, "proj_size", 0):
            raise ValueError(
                f"nn.from_torch: {name or 'the module'}: expected an LSTM without proj_size, which "
                f"ONNX's LSTM has not, got {size}; write out its steps, or use a hidden_size of "
                f"{size}"
            )
    named = {name: one if isinstance(one, Input) else Input(one) for name, one in inputs.items()}
    _refuse_other_order(module, list(named))
    sizes = _free_sizes(named, {size for one in module.parameters() for size in one.shape})
    examples = tuple(_example(torch, one, sizes) for one in named.values())
    free = _by_parameter(
        module,
        [
            {axis: torch.export.Dim.DYNAMIC for axis, size in enumerate(one.shape) if size in sizes}
            for one in named.values()
        ],
    )
    seen = tried(torch, module, examples)
    if lost := lost_dropout(torch, module, seen.drawing):
        warnings.warn(
            f"nn.from_torch: dropout or other random numbers left out of training: "
            f"{', '.join(lost)}; only torch.nn.Dropout is kept",
            stacklevel=2,
        )
    modes = {part: part.training for part in module.modules()}
    trains = set(training_parts(module).values())
    try:
        module.eval()
        for part in modes:
            # The one that is exported as a node of its own: others would be random numbers.
            part.training = type(part) is torch.nn.Dropout and part in trains
        exported, unseen = _exported(torch, module, examples, free, list(named))
    except Exception as failed:
        raise ValueError(_failure(failed, sizes)) from failed
    finally:
        for part, mode in modes.items():
            part.training = mode
    of_module = module.named_parameters(remove_duplicate=False)
    trained = {name for name, one in of_module if one.requires_grad}
    keep_statistics(module, exported.graph, seen.fixed)
    model = loaded(exported, named, trained)
    inside = sorted((trained & _read_inside(exported.graph)) - set(model.parameters()))
    if inside:
        unseen.append(f"{', '.join(inside)}, which a branch or a loop reads")
    unseen += [*seen.lost, *other_results(seen, exported.graph)]
    if lost := [*lost_figures(torch, module, seen.changed), *unseen]:
        warnings.warn(f"nn.from_torch: left out of training: {'; '.join(lost)}", stacklevel=2)
    return model


def state_dict(model: Model, module: Any) -> dict[str, Any]:
    """What `module.load_state_dict` takes, with the numbers of a model that `from_torch` made of
    the module: under all names of a tensor that has several, as tied weights do. What the model
    does not have, such as num_batches_tracked, is the module's own.

        module.load_state_dict(nn.state_dict(trained, module))
    """
    import torch

    constants = model.constants()
    own = module.state_dict()
    of_tensor = {_identity(own[name]): name for name in own if name in constants}
    out = dict(own)
    for name, tensor in own.items():
        if (known := of_tensor.get(_identity(tensor))) is not None:
            numbers = torch.from_dlpack(constants[known]).to(tensor.dtype)
            out[name] = numbers.reshape(tensor.shape).clone()
    return out


def _identity(tensor: Any) -> tuple:
    """Equal for two names of one tensor, or of one array."""
    address = tensor.data_ptr() if hasattr(tensor, "data_ptr") else 0
    return (address or id(tensor), tuple(tensor.shape), tensor.dtype)


def untied(state: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """A state dict without the names that a model does not have of tensors that it has."""
    of_known = {_identity(one) for name, one in state.items() if name in known}
    return {n: one for n, one in state.items() if n in known or _identity(one) not in of_known}


def _free_sizes(inputs: Mapping[str, Input], taken: Collection[int] = ()) -> dict[str, int]:
    """Names of sizes, and what stands for them: numbers that differ from each other, from the sizes
    that are given and from those taken, so that none looks like another; large enough for windows
    and strides, and even."""
    given = [size for one in inputs.values() for size in one.shape]
    numbers = (n for n in itertools.count(64, 32) if n not in given and n not in taken)
    return dict(zip(dict.fromkeys(size for size in given if isinstance(size, str)), numbers))


def _by_parameter(module: Any, free: list[dict[int, Any]]) -> tuple:
    """The free axes of each input as the exporter takes them: in one tuple, where the module takes
    its inputs as `*args`, as wrappers do."""
    single = 0
    for one in inspect.signature(module.forward).parameters.values():
        if one.kind is one.VAR_POSITIONAL and len(free) > single:
            return (*free[:single], tuple(free[single:]))
        single += 1
    return tuple(free)


def _refuse_other_order(module: Any, names: list[str]) -> None:
    """Inputs that are called as another argument than the one that they would be."""
    arguments = list(inspect.signature(module.forward).parameters)
    for at, name in enumerate(names):
        if name in arguments and arguments.index(name) != at:
            raise ValueError(
                f"nn.from_torch: inputs: expected the order of the module's arguments "
                f"({', '.join(arguments)}), got {name} as input {at + 1}; wrap the module in one "
                "that takes these alone"
            )


def _failure(failed: Exception, sizes: Mapping[str, int]) -> str:
    """What PyTorch said in one line, and which sizes it may be about."""
    cause = failed.__cause__ or failed
    said = (str(cause).strip() or repr(cause)).splitlines()[0]
    text = f"nn.from_torch: torch.onnx.export failed: {type(cause).__name__}: {said}"
    if remedy := _REMEDIES.get(type(cause).__name__):
        return f"{text}; {remedy}"
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


def _exported(
    torch: Any, module: Any, examples: tuple, free: tuple, names: list[str]
) -> tuple[Any, list[str]]:
    """The file, and what of the module's gradients it does not hold."""
    lost = list(hooked(module))
    with warnings.catch_warnings(), bags_of_one_size(torch):
        warnings.simplefilter("ignore")  # of the mode of Dropout, which is meant
        traced = module
        with own_gradients(torch, lost), contextlib.suppress(Exception):
            # What this does not take the exporter below tries in other ways, and speaks of.
            traced = torch.export.export(module, examples, dynamic_shapes=free, strict=False)
            lost += without_gradient(traced.graph_module)
        if traced is not module:
            refuse_left_out(traced.graph_module)
            give_sizes(traced.graph_module)
            convolve_without_bias(torch, traced.graph_module)
            clip_by_numbers(torch, traced.graph_module)
        with torch.no_grad():  # attention gives other strides with gradients than the trace has
            program = torch.onnx.export(
                traced,
                examples,
                dynamo=True,
                dynamic_shapes=free,
                input_names=names,
                optimize=False,  # keeps BatchNormalization apart from the product before it
                verbose=False,
            )
    _name_apart(program.model)
    return program.model_proto, lost


def _name_apart(model: Any) -> None:
    """Results that are called as a tensor of the module (a buffer `index`) get another name: in a
    file they would be one value."""
    taken = set(model.graph.initializers)
    for node in model.graph.all_nodes():
        for result in node.outputs:
            while result.name in taken:
                result.name += "_result"


def _nodes(graph: Any) -> Iterator[Any]:
    """Those of graphs inside of it too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            inside = [attribute.g] if attribute.HasField("g") else attribute.graphs
            for one in inside:
                yield from _nodes(one)


def _read_inside(graph: Any) -> set[str]:
    """Names of what nodes of graphs inside of it read."""
    of_all = [name for node in _nodes(graph) for name in node.input]
    outside = [name for node in graph.node for name in node.input]
    return set((Counter(of_all) - Counter(outside)).keys())


def _is_detached(node: Any) -> bool:
    return any(
        entry.key == "namespace" and entry.value.endswith(_DETACH) for entry in node.metadata_props
    )


def loaded(
    proto: Any, inputs: Mapping[str, Input], trained: Collection[str] | None = None
) -> Model:
    """The model of a file in memory. trained: names of what is a parameter in training; None: what
    looks like one."""
    for node in _nodes(proto.graph):
        if node.op_type in _RANDOM:
            raise ValueError(
                "nn.from_torch: expected a module whose results are the same each time, got "
                f"{node.op_type} ({node.name}); make random numbers an input of it"
            )
        if node.op_type == "Dropout" and len(node.input) > 2:
            del node.input[2]  # training_mode
        if node.op_type == "Identity" and _is_detached(node):
            node.op_type, node.domain = "StopGradient", "tenon"
        kept = [entry for entry in node.metadata_props if entry.key != _STACK]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    for port, one in zip(proto.graph.input, inputs.values()):
        for dim, size in zip(port.type.tensor_type.shape.dim, one.shape):
            if isinstance(size, str):
                dim.dim_param = size
    if all(one.domain != "tenon" for one in proto.opset_import):
        proto.opset_import.add(domain="tenon", version=1)
    for one in proto.graph.initializer if trained is not None else ():
        # Those in 16 bits are trained once they are widened, by what they look like then.
        if one.name not in trained or one.data_type in _TRAINED_TYPES:
            one.metadata_props.add(key="tenon.train", value=str(int(one.name in trained)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.onnx"
        path.write_bytes(proto.SerializeToString())
        return load_model(str(path)).apply("fusion.sequences")
