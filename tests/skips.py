# SPDX-License-Identifier: Apache-2.0
"""How many tests were skipped and why, from the JUnit file of ctest: a line for each reason."""

import re
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

# googletest: "file.cpp:12: Skipped", the reason on the next line.
# pytest -rs: "SKIPPED [2] file.py:3: reason"
GOOGLE = re.compile(r"^\S+:\d+: Skipped\n(.*)$", re.MULTILINE)
PYTEST = re.compile(r"^SKIPPED \[(\d+)\] [^:]+(?::\d+)?: (.*)$", re.MULTILINE)


def reasons(junit: str) -> Counter[str]:
    """Cases of googletest and of ctest one each; of pytest, one test a file, its own cases."""
    counted: Counter[str] = Counter()
    for case in ElementTree.fromstring(junit).iter("testcase"):
        output = case.findtext("system-out") or ""
        skipped = case.find("skipped")
        for n, why in PYTEST.findall(output):
            counted[why.strip()] += int(n)
        if skipped is not None and not PYTEST.search(output):
            found = GOOGLE.search(output)
            counted[found[1].strip() if found else skipped.get("message", "no reason given")] += 1
    return counted


def main(path: str) -> None:
    counted = reasons(Path(path).read_text())
    print(f"test: {counted.total()} cases skipped on this machine")
    for why, n in counted.most_common():
        print(f"  {n:4}  {why or 'no reason given'}")


if __name__ == "__main__":
    main(sys.argv[1])
