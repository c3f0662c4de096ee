# SPDX-License-Identifier: Apache-2.0
"""Gradients of a module of PyTorch that its trace does not have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .torch_training import called


def hooked(module: Any) -> Iterator[str]:
    """Parts and parameters whose gradients a hook sees or changes."""
    for name, part in module.named_modules():
        if part._backward_hooks or part._backward_pre_hooks:
            yield f"the backward hooks of {called(name, part)}"
    for name, one in module.named_parameters():
        if one._backward_hooks or one._post_accumulate_grad_hooks:
            yield f"the hooks on the gradient of {name}"


@contextlib.contextmanager
def own_gradients(torch: Any, lost: list[str]) -> Iterator[None]:
    """Notes functions with gradients of their own, of which a trace has the forward part alone
    (PyTorch's own have the gradient of that part), and hooks on gradients, of which it has
    nothing."""
    of_class = torch.autograd.Function.__dict__["apply"]
    register = torch.Tensor.register_hook

    def register_hook(tensor: Any, hook: Any) -> Any:
        said = "hooks on gradients (Tensor.register_hook)"
        if said not in lost:
            lost.append(said)
        return register(tensor, hook)

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        said = (
            f"the gradient of {cls.__name__} (torch.autograd.Function), whose forward part is "
            "differentiated; write it as x + (f(x) - x).detach()"
        )
        if said not in lost and not cls.__module__.startswith("torch."):
            lost.append(said)
        return of_class.__get__(None, cls)(*args, **kwargs)

    torch.autograd.Function.apply = classmethod(apply)
    torch.Tensor.register_hook = register_hook
    try:
        yield
    finally:
        torch.autograd.Function.apply = of_class
        torch.Tensor.register_hook = register


def without_gradient(graph: Any) -> list[str]:
    """Regions of no_grad, by the lines that they begin with."""
    lost = []
    for node in graph.graph.nodes:
        if "wrap_with_set_grad_enabled" not in str(node.target) or node.args[0]:
            continue
        inside = getattr(graph, str(node.args[1].target), None)
        nodes = inside.graph.nodes if inside is not None else ()
        line = next((n.stack_trace for n in nodes if n.stack_trace), "").strip().splitlines()
        where = f" ({line[-1].strip()})" if line else ""
        lost.append(f"torch.no_grad(){where}, which gradients pass; use detach()")
    return lost
