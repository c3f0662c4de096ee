# SPDX-License-Identifier: Apache-2.0
"""The ABI for other languages: C declarations without a preprocessor (cdef), and JSON."""

import tables
from model import Abi, Field, Function, Param


def cdef(abi: Abi) -> str:
    """What cffi's cdef() and LuaJIT's ffi.cdef() take."""
    constants = "".join(f"#define {name} {value}\n" for name, value in abi.constants.items())
    return constants + abi.declarations


def description(abi: Abi) -> dict:
    return {
        "abi": {"major": abi.constants["TN_ABI_MAJOR"], "minor": abi.constants["TN_ABI_MINOR"]},
        "constants": abi.constants,
        "opaque": [name for header in abi.headers for name in header.opaque],
        "aliases": {name: base for header in abi.headers for name, base in header.aliases.items()},
        "structs": {
            struct.name: {
                "header": header.name,
                "doc": struct.doc,
                "frozen": struct.frozen,
                "size": struct.size,
                "align": struct.align,
                "fields": [_field(field) for field in struct.fields],
            }
            for header in abi.headers
            for struct in header.structs
        },
        "roles": {t.id: t.struct.name for t in tables.tables(abi, "Role")},
        "services": {t.id: t.struct.name for t in tables.tables(abi, "Service")},
        "functions": {
            function.name: {"header": header.name, **_function(function)}
            for header in abi.headers
            for function in header.functions
        },
    }


def _field(field: Field) -> dict:
    found = {
        "name": field.name,
        "offset": field.offset,
        "size": field.size,
        "declaration": field.declaration,
        "doc": field.doc,
    }
    if field.nullable:
        found["nullable"] = True
    return {**found, "function": _function(field.function)} if field.function else found


def _function(function: Function) -> dict:
    return {
        "result": function.result.type,
        "params": [_param(p) for p in function.params],
        "threads": list(function.tags),
        "doc": function.doc,
        **({"errors": function.errors} if function.gives_status else {}),
    }


def _param(param: Param) -> dict:
    found: dict = {"name": param.name, "type": param.type}
    if param.nullable:
        found["nullable"] = True
    if param.nullable_items:
        found["nullable_items"] = True
    return {**found, "callback": _function(param.callback)} if param.callback else found
