# SPDX-License-Identifier: Apache-2.0
"""What `help(tenon)` and an editor know: docstrings, stubs, one exception for each status."""

import ast
import inspect
import pydoc
import re
from pathlib import Path

import pytest
import tenon
from tenon import _core, errors

HEADER = Path(__file__).parents[3] / "abi/include/tenon/base.h"
STUBS = Path(errors.__file__).with_name("_core.pyi")


def members(cls):
    return [(f"{cls.__name__}.{name}", vars(cls)[name]) for name in vars(cls) if name[0] != "_"]


def described(thing) -> bool:
    is_code = isinstance(thing, property) or callable(thing)
    return not is_code or bool(inspect.getdoc(thing))


def test_every_public_name_is_described():
    public = [(name, getattr(tenon, name)) for name in tenon.__all__]
    for _, thing in list(public):
        if inspect.isclass(thing):
            public += members(thing)

    assert [name for name, thing in public if not described(thing)] == []


@pytest.mark.parametrize("word", ["tn.load", "compile", "tn.jit", "tn.grad", "tn.components"])
def test_help_says_how_to_begin(word):
    assert word in pydoc.render_doc(tenon, renderer=pydoc.plaintext).split("PACKAGE CONTENTS")[0]


def test_the_stubs_name_what_the_native_module_has():
    tree = ast.parse(STUBS.read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

    native = {name for name in vars(_core) if name[0] != "_"}
    assert native == set(classes) | functions | {"NO_BATCH"}
    for name, node in classes.items():
        report = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        has = {each for each in vars(getattr(_core, name)) if each[0] != "_"}
        assert has <= report, name
        assert {each for each in report if each[0] != "_"} <= has, name


def test_a_type_checker_knows_the_methods_of_traced_values():
    source = ast.parse(Path(inspect.getsourcefile(tenon.Traced)).read_text())
    body = next(n for n in source.body if isinstance(n, ast.ClassDef) and n.name == "Traced").body
    report = {each.name for each in body if isinstance(each, ast.FunctionDef)}
    report |= {
        target.id for each in body if isinstance(each, ast.Assign) for target in each.targets
    }
    report |= {each.target.id for block in body if isinstance(block, ast.If) for each in block.body}

    assert {name for name in vars(tenon.Traced) if name[0] != "_"} <= report


def test_each_status_of_the_abi_has_its_class():
    block = HEADER.read_text().split("#define TN_OK 0")[1]
    named = {int(code): name for name, code in re.findall(r"#define TN_(\w+) (\d+)\n", block)}

    assert sorted(named) == sorted(errors._CLASSES)
    for code, name in named.items():
        words = errors._CLASSES[code].__name__.removesuffix("Error").lower()
        assert name.replace("_", "").lower() == words
