# SPDX-License-Identifier: Apache-2.0
"""Layout: what the compiler must confirm, and what must not change between versions."""

from model import Abi, Field, Struct

# Frozen from the start: in these, growable structs grow at the end only and constants keep their
# values. Elsewhere a growable struct is a draft until 1.0: it may change in other ways too, with a
# new minor that is also the oldest one, so that the host refuses plugins of the older layout.
STABLE_HEADERS = {"tenon/base.h", "tenon/dlpack.h", "tenon/plugin.h", "tenon/host/status.h"}
VERSION = ("TN_ABI_MAJOR", "TN_ABI_MINOR", "TN_ABI_OLDEST_MINOR")
REMEDY = "set TN_ABI_MINOR and TN_ABI_OLDEST_MINOR to a new minor"


def record(abi: Abi) -> dict:
    """The baseline that is committed under abi/history."""
    return {
        "version": [abi.constants[name] for name in VERSION],
        "structs": {
            struct.name: {
                "class": _class(struct),
                "size": struct.size,
                "fields": [
                    [field.name, field.offset, field.declaration] for field in struct.fields
                ],
            }
            for header in abi.headers
            for struct in header.structs
        },
        "aliases": {name: base for header in abi.headers for name, base in header.aliases.items()},
        "constants": {
            constant.name: constant.value
            for header in abi.headers
            if header.name in STABLE_HEADERS
            for constant in header.constants
            if constant.name not in VERSION
        },
    }


def _class(struct: Struct) -> str:
    if not struct.growable:
        return "frozen"
    return "stable" if struct.header in STABLE_HEADERS else "draft"


def changes(before: dict, now: dict) -> tuple[list[str], list[str]]:
    """What breaks the promise, and what is only reported, since the baseline."""
    broken: list[str] = []
    reported: list[str] = []
    drafts: list[str] = []
    for name, old in before["structs"].items():
        into = drafts if old["class"] == "draft" else broken
        new = now["structs"].get(name)
        if new is None:
            into.append(f"{name}: {old['class']} struct removed")
            continue
        kept = new["fields"][: len(old["fields"])]
        into += [
            f"{name}: {old['class']} field was {_shown(was)}, is {_shown(is_)}"
            for was, is_ in zip(old["fields"], kept)
            if was != is_
        ]
        into += [
            f"{name}: {old['class']} field {_shown(was)} removed"
            for was in old["fields"][len(kept) :]
        ]
        grown = [_shown(added) for added in new["fields"][len(old["fields"]) :]]
        if grown and old["class"] == "frozen":
            into.append(f"{name}: frozen struct grew by {', '.join(grown)}")
        elif grown:
            reported.append(f"{name}: grew by {', '.join(grown)}")
        if old["class"] == "stable" and new["class"] == "draft":
            into.append(f"{name}: stable struct became a draft")
    reported += [f"{name}: new struct" for name in now["structs"].keys() - before["structs"].keys()]
    for kind in ("aliases", "constants"):
        broken += [
            f"{name}: was {value}, is {now[kind].get(name, 'gone')}"
            for name, value in before[kind].items()
            if now[kind].get(name) != value
        ]
        reported += [f"{name}: new" for name in now[kind].keys() - before[kind].keys()]
    if leaves_behind(before, now):
        return broken, sorted(reported + drafts)
    unnoticed = "plugins of the older layout would be loaded: let it grow at its end, or " + REMEDY
    return broken + [f"{line}; {unnoticed}" for line in drafts], sorted(reported)


def leaves_behind(before: dict, now: dict) -> bool:
    """Whether the host of one record refuses plugins that were built with the other."""
    major, minor, oldest = now["version"]
    return [major, oldest] > before["version"][:2] and minor >= oldest


def _shown(field: list) -> str:
    return f"`{field[2]}` at {field[1]}"


def asserts(abi: Abi) -> str:
    """C11 that compiles only where every size, offset and type is as recorded here."""
    lines = [
        "/* Made by abi/generate from the headers. Compiling it is the test. */",
        "#include <stddef.h>",
        "#include <stdint.h>",
    ]
    lines += [f'#include "{header.name}"' for header in abi.headers]
    for header in abi.headers:
        for struct in header.structs:
            lines.append(
                f'_Static_assert(sizeof({struct.name}) == {struct.size}, "size of {struct.name}");'
            )
            for field in struct.fields:
                lines += _field_asserts(struct, field)
        lines += [
            f'_Static_assert(({c.name}) == {_literal(c.value)}, "value of {c.name}");'
            for c in header.constants
        ]
    return "\n".join(lines) + "\n"


def _field_asserts(struct: Struct, field: Field) -> list[str]:
    place = f"{struct.name}.{field.name}"
    lines = [
        f"_Static_assert(offsetof({struct.name}, {field.name}) == {field.offset}, "
        f'"offset of {place}");'
    ]
    if field.base != "union":
        alias = f"type_of_{struct.name}_{field.name}"
        if field.function:
            typed = field.declaration.replace(f"(*{field.name})", f"(*{alias})", 1)
        else:
            typed = field.declaration.removesuffix(field.name) + alias
        lines += [
            f"typedef {typed};",
            f"_Static_assert(_Generic(&(({struct.name}*)0)->{field.name}, {alias}*: 1, "
            f'default: 0), "type of {place}");',
        ]
    return lines


def _literal(value: int) -> str:
    return f"{value}u" if value > 2**63 - 1 else str(value)
