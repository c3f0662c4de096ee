# SPDX-License-Identifier: Apache-2.0
"""Limits of single functions, in C and C++ and in Python: decisions, parameters, tokens. What is
over a limit stands in KNOWN with what it has, and may not grow; a new function keeps the limits."""

import ast
from collections.abc import Iterator
from pathlib import Path

import cxx_functions
import sources
from cxx_functions import Function

LIMITS = {"decisions": 25, "parameters": 8, "tokens": 1050}
KNOWN = {
    ("bindings/python/tenon/step.py", "__init__", "parameters"): 13,
    ("bindings/python/tenon/dispatch.py", "__init__", "parameters"): 10,
    ("plugins/ops/matmul.cpp", "multiply", "parameters"): 10,
}
DECISIONS = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension)


def functions_of_python(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef):
            continue
        decisions = 1
        for inner in ast.walk(node):
            decisions += isinstance(inner, DECISIONS)
            if isinstance(inner, ast.BoolOp):
                decisions += len(inner.values) - 1
        given = node.args.posonlyargs + node.args.args  # those by name alone cannot be mixed up
        yield Function(node.name, node.lineno, 0, decisions, len(given))


def violations(root: Path) -> list[str]:
    found, needed = [], set()
    for path in sources.code(root):
        text = (root / path).read_text()
        if path.suffix in sources.C_FAMILY:
            functions = cxx_functions.functions(text)
        elif path.suffix == ".py":
            functions = functions_of_python(text)
        else:
            continue
        for function in functions:
            for what, limit in LIMITS.items():
                got = getattr(function, what)
                key = (path.as_posix(), function.name, what)
                if got > limit:
                    needed.add(key)
                if got > (most := KNOWN.get(key, limit)):
                    found.append(
                        f"{path}:{function.line}: {function.name}: "
                        f"expected at most {most} {what}, got {got}"
                    )
    left = [key for key in KNOWN if (root / key[0]).exists() and key not in needed]
    return found + [
        f"{path}: {name} keeps the limit of {what}: not KNOWN" for path, name, what in left
    ]
