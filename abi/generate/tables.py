# SPDX-License-Identifier: Apache-2.0
"""Roles and services: which header brings which table, and what the loader must know of it."""

import re
from dataclasses import dataclass

from model import Abi, Header, Struct

ID = re.compile(r'(Role|Service) "(tenon\.[a-z_.]+/\d+)"')


@dataclass
class Table:
    id: str  # "tenon.pass/1"
    header: str
    struct: Struct


def named(header: Header) -> tuple[str, str] | None:
    """("Role", "tenon.pass/1"), by the header's opening comment."""
    found = ID.search(header.doc)
    return (found.group(1), found.group(2)) if found else None


def table_of(header: Header) -> Struct | None:
    """The struct that starts as tables do: struct_size, revision."""
    found = [s for s in header.structs if [f.name for f in s.fields[:2]] == TABLE]
    return found[0] if len(found) == 1 else None


def tables(abi: Abi, kind: str) -> list[Table]:
    """kind: "Role" or "Service"; sorted by id."""
    found = []
    for header in abi.headers:
        name, struct = named(header), table_of(header)
        if name and struct and name[0] == kind:
            found.append(Table(name[1], header.name, struct))
    return sorted(found, key=lambda table: table.id)


TABLE = ["struct_size", "revision"]


def adopted(abi: Abi) -> str:
    """C++ that host/registry/adopt.cpp includes: every role's table with its functions."""
    lines = ["// Made by abi/generate from the role headers: needed, serial."]
    roles = tables(abi, "Role")
    for role in roles:
        struct = role.struct
        functions = [field for field in struct.fields if field.function]
        slots = [
            f'    TN_SLOT({struct.name}, "{role.id}", {field.name}, '
            f"{_cpp(not field.nullable)}, {_cpp('serial' in field.function.tags)}),"
            for field in functions
        ]
        if slots:
            lines += [f"const Slot kSlots_{struct.name}[] = {{", *slots, "};"]
        else:
            lines += [f"const std::span<const Slot> kSlots_{struct.name};"]
    lines += ["const Role kRoles[] = {"]
    lines += [
        f'    {{"{role.id}", sizeof({role.struct.name}), kSlots_{role.struct.name}}},'
        for role in roles
    ]
    return "\n".join([*lines, "};", ""])


def operator_functions(abi: Abi) -> str:
    """C++ that host/graph/op_table.hpp includes: the functions of an operator's row."""
    lines = ["// Made by abi/generate from role/op.h: the functions of tn_op."]
    fields = [field for field in abi.structs["tn_op"].fields if field.function]
    return "\n".join([*lines, *(f"TN_OP_FUNCTION({field.name})" for field in fields), ""])


def _cpp(value: bool) -> str:
    return "true" if value else "false"
