# SPDX-License-Identifier: Apache-2.0
"""C++ in front of every function that the host gives away: exported ones and those of services.

Each checks its arguments as the header states them (host/services/arguments.hpp has the checks),
answers what cannot be with a status, passes structs on in full size, and in tests checks that the
header states the code that the function gives."""

import re

import errors
from model import Abi, Function, Param
from rules import COUNT
from tables import tables

HEAD = """// Made by abi/generate from the headers: the checks of arguments, one function each.
#include "tenon/abi.h"
#include "tenon/tenon.h"

#include "services/arguments.hpp"
"""
BYTES = re.compile(r"\w*bytes|len")
# Handed in and out by value, or a struct whose functions the host will call.
INNER = {"tn_str": "text", "tn_any": "any", "tn_sink": "sink", "tn_outputs": "outputs"}


def declarations(abi: Abi) -> str:
    """The functions behind those that libtenon exports, and the one that guards a service."""
    lines = [
        "// Made by abi/generate from the headers.",
        "#pragma once",
        "#include <string_view>",
        "",
        '#include "tenon/tenon.h"',
        "",
        "namespace tenon::host {",
        "// The service's table with guards in front, or NULL for an id that no header has.",
        "const void* guarded_service(std::string_view id, const void* real);",
        "namespace exported {",
    ]
    for function in exported(abi):
        names = ", ".join(_declared(p, f"p{i}") for i, p in enumerate(function.params))
        lines.append(f"{function.result.type} {function.name}({names});")
    return "\n".join([*lines, "}", "}", ""])


def exported(abi: Abi) -> list[Function]:
    found = [h for h in abi.headers if h.name == "tenon/tenon.h"]
    return found[0].functions if found else []


def services_guarded(abi: Abi) -> str:
    makes = _Maker(abi)
    lines = [HEAD, '#include "guards.hpp"', "", "namespace tenon::host {", "namespace {"]
    services = tables(abi, "Service")
    headers = {header.name: header for header in abi.headers}
    for service in services:
        struct = service.struct
        lines.append(f"const {struct.name}* real_{struct.name} = nullptr;")
        names = []
        for field in struct.fields:
            if field.function is None:
                continue
            names.append(f"guard_{struct.name}_{field.name}")
            call = f"real_{struct.name}->{field.name}"
            shown = f"{service.id}: {field.name}"
            head = f"static {{}} TN_CALL {names[-1]}"
            stated = errors.codes(headers[service.header], struct, field.function)
            lines += makes.guard(field.function, head, shown, call, stated)
        table = ", ".join([f"sizeof({struct.name})", "1", *names])
        lines.append(f"const {struct.name} guarded_{struct.name}{{{table}}};")
    lines += ["}", "const void* guarded_service(std::string_view id, const void* real) {"]
    for service in services:
        name = service.struct.name
        lines += [
            f'  if (id == "{service.id}") {{',
            f"    real_{name} = static_cast<const {name}*>(real);",
            f"    return &guarded_{name};",
            "  }",
        ]
    return "\n".join([*lines, "  return nullptr;", "}", "}", ""])


def exports_guarded(abi: Abi) -> str:
    makes = _Maker(abi)
    lines = [HEAD, '#include "guards.hpp"', "", "using namespace tenon::host;", ""]
    header = next((h for h in abi.headers if h.name == "tenon/tenon.h"), None)
    for function in exported(abi):
        name = function.name
        stated = errors.codes(header, None, function)
        lines += makes.guard(function, f"{{}} {name}", name, f"exported::{name}", stated)
    return "\n".join(lines) + "\n"


class _Maker:
    def __init__(self, abi: Abi):
        self.abi = abi
        self.structs = abi.structs
        self.opaque = {name for header in abi.headers for name in header.opaque}

    def guard(
        self,
        function: Function,
        head: str,
        shown: str,
        call: str,
        stated: frozenset[str] | None,
    ) -> list[str]:
        params = function.params
        checks: list[str] = []
        given: list[str] = []
        after: list[str] = []
        zero: list[str] = []
        for i, param in enumerate(params):
            behind = params[i + 1] if i + 1 < len(params) else None
            is_object = param.pointers == 1 and param.base in self.opaque
            counted = bool(
                behind and behind.pointers == 0 and _is_count(behind.name) and not is_object
            )
            checks += self._check(i, param, counted)
            handed, made = self._hand(i, param, counted)
            given.append(handed)
            after += made
            zero += [] if counted else self._zero(i, param)
        names = ", ".join(_declared(p, f"p{i}") for i, p in enumerate(params))
        result = function.result.type
        is_status = function.result.base == "tn_status" and function.result.pointers == 1
        refuse = "arguments.refused()" if is_status else "" if result == "void" else "{}"
        lines = [f"{head.format(result)}({names}) {{"]
        if checks:
            lines += [f'  Arguments arguments("{shown}");', *checks]
            lines += ["  if (!arguments.ok()) {", *zero, f"    return {refuse};", "  }"]
        returned = "" if result == "void" else "return "
        made = f"{call}({', '.join(given)})"
        if is_status and function.gives_status and stated is not None:
            made = f'stated({made}, {errors.bits(self.abi, stated):#x}, "{shown}")'
        return [*lines, *after, f"  {returned}{made};", "}"]

    def _check(self, i: int, param: Param, counted: bool) -> list[str]:
        label = f'"{param.name or param.type}"'
        null = "true" if param.nullable else "false"
        if param.callback:
            return [] if param.nullable else [f"  arguments.callback(p{i} != nullptr, {label});"]
        if param.pointers == 0:
            check = INNER.get(param.base)
            return [f"  arguments.{check}(p{i}, {label});"] if check in ("text", "any") else []
        count = f"p{i + 1}" if counted else ""
        growable = param.base in self.structs and self.structs[param.base].growable
        if counted and param.pointers == 2 and (growable or param.base == "DLTensor"):
            items = "true" if param.nullable_items else "false"
            return [f"  arguments.items(p{i}, {count}, {label}, {items});"]
        if counted:
            return [f"  arguments.list(p{i}, {count}, {label}, {null});"]
        if param.pointers == 1 and param.base in self.opaque:
            return [f"  arguments.handle(p{i}, {label}, {null});"]
        if param.pointers == 1 and growable:
            return [f"  arguments.sized(p{i}, {label}, {null});"]
        if param.pointers == 1 and param.base in INNER and param.base in ("tn_sink", "tn_outputs"):
            return [f"  arguments.{INNER[param.base]}(p{i}, {label}, {null});"]
        if param.pointers == 1 and param.base == "DLTensor" and param.const:
            return [f"  arguments.tensor(p{i}, {label}, {null});"]
        return [f"  arguments.needed(p{i}, {label}, {null});"]

    def _hand(self, i: int, param: Param, counted: bool) -> tuple[str, list[str]]:
        """What the function behind gets, and the declarations that it needs."""
        growable = param.base in self.structs and self.structs[param.base].growable
        if not growable or param.base in ("tn_host", "tn_op") or param.pointers == 0:
            return f"p{i}", []
        if param.pointers == 2 and counted:
            return f"s{i}.get()", [f"  TakenList<{param.base}> s{i}(p{i}, p{i + 1});"]
        kind = "Taken" if param.const else "Given"
        return f"s{i}.get()", [f"  {kind}<{param.base}> s{i}(p{i});"]

    def _zero(self, i: int, param: Param) -> list[str]:
        """Out parameters hold NULL or 0 after a failure."""
        if param.nullable or param.callback or param.pointers == 0:
            return []
        is_text = param.base == "tn_str" and param.pointers == 1 and not param.const
        is_out = param.pointers == 1 and not param.const and param.name.startswith("out")
        is_object = param.pointers == 2 and not param.const_items
        growable = param.base in self.structs and self.structs[param.base].growable
        kept = param.base == "DLTensor" or param.base == "void" and param.pointers == 1
        if kept or growable or not (is_text or is_out or is_object):
            return []
        return [f"    if (p{i}) *p{i} = {{}};"]


def _is_count(name: str) -> bool:
    return bool(COUNT.fullmatch(name) or BYTES.fullmatch(name))


def _declared(param: Param, name: str) -> str:
    if param.callback:
        inner = ", ".join(p.type for p in param.callback.params)
        return f"{param.callback.result.type} (TN_CALL *{name})({inner})"
    return f"{param.type} {name}"
