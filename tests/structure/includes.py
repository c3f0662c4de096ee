# SPDX-License-Identifier: Apache-2.0
"""A file sees the declaration of each function that it calls, through its own includes.

Builds compile several files as one, where a file also sees what its neighbours include: a missing
#include shows only when the batches are formed otherwise, as in a build with a sanitizer. Functions
are those that headers of the same plugin or room, or of the SDK, declare at namespace scope, under
a name that no other header declares.
"""

import re
from functools import cache
from pathlib import Path

import sources
from arrows import INCLUDE, targets

COMMENTS_AND_STRINGS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
# In the first column: what is at namespace scope, as this tree's format has it.
DECLARED = re.compile(
    r"^(?!using|typedef|#|return)[A-Za-z_][^;={}()\n]*?[\s*&>](\w+)\(", re.MULTILINE
)
CALLED = re.compile(r"(?<![\w.>:])(\w+)\(")
# A member, a parameter or a variable of that name: a type stands before it.
OWN = re.compile(r"(?:(?<=[\w>*&]\s)|(?<=[*&]))(?<!\breturn\s)(?<!\bcase\s)(?<!\belse\s)(\w+)\b")
WORD = re.compile(r"\w+")
ROOMS = ("host", "plugins", "bindings", "sdk")


def room(path: Path) -> str:
    return "/".join(path.parts[:2]) if path.parts[0] in ("plugins", "bindings") else path.parts[0]


def violations(root: Path) -> list[str]:
    texts = {
        path: (root / path).read_text()
        for path in sources.files(root)
        if path.suffix in {".cpp", ".hpp", ".h"} and path.parts[0] in (*ROOMS, "abi")
    }
    known = set(texts)
    plain = {path: COMMENTS_AND_STRINGS.sub("", text) for path, text in texts.items()}
    included = {
        path: [
            hit
            for quote, name in INCLUDE.findall(text)
            for hit in targets(path, quote == '"', name, known)
        ]
        for path, text in texts.items()
    }

    @cache
    def seen(path: Path) -> frozenset[Path]:
        found, ahead = {path}, [path]
        while ahead:
            more = [hit for hit in included[ahead.pop()] if hit not in found]
            found.update(more)
            ahead.extend(more)
        return frozenset(found)

    declarers: dict[str, set[Path]] = {}
    for path, text in plain.items():
        for name in set(DECLARED.findall(text)):
            declarers.setdefault(name, set()).add(path)
    words = {path: set(WORD.findall(text)) for path, text in plain.items()}
    found = []
    for path, text in plain.items():
        if path.suffix != ".cpp":
            continue
        own = set(OWN.findall(text)).union(*(words[other] for other in seen(path) - {path}))
        for match in CALLED.finditer(text):
            headers = [d for d in declarers.get(match[1], ()) if d.suffix != ".cpp"]
            if match[1] in own or len(headers) != 1 or room(headers[0]) not in (room(path), "sdk"):
                continue
            line = text.count("\n", 0, match.start()) + 1
            found.append(
                f"{path}:{line}: calls {match[1]}(): expected an #include that leads to "
                f"{headers[0]}, which declares it"
            )
    return found
