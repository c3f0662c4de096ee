# SPDX-License-Identifier: Apache-2.0
"""What Torch-Pruning makes of the networks of torch_exports: DepGraph (Fang, 2023), magnitudes.

Layers that make the outputs stay, and so do numbers of heads where the network states them in a
way that it cannot change. Counts are its own (count_ops_and_params).
"""

import pathlib

import torch
import torch_exports


def keeps(model: torch.nn.Module, net: torch_exports.Net, inputs: list) -> list:
    """The layers whose results are the model's outputs: their sizes are what users count on."""
    made, hooks = {}, []
    for layer in model.modules():
        if not list(layer.children()):
            hook = lambda layer, given, out: made.update({id(out): layer})  # noqa: E731
            hooks.append(layer.register_forward_hook(hook))
    with torch.no_grad():
        found = model(*inputs)
    for hook in hooks:
        hook.remove()
    outputs = found if isinstance(found, tuple) else (found,)
    return [made[id(out)] for out in outputs if id(out) in made]


def heads(model: torch.nn.Module) -> dict:
    """Products that hold queries, keys and values, and how many heads they have."""
    return {
        layer.qkv: layer.num_heads
        for layer in model.modules()
        if isinstance(getattr(layer, "qkv", None), torch.nn.Linear) and hasattr(layer, "num_heads")
    }


def pruned(name: str, ratio: float, path: pathlib.Path) -> dict:
    """The shares of parameters and MACs that are left; the model goes to path, by tracing."""
    import torch_pruning

    net = torch_exports.NETS[name]
    torch.manual_seed(torch_exports.SEED)
    model = net.make()
    torch_exports.run_in(model, net)
    inputs = net.inputs(1)
    count = torch_pruning.utils.count_ops_and_params
    before = count(model, tuple(inputs))
    pruner = torch_pruning.pruner.MagnitudePruner(
        model,
        tuple(inputs),
        importance=torch_pruning.importance.GroupMagnitudeImportance(p=2),
        pruning_ratio=ratio,
        ignored_layers=keeps(model, net, inputs),
        num_heads=heads(model),
        prune_num_heads=True,
        head_pruning_ratio=ratio,
    )
    pruner.step()
    for layer, n_heads in pruner.num_heads.items():  # the networks state them themselves
        for owner in model.modules():
            if getattr(owner, "qkv", None) is layer:
                owner.num_heads = n_heads
                owner.head_dim = layer.out_features // (3 * n_heads)
                owner.attn_dim = n_heads * owner.head_dim
    after = count(model, tuple(inputs))
    with torch.no_grad():
        torch_exports.write(model, net, "script", path)
    return {"MACs": after[0] / before[0], "weights": after[1] / before[1]}
