# SPDX-License-Identifier: Apache-2.0
"""Arguments and results as trees: tuples, lists and dicts, with arrays and numbers as leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_LEAF = object()


def flatten(tree: Any, name: str = "") -> tuple[list[Any], list[str], Any]:
    """The leaves in order, a name for each ("params.w1"), and the structure."""
    leaves: list[Any] = []
    names: list[str] = []
    return leaves, names, _flatten(tree, name, leaves, names)


def _flatten(tree: Any, name: str, leaves: list[Any], names: list[str]) -> Any:
    def below(key: Any) -> str:
        return f"{name}.{key}" if name else str(key)

    if tree is None:
        return None
    if isinstance(tree, (tuple, list)):
        keys = getattr(tree, "_fields", range(len(tree)))
        children = [_flatten(c, below(k), leaves, names) for k, c in zip(keys, tree)]
        return type(tree), None, children
    if isinstance(tree, dict):
        children = [_flatten(c, below(k), leaves, names) for k, c in tree.items()]
        return dict, list(tree), children
    leaves.append(tree)
    names.append(name)
    return _LEAF


def unflatten(structure: Any, leaves: Iterator[Any]) -> Any:
    """The tree again, with other leaves."""
    if structure is _LEAF:
        return next(leaves)
    if structure is None:
        return None
    kind, keys, children = structure
    made = [unflatten(child, leaves) for child in children]
    if kind is dict:
        return dict(zip(keys, made))
    return kind(*made) if hasattr(kind, "_fields") else kind(made)


def is_leaf(structure: Any) -> bool:
    return structure is _LEAF


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with `change` applied to each leaf."""
    leaves, _, structure = flatten(tree)
    return unflatten(structure, iter([change(leaf) for leaf in leaves]))


def spread(axes: Any, tree: Any, what: str) -> list[int | None]:
    """One axis for each leaf: `axes` is one for all, or a tree like the top of `tree`."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(flatten(tree)[0])
    same = isinstance(axes, dict) == isinstance(tree, dict)
    if not same or not isinstance(tree, (tuple, list, dict)) or len(axes) != len(tree):
        raise ValueError(
            f"{what}: expected one axis for all, or a tree like the arguments, got {axes}"
        )
    keys = tree if isinstance(tree, dict) else range(len(tree))
    return [axis for key in keys for axis in spread(axes[key], tree[key], what)]
