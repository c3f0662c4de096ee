# SPDX-License-Identifier: Apache-2.0
"""Line budgets. A budget is raised only with the reason in CHANGELOG.md."""

import re
from pathlib import Path

import sources

PER_FILE = 400
PER_ABI_HEADER = 150
# Rooms: folders that are counted together; one inside of another counts as its own room. The core
# of the host links with types and languages, and without the others.
ROOMS = {
    "host core": (("host/values", "host/services", "host/graph", "host/registry"), 7000),
    "host types": (("host/types",), 720),
    "host threads": (("host/threads",), 1340),
    "host languages": (("host/languages",), 2800),
    "host files": (("host/files",), 480),
    "host crashes": (("host/crashes",), 490),
    "host runtime": (("host/plan",), 2770),
    "host text": (("host/text",), 900),
    "host report": (("host/report",), 550),
    "host capi": (("host/capi",), 700),
    "sdk": (("sdk",), 4530),
    "sdk backend kit": (("sdk/include/tenon/sdk/backend",), 1850),
}
IN_A_ROOM = {folder for folders, _ in ROOMS.values() for folder in folders}
RULES = 1500  # gradient and batch rules in plugins/ops together
RULE = re.compile(r"^[\w:<> ]+ \w+\((?:Gradients|Batching)& ")
STRANGERS = ("sdk", "examples")  # plugins as others write them: no part of the SDK


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
        for room, (folders, _) in ROOMS.items()
        for folder in folders
        if path.is_relative_to(folder)
    ]
    return max(inside)[1] if inside else None


def violations(root: Path) -> list[str]:
    found = []
    total = dict.fromkeys(ROOMS, 0)
    for path in sources.code(root):
        count = sources.lines(root / path)
        is_abi_header = path.parts[0] == "abi" and path.suffix == ".h"
        limit = PER_ABI_HEADER if is_abi_header else PER_FILE
        if count > limit:
            found.append(
                f"{path}: expected at most {limit} lines, got {count}: split it by concern"
            )
        counts = path.suffix in sources.C_FAMILY and path.parts[:2] != STRANGERS
        if counts and (room := room_of(path)):
            total[room] += count
        if path.parts[0] == "host" and path.parent.as_posix() not in IN_A_ROOM and counts:
            found.append(f"{path}: expected a folder that is in a room of budgets.py")
    if (rules := rule_lines(root)) > RULES:
        found.append(f"plugins/ops: expected at most {RULES} lines of rules, got {rules}")
    for room, (_, limit) in ROOMS.items():
        if total[room] > limit:
            found.append(f"{room}: expected at most {limit} lines in all, got {total[room]}")
    return found
