# SPDX-License-Identifier: Apache-2.0
"""Budgets of lines and of tokens: dense statements and long lines save lines, but no tokens. A
budget is raised only with the reason in CHANGELOG.md."""

import re
from pathlib import Path

import cxx_functions
import sources

PER_FILE = 400
PER_ABI_HEADER = 150
TOKENS_PER_FILE = 5100
# Rooms: folders that are counted together, with their lines and tokens; one inside of another
# counts as its own room. The core of the host links with types, threads, memory, languages and
# schemas, and without the others.
ROOMS = {
    "host core": (
        ("host/values", "host/services", "host/graph", "host/registry", "host/session"),
        6996,
        53490,
    ),
    "host discovery": (("host/discovery",), 337, 2344),
    "host types": (("host/types",), 550, 4400),
    "host threads": (("host/threads",), 1445, 8096),
    "host memory": (("host/memory",), 438, 2741),
    "host languages": (("host/languages",), 2450, 21800),
    "host schemas": (("host/schemas",), 553, 4967),
    "host files": (("host/files",), 480, 3500),
    "host crashes": (("host/crashes",), 490, 3100),
    "host backends": (("host/backends",), 430, 3400),
    "host sizes": (("host/sizes",), 640, 5100),
    "host runtime": (("host/plan",), 3060, 24700),
    "host text": (("host/text",), 900, 7500),
    "host report": (("host/report",), 120, 1000),
    "host capi": (("host/capi",), 700, 5100),
    "sdk": (("sdk",), 5819, 41784),
    "sdk backend kit": (("sdk/include/tenon/sdk/backend",), 1885, 15050),
}
IN_A_ROOM = {folder for folders, *_ in ROOMS.values() for folder in folders}
RULES = 1500  # gradient and batch rules in plugins/ops together
RULE = re.compile(r"^[\w:<> ]+ \w+\((?:Gradients|Batching)& ")
THIRD_PARTY = ("sdk", "examples")  # plugins as others write them: no part of the SDK


def rule_lines(root: Path) -> int:
    """Lines of functions that build gradients or batched nodes, up to their closing brace."""
    count = 0
    for path in sorted((root / "plugins" / "ops").glob("*.cpp")):
        inside = False
        for line in path.read_text().splitlines():
            inside = inside or bool(RULE.match(line))
            count += inside
            inside = inside and line != "}"
    return count


def room_of(path: Path) -> str | None:
    """The room of the innermost of the folders that the path is in."""
    inside = [
        (len(Path(folder).parts), room)
        for room, (folders, *_) in ROOMS.items()
        for folder in folders
        if path.is_relative_to(folder)
    ]
    return max(inside)[1] if inside else None


def violations(root: Path) -> list[str]:
    found = []
    lines, tokens = dict.fromkeys(ROOMS, 0), dict.fromkeys(ROOMS, 0)
    for path in sources.code(root):
        count = sources.lines(root / path)
        is_abi_header = path.parts[0] == "abi" and path.suffix == ".h"
        limit = PER_ABI_HEADER if is_abi_header else PER_FILE
        if count > limit:
            found.append(
                f"{path}: expected at most {limit} lines, got {count}: split it by concern"
            )
        if path.suffix not in sources.C_FAMILY:
            continue
        size = cxx_functions.count_tokens((root / path).read_text())
        if size > TOKENS_PER_FILE:
            found.append(
                f"{path}: expected at most {TOKENS_PER_FILE} tokens, got {size}: "
                "split it by concern"
            )
        counts = path.parts[:2] != THIRD_PARTY
        if counts and (room := room_of(path)):
            lines[room] += count
            tokens[room] += size
        if path.parts[0] == "host" and path.parent.as_posix() not in IN_A_ROOM and counts:
            found.append(f"{path}: expected a folder that is in a room of budgets.py")
    if (rules := rule_lines(root)) > RULES:
        found.append(f"plugins/ops: expected at most {RULES} lines of rules, got {rules}")
    for room, (_, most_lines, most_tokens) in ROOMS.items():
        if lines[room] > most_lines:
            found.append(f"{room}: expected at most {most_lines} lines in all, got {lines[room]}")
        if tokens[room] > most_tokens:
            found.append(f"{room}: expected at most {most_tokens} tokens, got {tokens[room]}")
    return found
