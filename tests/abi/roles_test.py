# SPDX-License-Identifier: Apache-2.0
"""Every role of the headers is known wherever roles are listed; a table that lacks a function is
answered with a status that names it, for each role and each function in turn."""

import re
from pathlib import Path

import pytest
from arguments_test import in_child
from calls import Calls

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    return Calls(tmp_path_factory.mktemp("roles"))


def functions(calls: Calls, struct: str):
    for field in calls.abi["structs"][struct]["fields"]:
        if "function" in field:
            yield field["name"], field.get("nullable", False), field["function"]


def table(calls: Calls, struct: str, without: str):
    made = calls.new(f"{struct}*")
    made.struct_size = calls.ffi.sizeof(struct)
    kinds = dict(calls.ffi.typeof(struct).fields)
    for name, _, _ in functions(calls, struct):
        if name != without:
            setattr(made, name, calls._callback(kinds[name].type))
    return made


def lent(calls: Calls, role: str, given) -> tuple:
    place = calls.new("tn_component_ref**")
    null = calls.ffi.NULL
    status = calls.service("component").lend(
        calls.host.ctx, calls.str(role), calls.str("acme.it"), given, null, null, place
    )
    return status, place[0]


def called(calls: Calls, role: str, struct: str, name: str) -> str:
    """What a user of the role meets when `name` is missing."""
    status, component = lent(calls, role, table(calls, struct, name))
    if status != calls.ffi.NULL:
        return calls.message(status)
    self = calls.new("void**")
    found = calls.service("component").get_interface(component, calls.str(role), self)
    function = getattr(calls.ffi.cast(f"{struct}*", found), name)
    if function == calls.ffi.NULL:
        return "NULL"
    said = dict((n, f) for n, _, f in functions(calls, struct))[name]
    arguments = calls.good(calls.ffi.typeof(function).args, said["params"])
    return calls.message(function(*arguments))


def test_a_missing_function_is_answered_by_its_name(calls):
    wrong = []
    for role, struct in calls.abi["roles"].items():
        for name, nullable, _ in functions(calls, struct):
            report, died = in_child(called, calls, role, struct, name)
            expected = "NULL" if nullable else f"function {name}"
            if died or expected not in report:
                wrong.append(f"{role}: {name}: expected '{expected}', got '{report or died}'")
    assert wrong == []


def test_a_table_with_all_functions_is_taken(calls):
    for role, struct in calls.abi["roles"].items():
        status, _ = lent(calls, role, table(calls, struct, ""))
        assert status == calls.ffi.NULL, calls.message(status)


@pytest.mark.parametrize(
    ("place", "form"),
    [
        ("bindings/lua/command/check/suites.cpp", '"{role}"'),
        ("bindings/lua/command/templates.cpp", '{{"{word}", '),
        ("sdk/README.md", "`{role}`"),
        ("sdk/include/tenon/sdk/role/{file}.hpp", '"{role}"'),
    ],
)
def test_every_role_is_known(calls, place, form):
    headers = {s: f["header"] for s, f in calls.abi["structs"].items()}
    for role, struct in calls.abi["roles"].items():
        word = re.fullmatch(r"tenon\.(\w+)/\d+", role).group(1)
        file = Path(headers[struct]).stem
        text = (ROOT / place.format(file=file)).read_text()
        assert form.format(role=role, word=word) in text, f"{place}: expected {role}"
