# SPDX-License-Identifier: Apache-2.0
"""What a module of PyTorch does in training alone, and no file can hold: random numbers, and
tensors that change by themselves."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple


class Seen(NamedTuple):
    """What a module did in training mode, as far as it ran."""

    drawing: list[str]  # parts other than torch.nn.Dropout that draw random numbers
    changed: list[str]  # buffers that it changes, beside the statistics of norms
    fixed: list[str]  # buffers that norms take as statistics all the same
    shapes: list[tuple[int, ...]] | None  # of its results; None: not known
    lost: list[str]  # what its gradient leaves out


def called(name: str, part: Any) -> str:
    return f"{name or 'the module itself'} ({type(part).__name__})"


def training_parts(module: Any) -> dict[str, Any]:
    """Parts that are in training mode while the module is: all, of a module in evaluation mode."""
    parts = module.named_modules()
    return {name: part for name, part in parts if part.training or not module.training}


def keep_statistics(module: Any, graph: Any, fixed: list[str]) -> None:
    """Notes the nodes of norms that are not in training mode, for whoever trains the file, and of
    the others that their running variance is PyTorch's: n/(n - 1) of the batch's, unlike ONNX's."""
    trained = set(training_parts(module).values())
    parts = module.named_modules(remove_duplicate=False)
    frozen = {f"{name}.running_mean" for name, part in parts if part not in trained} | {*fixed}
    for node in graph.node:
        if node.op_type == "BatchNormalization":
            kind = "frozen" if node.input[3] in frozen else "unbiased"
            node.metadata_props.add(key="tenon.batch_norm", value=kind)


def lost_dropout(torch: Any, module: Any, drawing: list[str]) -> list[str]:
    """Parts with dropout of another kind than torch.nn.Dropout, by what they say of themselves, and
    those that draw random numbers."""
    lost = []
    for name, part in training_parts(module).items():
        kind = type(part)
        rate = getattr(part, "p" if "Dropout" in kind.__name__ else "dropout", 0.0)
        states = kind is not torch.nn.Dropout and isinstance(rate, (int, float)) and rate > 0
        if states or name in drawing:
            lost.append(called(name, part))
    return lost


def lost_figures(torch: Any, module: Any, changed: list[str]) -> Iterator[str]:
    """What layers do in training alone, and the graph of a file cannot say."""
    trained = training_parts(module)
    for name, part in module.named_modules():
        keeps = getattr(part, "track_running_stats", False) and name in trained
        if keeps and getattr(part, "momentum", 0.1) is None:
            yield (
                f"the running statistics of {called(name, part)}, which momentum=None counts; "
                "give a momentum, or estimate them after training: "
                'model.apply("recovery.statistics", data=...)'
            )
        if keeps and isinstance(part, torch.nn.modules.instancenorm._InstanceNorm):
            yield (
                f"the statistics of each sample of {called(name, part)}, whose running ones stay; "
                "track_running_stats=False has them"
            )
        if isinstance(part, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
            options = ("padding_idx", "max_norm", "scale_grad_by_freq")
            if given := [one for one in options if getattr(part, one) not in (None, False)]:
                yield f"{', '.join(given)} of {called(name, part)}"
    if changed:
        yield f"the changes of {', '.join(changed)}, which stay as they are"


def other_results(seen: Seen, graph: Any) -> Iterator[str]:
    """Results that differ in number or shape from those of evaluation mode, which a file has."""
    types = [one.type.tensor_type.shape.dim for one in graph.output]
    ours = [[size.dim_value for size in one] for one in types]  # 0: a size that is free

    def differ(size: int, our: int) -> bool:
        return our not in (0, size)

    if seen.shapes is None:
        return
    if len(ours) != len(seen.shapes) or any(
        len(one) != len(our) or any(map(differ, one, our)) for one, our in zip(seen.shapes, ours)
    ):
        yield (
            f"the results of training mode, of shapes {seen.shapes}: those of evaluation mode are "
            "exported"
        )


def _shapes(torch: Any, results: Any) -> list[tuple[int, ...]] | None:
    leaves = torch.utils._pytree.tree_leaves(results)
    if not all(isinstance(one, (torch.Tensor, int, float, type(None))) for one in leaves):
        return None
    return [tuple(one.shape) for one in leaves if isinstance(one, torch.Tensor)]


def tried(torch: Any, module: Any, examples: tuple) -> Seen:
    """What a copy does that is run without numbers. What cannot be run so (a copy that cannot be
    made, sizes that are computed) is known as far as it went."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode

    running: list[str] = []
    seen = Seen([], [], [], None, [])
    buffers: dict[int, str] = {}

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(
            self, op: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            takes = op._schema.arguments
            given = {one.name: one.default_value for one in takes if one.has_default_value()}
            given |= dict(zip((one.name for one in takes), args)) | (kwargs or {})
            is_idle = 0 in (given.get("p", 1), given.get("dropout_p", 1))
            if torch.Tag.nondeterministic_seeded in op.tags and not is_idle and running:
                seen.drawing.append(running[-1])
            if (
                given.get("training") is False
                and (mean := id(given.get("running_mean"))) in buffers
            ):
                seen.fixed.append(buffers[mean])
            if torch.is_inference_mode_enabled() and not seen.lost:
                seen.lost.append("torch.inference_mode(), which gradients pass; use detach()")
            return op(*args, **(kwargs or {}))

    with contextlib.suppress(Exception):
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        tensors = itertools.chain(module.parameters(), module.buffers())
        ours = copy.deepcopy(module, {id(one): fake.from_tensor(one) for one in tensors})
        if not ours.training:
            ours.train()
        before = {name: (one, one._version) for name, one in ours.named_buffers()}
        buffers.update({id(one): name for name, one in ours.named_buffers()})
        try:
            with _followed(torch, ours, running), fake, Watch(), torch.no_grad():
                results = ours(*(fake.from_tensor(one) for one in examples))
            seen = seen._replace(shapes=_shapes(torch, results))
        finally:
            norms = {n for n, one in ours.named_modules() if _keeps_statistics(torch, one)}
            for name, one in ours.named_buffers():
                had, version = before.get(name, (None, 0))
                is_kept = one is had and one._version == version
                if not is_kept and name.rpartition(".")[0] not in norms:
                    seen.changed.append(name)
    return seen


def _keeps_statistics(torch: Any, part: Any) -> bool:
    return isinstance(part, torch.nn.modules.batchnorm._NormBase)


@contextlib.contextmanager
def _followed(torch: Any, module: Any, running: list[str]) -> Iterator[None]:
    """Keeps the names of parts that are being run, the innermost last. torch.nn.Dropout, which the
    file has, draws nothing meanwhile."""

    def begin(name: str) -> Any:
        return lambda *_: running.append(name)

    def end(*_: Any) -> None:
        running.pop()

    hooks = []
    for name, part in module.named_modules():
        if type(part) is torch.nn.Dropout:
            part.p = 0.0
            continue
        hooks += [part.register_forward_pre_hook(begin(name), prepend=True)]
        hooks += [part.register_forward_hook(end)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
