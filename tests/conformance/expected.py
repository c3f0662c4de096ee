# SPDX-License-Identifier: Apache-2.0
"""The list of expected failures, and what of it is out of date.

A line is `DEVICES SUBJECT: reason`. DEVICES: `all`, or ids with commas. SUBJECT: a case's name, or
`op/NAME`: every case that fails because no plugin brings a row for that operator.

    python tests/conformance/expected.py     # runs all and rewrites the list, keeping reasons
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import runner

LIST = Path(__file__).parent / "expected_failures.txt"
DEVICES = ("reference", "onednn")
LINE = re.compile(r"^(?P<devices>[\w,]+) (?P<subject>[\w/.]+): (?P<reason>\S.*)$")
NO_ROW = re.compile(r"no loaded plugin brings a row for (\w+)")

Expected = dict[tuple[str, str], str]  # (device, subject) -> reason


def read(text: str) -> Expected:
    found: Expected = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.match(line)
        if not match:
            raise ValueError(f"line {number}: expected 'DEVICES SUBJECT: reason', got '{line}'")
        devices = DEVICES if match["devices"] == "all" else match["devices"].split(",")
        for device in devices:
            if device not in DEVICES:
                raise ValueError(f"line {number}: expected one of {DEVICES}, got '{device}'")
            if (device, match["subject"]) in found:
                raise ValueError(f"line {number}: {match['subject']} is there twice")
            found[device, match["subject"]] = match["reason"]
    return found


def subject_of(name: str, outcome: runner.Outcome) -> str:
    row = NO_ROW.search(outcome.why)
    return f"op/{row[1]}" if row else name


def disagreements(
    expected: Expected, device: str, outcomes: dict[str, runner.Outcome]
) -> dict[str, str]:
    """Subject -> what is not as the list says; both ways."""
    failing = {
        subject_of(name, one): f"{name}: {one.why}"
        for name, one in outcomes.items()
        if not one.passed
    }
    listed = {subject for of, subject in expected if of == device}
    found = {
        subject: f"fails and is not listed: {why}"
        for subject, why in failing.items()
        if subject not in listed
    }
    for subject in listed - failing.keys():
        found[subject] = "is listed and does not fail any more: take its line out"
    return found


def reason_for(subject: str, why: str) -> str:
    if subject.startswith("op/"):
        return "no row yet"
    why = re.sub(r"^\w+: ", "", why)
    why = re.sub(r"/\S+/model\.onnx: ", "", why)
    return " ".join(why.split())[:160]


def rewritten(old: Expected, outcomes: dict[str, dict[str, runner.Outcome]]) -> str:
    reasons: dict[str, dict[str, str]] = {}
    for device, all_of_it in outcomes.items():
        for name, one in all_of_it.items():
            if one.passed:
                continue
            subject = subject_of(name, one)
            kept = old.get((device, subject)) or reason_for(subject, one.why)
            reasons.setdefault(subject, {}).setdefault(device, kept)
    lines = []
    for subject, by_device in sorted(reasons.items()):
        first = next(iter(by_device.values()))
        if set(by_device) == set(DEVICES):
            lines.append(f"all {subject}: {first}")
        else:
            lines += [f"{device} {subject}: {why}" for device, why in by_device.items()]
    header = "# Expected failures of ONNX's single-operator cases; format: see expected.py.\n"
    return header + "\n".join(lines) + "\n"


def main() -> int:
    all_cases = runner.cases()
    outcomes = {device: runner.run_all(all_cases, device) for device in DEVICES}
    old = read(LIST.read_text()) if LIST.exists() else {}
    LIST.write_text(rewritten(old, outcomes))
    for device, all_of_it in outcomes.items():
        print(f"{device}: {sum(one.passed for one in all_of_it.values())} of {len(all_of_it)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
