# SPDX-License-Identifier: Apache-2.0
"""Includes point one way: abi <- sdk <- plugins, abi <- host, abi <- bindings.

A plugin sees its own folder only, never another plugin; so does a binding. Tests may see all.
Within the host the core (values, types, threads, memory, services, languages, schemas, graph,
discovery, registry, session) sees no other room.
"""

import re
from pathlib import Path

import sources

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
MAY_SEE = {
    "abi": {"abi"},
    "sdk": {"abi", "sdk"},
    "host": {"abi", "host"},
    "plugins": {"abi", "sdk"},
    "bindings": {"abi", "bindings/cxx", "bindings/arrays", "bindings/reports"},
}
CORE = {
    f"host/{name}"
    for name in (
        "values",
        "threads",
        "services",
        "languages",
        "schemas",
        "graph",
        "discovery",
        "registry",
        "types",
        "memory",
        "session",
    )
}
ABI_SYSTEM_HEADERS = {"stddef.h", "stdint.h"}


def room(path: Path) -> str:
    """The folder whose own files a file may include: abi, host, sdk, plugins/onnx, bindings/lua."""
    depth = 2 if path.parts[0] in ("plugins", "bindings") and len(path.parts) > 2 else 1
    return "/".join(path.parts[:depth])


def targets(includer: Path, quoted: bool, name: str, known: list[Path]) -> list[Path]:
    """Our files that an include can mean, nearest meaning first found wins."""
    beside = Path(*_normal((includer.parent / name).parts))
    if quoted and beside in known:
        return [beside]
    wanted = Path(*_normal(Path(name).parts)).parts
    same = [path for path in known if path.parts[-len(wanted) :] == wanted]
    own = [path for path in same if room(path) == room(includer)]
    return own or same


def _normal(parts: tuple[str, ...]) -> list[str]:
    result: list[str] = []
    for part in parts:
        if part == "..":
            result = result[:-1]
        elif part != ".":
            result.append(part)
    return result


def violations(root: Path) -> list[str]:
    known = [path for path in sources.files(root) if path.suffix in sources.C_FAMILY]
    found = []
    for path in known:
        top = path.parts[0]
        if top not in MAY_SEE:
            continue
        text = (root / path).read_text(errors="replace")
        for match in INCLUDE.finditer(text):
            name = match.group(2)
            hits = targets(path, match.group(1) == '"', name, known)
            where = f"{path}:{text.count(chr(10), 0, match.start(2)) + 1}"
            allowed = MAY_SEE[top] | {room(path)}
            if hits and not any(room(hit) in allowed for hit in hits):
                found.append(
                    f"{where}: {room(path)} may include {', '.join(sorted(allowed))}, "
                    f"got {name} of {room(hits[0])}"
                )
            leaves_core = path.parent.as_posix() in CORE and any(
                hit.parts[0] == "host" and hit.parent.as_posix() not in CORE for hit in hits
            )
            if leaves_core:
                found.append(
                    f"{where}: the core of host may include {', '.join(sorted(CORE))}, "
                    f"got {name}; call it through services/rooms.hpp"
                )
            is_abi_header = path.parts[:2] == ("abi", "include") and path.suffix == ".h"
            if is_abi_header and not hits and name not in ABI_SYSTEM_HEADERS:
                found.append(
                    f"{where}: an abi header includes abi headers, stddef.h and stdint.h "
                    f"only, got {name}"
                )
    return found
