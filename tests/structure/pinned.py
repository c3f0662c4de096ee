# SPDX-License-Identifier: Apache-2.0
"""Each PyPI package is pinned to a version, and each that a Python file imports is named: what only
another package brings along changes under the tests when a release of it appears."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import sources

# Modules that are named otherwise than the packages that have them.
PACKAGES = {"PIL": "pillow", "torch_pruning": "torch-pruning", "tvm_ffi": "apache-tvm-ffi"}
REQUIREMENT = re.compile(r"^([A-Za-z0-9][A-Za-z0-9_.-]*)\s*(==\s*\S+)?")


def is_requirements(path: Path) -> bool:
    return path.name.startswith("requirements") and path.suffix == ".txt"


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the first part of each module's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.lineno, node.module.split(".")[0]


def violations(root: Path) -> list[str]:
    files = sources.files(root)
    own = {part for path in files if path.suffix == ".py" for part in (*path.parts, path.stem)}
    found, named = [], set()
    for path in filter(is_requirements, files):
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            if match := REQUIREMENT.match(line):
                named.add(match[1].lower())
                if match[2] is None:
                    found.append(f"{path}:{number}: {match[1]}: expected a version, ==")
    known = own | sys.stdlib_module_names
    for path in (path for path in files if path.suffix == ".py"):
        for number, module in imported(ast.parse((root / path).read_text())):
            if module not in known and PACKAGES.get(module, module).lower() not in named:
                found.append(f"{path}:{number}: {module} is in none of the requirements*.txt")
    return found
