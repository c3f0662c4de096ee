# SPDX-License-Identifier: Apache-2.0
"""Writes arrays.pyi: the functions of the table in `bindings/arrays` with parameters and texts; and
one like it for each part of the API, `linalg` and `fft`.

python stubs.py FOLDER: where the native module lies and the file goes."""

import importlib.util
import sys
from pathlib import Path

TYPES = {
    "int": "int",
    "flag": "bool",
    "text": "str",
    "scalar": "float",
    "dtype": "Any",
    "plain": "Any",
}
TYPES |= {"ints": "int | Sequence[int]", "axes": "int | Sequence[int]"}
TYPES |= {"array": "Any", "arrays": "Sequence[Any]"}
# Where a function takes more than the kind says.
WIDER = {("conv", "padding"): "int | Sequence[int] | str"}
WIDER |= {("reshape", "shape"): "Any", ("einsum", "equation"): "str"}
WIDER |= {
    ("linalg.vector_norm", "ord"): "float | str",
    ("linalg.matrix_norm", "ord"): "float | str",
}
TOP = """# Made by the build from the table in bindings/arrays.
from collections.abc import Sequence
from typing import Any

__all__: list[str]
"""
HEAD = """PARTS: dict[str, dict[str, Any]]
GROUPS: dict[str, list[str]]

def op(name: str, /, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any: ...
"""


def parameter(row: dict, each: dict) -> str:
    kind = WIDER.get((row["name"], each["name"]), TYPES[each["kind"]])
    name = ("*" if each.get("variadic") else "") + each["name"]
    if "default" not in each:
        return f"{name}: {kind}"
    none = " | None" if each["default"] is None and kind != "Any" else ""
    return f"{name}: {kind}{none} = {each['default']!r}"


def function(row: dict) -> str:
    given = ", ".join(parameter(row, each) for each in row["parameters"])
    made = "tuple[Any, ...]" if row["results"] else "Any"
    return f"def {row['name'].rpartition('.')[2]}({given}) -> {made}:\n    {row['doc']!r}\n"


def native(folder: Path):
    path = next(folder.glob("_core*.so"))
    spec = importlib.util.spec_from_file_location("_core", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    rows = native(folder).array_functions()
    for part in sorted({row["name"].rpartition(".")[0] for row in rows}):
        own = [function(row) for row in rows if row["name"].rpartition(".")[0] == part]
        text = "\n".join([TOP, *own] if part else [TOP + HEAD, *own])
        (folder / f"{part or 'arrays'}.pyi").write_text(text)
