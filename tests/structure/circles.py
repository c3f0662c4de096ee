# SPDX-License-Identifier: Apache-2.0
"""Modules of the Python package import one way, and folders of the host include one way: no circle,
also by imports inside functions."""

import ast
import re
from pathlib import Path

import sources

PACKAGE = Path("bindings/python/tenon")
HOST = Path("host")
INCLUDE = re.compile(r'^\s*#\s*include\s*"(\w+)/[^"]+"', re.MULTILINE)


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


def package_arrows(root: Path) -> dict[str, set[str]]:
    files = [p for p in sources.files(root) if p.parent == PACKAGE and p.suffix == ".py"]
    known = {path.stem for path in files}
    return {
        path.stem: imported(ast.parse((root / path).read_text()), known)
        for path in files
        if path.stem != "__init__"  # it imports all, and nothing imports it
    }


def host_arrows(root: Path) -> dict[str, set[str]]:
    """Folders of the host, by includes of the form "folder/header.hpp"."""
    files = [
        path
        for path in sources.files(root)
        if path.parent.parent == HOST and path.suffix in sources.C_FAMILY
    ]
    arrows: dict[str, set[str]] = {path.parent.name: set() for path in files}
    for path in files:
        seen = set(INCLUDE.findall((root / path).read_text())) & set(arrows)
        arrows[path.parent.name] |= seen - {path.parent.name}
    return arrows


def violations(root: Path) -> list[str]:
    found = []
    for where, arrows in ((PACKAGE, package_arrows(root)), (HOST, host_arrows(root))):
        if way := circle(arrows):
            found.append(f"{where}: expected imports that point one way, got {' -> '.join(way)}")
    return found
