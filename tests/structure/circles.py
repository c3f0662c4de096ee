# SPDX-License-Identifier: Apache-2.0
"""Modules of the Python package import one way, and so do the folders of the host and those inside
of each plugin by their includes: no circle, also by imports inside functions."""

import ast
import os
import re
from pathlib import Path

import sources

PACKAGE = Path("bindings/python/tenon")
HOST = Path("host")
PLUGINS = Path("plugins")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


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


def folder_arrows(root: Path, top: Path, files: list[Path]) -> dict[str, set[str]]:
    """The folders below `top`, by includes of its headers, which are named from the file's own
    folder or from `top`. Files of `top` itself, a plugin's glue and what all of it shares, are in
    no folder."""
    inside = [p for p in files if p.is_relative_to(top) and p.suffix in sources.C_FAMILY]
    known = {path.as_posix() for path in inside}

    def folder(path: Path) -> str:
        return path.parent.relative_to(top).as_posix()

    arrows: dict[str, set[str]] = {folder(path): set() for path in inside}
    arrows.pop(".", None)
    for path in inside:
        if folder(path) not in arrows:
            continue
        for header in INCLUDE.findall((root / path).read_text()):
            ways = [os.path.normpath(base / header) for base in (path.parent, top)]
            found = next((Path(way) for way in ways if way in known), None)
            if found and folder(found) in arrows:
                arrows[folder(path)].add(folder(found))
        arrows[folder(path)].discard(folder(path))
    return arrows


def violations(root: Path) -> list[str]:
    files = sources.files(root)
    plugins = sorted(
        {PLUGINS / p.parts[1] for p in files if p.is_relative_to(PLUGINS) and p.parts[2:]}
    )
    places = [(PACKAGE, package_arrows(root))]
    places += [(top, folder_arrows(root, top, files)) for top in (HOST, *plugins)]
    found = []
    for where, arrows in places:
        if way := circle(arrows):
            found.append(f"{where}: expected imports that point one way, got {' -> '.join(way)}")
    return found
