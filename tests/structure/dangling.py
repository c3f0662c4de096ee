# SPDX-License-Identifier: Apache-2.0
"""No std::string_view is made of a std::string that dies in the same statement.

Which functions give a std::string is read from their declarations; a name that elsewhere gives a
std::string_view is left out, as the call alone does not say which it is.
"""

import re
from pathlib import Path

import sources

# Empty parentheses, or a first parameter: a type and a name.
DECLARED = re.compile(
    r"\b(std::string_view|std::string)\s+(?:\w+::)*(\w+)\s*"
    r"\((?:(\s*\))|\s*(?:const\s+)?[A-Za-z_][\w:<>, ]*[ &*]+\w+\s*[,)=])"
)
# The call is the last thing of the initializer, so that its result is what is viewed.
VIEWED = re.compile(
    r"\bstd::string_view\s+(\w+)\s*(?:=\s*|\()([^;{}]*?)\b(\w+)(\((?:[^();{}]|\([^();{}]*\))*\))\s*\)?;"
)


def violations(root: Path) -> list[str]:
    texts = {
        path: (root / path).read_text()
        for path in sources.files(root)
        if path.suffix in {".cpp", ".hpp", ".h"}
    }
    # By name, and whether it takes arguments.
    gives: dict[str, set[tuple[str, bool]]] = {"std::string": set(), "std::string_view": set()}
    for text in texts.values():
        for kind, name, empty in DECLARED.findall(text):
            gives[kind].add((name, not empty))
    strings = gives["std::string"] - gives["std::string_view"]
    found = []
    for path, text in texts.items():
        for match in VIEWED.finditer(text):
            name, before, function, arguments = match.groups()
            call = (function, arguments.strip("() \n") != "")
            if call in strings and not before.rstrip().endswith(("view(", "*", "&")):
                line = text.count("\n", 0, match.start()) + 1
                found.append(
                    f"{path}:{line}: {name} views what {function}() gives, which dies with the "
                    "statement: expected std::string"
                )
    return found
