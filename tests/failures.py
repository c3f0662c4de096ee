# SPDX-License-Identifier: Apache-2.0
"""What the tests that failed printed about it, from the JUnit file of ctest. It stands at the end
of the test run, where whoever sees only the last lines of a log finds it."""

import re
import sys
from xml.etree import ElementTree

# pytest: "FAILED file.py::case - message" and "E   message"; googletest: "file.cpp:12: Failure",
# "[  FAILED  ] Suite.Case"; sanitizers: "ERROR: AddressSanitizer: ..."
REPORTS = re.compile(r"^(FAILED|ERROR|E  |==\d+==ERROR|.*: Failure$|\[  FAILED)")
MOST_LINES, LINES_BEHIND, LAST_LINES, WIDTH = 60, 6, 20, 240


def reports(output: str) -> list[str]:
    """The lines about failures, and those behind googletest's; else the last lines."""
    lines = output.splitlines()
    kept = set()
    for i, line in enumerate(lines):
        if REPORTS.match(line):
            kept.update(range(i, i + 1 + LINES_BEHIND * line.endswith(": Failure")))
    chosen = [lines[i] for i in sorted(kept) if i < len(lines)]
    return chosen[-MOST_LINES:] if chosen else lines[-LAST_LINES:]


def main(path: str) -> None:
    for case in ElementTree.parse(path).iter("testcase"):
        if case.get("status") == "fail":
            print(f"test: {case.get('name')} failed:")
            for line in reports(case.findtext("system-out") or ""):
                print(f"  {line[:WIDTH]}")


if __name__ == "__main__":
    main(sys.argv[1])
