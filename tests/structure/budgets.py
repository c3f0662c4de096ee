# SPDX-License-Identifier: Apache-2.0
"""Line budgets. A budget is raised only with the reason in CHANGELOG.md."""

import re
from pathlib import Path

import sources

PER_FILE = 400
PER_ABI_HEADER = 150
IN_ALL = {"host": 15490, "sdk": 3685}
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


def violations(root: Path) -> list[str]:
    found = []
    total = dict.fromkeys(IN_ALL, 0)
    for path in sources.code(root):
        count = sources.lines(root / path)
        is_abi_header = path.parts[0] == "abi" and path.suffix == ".h"
        limit = PER_ABI_HEADER if is_abi_header else PER_FILE
        if count > limit:
            found.append(
                f"{path}: expected at most {limit} lines, got {count}: split it by concern"
            )
        counts = path.suffix in sources.C_FAMILY and path.parts[:2] != STRANGERS
        if path.parts[0] in total and counts:
            total[path.parts[0]] += count
    if (rules := rule_lines(root)) > RULES:
        found.append(f"plugins/ops: expected at most {RULES} lines of rules, got {rules}")
    for folder, limit in IN_ALL.items():
        if total[folder] > limit:
            found.append(f"{folder}: expected at most {limit} lines in all, got {total[folder]}")
    return found
