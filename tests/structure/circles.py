# SPDX-License-Identifier: Apache-2.0
"""Modules of the Python package import one way: no circle, also by imports inside functions."""

import ast
from pathlib import Path

import sources

PACKAGE = Path("bindings/python/tenon")


def imported(tree: ast.AST, known: set[str]) -> set[str]:
    """Modules of the package, by relative imports anywhere in a file."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.level != 1:
            continue
        names = [node.module] if node.module else [alias.name for alias in node.names]
        found |= {name.partition(".")[0] for name in names} & known
    return found


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """The modules of one circle in order, the first one again at the end; empty: there is none."""
    done: set[str] = set()

    def walk(module: str, way: list[str]) -> list[str]:
        if module in way:
            return [*way[way.index(module) :], module]
        if module in done:
            return []
        for other in sorted(arrows.get(module, ())):
            if found := walk(other, [*way, module]):
                return found
        done.add(module)
        return []

    for module in sorted(arrows):
        if found := walk(module, []):
            return found
    return []


def violations(root: Path) -> list[str]:
    files = [p for p in sources.files(root) if p.parent == PACKAGE and p.suffix == ".py"]
    known = {path.stem for path in files}
    arrows = {
        path.stem: imported(ast.parse((root / path).read_text()), known)
        for path in files
        if path.stem != "__init__"  # it imports all, and nothing imports it
    }
    found = circle(arrows)
    if not found:
        return []
    return [f"{PACKAGE}: expected imports that point one way, got {' -> '.join(found)}"]
