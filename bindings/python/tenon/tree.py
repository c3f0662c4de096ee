# SPDX-License-Identifier: Apache-2.0
"""Arguments and results as trees: tuples, lists and dicts, with arrays and numbers as leaves."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from .errors import ArgumentError

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


def leaves_like(structure: Any, tree: Any, name: str, optional: bool = False) -> list[Any]:
    """The leaves of a tree that is to have this structure, in the order of the structure: what is
    in a dict is found by its key. optional: None may stand where the structure has a leaf."""
    if structure is _LEAF:
        if _kind(tree) is None and (tree is not None or optional):
            return [tree]
        raise ArgumentError(f"{name}: expected an array or a number, got {_text(tree)}")
    if structure is None:
        if tree is not None:
            raise ArgumentError(f"{name}: expected None, got {_text(tree)}")
        return []
    kind, keys, children = structure
    if _kind(tree) is not kind:
        raise ArgumentError(f"{name}: expected a {kind.__name__}, got {_text(tree)}")
    if kind is not dict:
        if len(tree) != len(children):
            raise ArgumentError(f"{name}: expected {len(children)} items, got {len(tree)}")
        keys = range(len(children))
    elif odd := [key for key in keys if key not in tree] or [k for k in tree if k not in keys]:
        is_missing = odd[0] not in tree
        wanted = "none" if not keys else ", ".join(map(repr, keys))
        raise ArgumentError(
            f"{name}: expected the keys {wanted}, got {'none' if is_missing else 'one'} of the "
            f"name {odd[0]!r}"
        )
    made = [leaves_like(c, tree[k], f"{name}.{k}", optional) for k, c in zip(keys, children)]
    return [leaf for leaves in made for leaf in leaves]


def _kind(tree: Any) -> Any:
    """What a structure says of the container; None of what is none."""
    if isinstance(tree, dict):
        return dict
    return type(tree) if isinstance(tree, (tuple, list)) else None


def _text(tree: Any) -> str:
    return "None" if tree is None else f"a {type(tree).__name__}"


def is_leaf(structure: Any) -> bool:
    return structure is _LEAF


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with `change` applied to each leaf."""
    leaves, _, structure = flatten(tree)
    return unflatten(structure, iter([change(leaf) for leaf in leaves]))


def spread(axes: Any, tree: Any, what: str) -> list[int | None]:
    """One axis for each leaf: `axes` is one for all, or a tree like the top of `tree`."""
    if axes is None or hasattr(axes, "__index__"):
        axis = None if axes is None else operator.index(axes)
        return [axis] * len(flatten(tree)[0])
    same = isinstance(axes, dict) == isinstance(tree, dict)
    same = same and isinstance(tree, (tuple, list, dict)) and len(axes) == len(tree)
    if not same or (isinstance(tree, dict) and set(axes) != set(tree)):
        raise ValueError(
            f"{what}: expected one axis for all, or a tree like the arguments, got {axes}"
        )
    keys = tree if isinstance(tree, dict) else range(len(tree))
    return [axis for key in keys for axis in spread(axes[key], tree[key], what)]
