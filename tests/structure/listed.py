# SPDX-License-Identifier: Apache-2.0
"""Where a README has a table of its folder's files, or of those in a folder below, each source of
that folder is named in a table, between backticks, with its ending or without. Such a table is
headed "file", "files", "in `folder/`" or "header (`folder/`)", where `folder` is the end of a path
below the README. One with a row "one file per ..." is no list of all, and tables of tests say what
these prove."""

import re
from pathlib import Path

import sources

HEADING = re.compile(r"^\| (?:files?|(?:in|header) \(?`([\w/]+)/`\)?) \|", re.MULTILINE)
NO_LIST = re.compile(r"^\| one file per ", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")


def named(text: str) -> set[str]:
    """The words of what is quoted in tables: of `plugin.component` both."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return set(re.findall(r"\w+", " ".join(QUOTED.findall("\n".join(rows)))))


def is_of(table: str, folder: Path) -> bool:
    """Whether a table is of this folder; "" stands for the README's own."""
    return f"/{folder.as_posix()}".endswith(table) if table else folder == Path()


def violations(root: Path) -> list[str]:
    found, code = [], sources.code(root)
    for readme in sources.files(root):
        if readme.name != "README.md" or readme.parts[0] == "tests":
            continue
        text = (root / readme).read_text()
        tables = [f"/{below}" if below else "" for below in HEADING.findall(text)]
        if NO_LIST.search(text) or not tables:
            continue
        words, here = named(text), readme.parent
        missing = {
            p.with_suffix("")
            for p in code
            if p.is_relative_to(here)
            and any(is_of(table, p.parent.relative_to(here)) for table in tables)
            and p.stem not in words
        }
        found += [f"{readme}: expected a row of {path.name}" for path in sorted(missing)]
    return found
