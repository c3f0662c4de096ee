# SPDX-License-Identifier: Apache-2.0
"""No std::string_view is made of a std::string that dies in the same statement, and no loop runs
over a part of a value that dies before its first turn (C++20 keeps only the whole range).

Which functions give a std::string or JSON is read from their declarations; a name that elsewhere
gives a std::string_view or a reference is left out, as the call alone does not say which it is.
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
# Functions that give JSON by value or by reference, and loops over a part of what one gives.
GIVES_JSON = re.compile(
    r"\b(?:nlohmann::)?(?:json|Json)(?:(&)|\s)\s*(?:\w+::)*(\w+)\s*\([^;{}()]*\)\s*(?:const\s*)?[;{]"
)
LOOP = re.compile(
    r"\bfor \([^;:(){}]*[^:]:(?!:)\s*(?:\w+::)*(\w+)(\((?:[^();{}]|\([^();{}]*\))*\))\s*(?:\[|\.)"
)


def loops(texts: dict[Path, str]) -> list[str]:
    given = [match for text in texts.values() for match in GIVES_JSON.findall(text)]
    values = {name for is_reference, name in given if not is_reference}
    values -= {name for is_reference, name in given if is_reference}
    return [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: the loop runs over a part of what "
        f"{match[1]}() gives, which dies before its first turn: expected a variable that holds it"
        for path, text in texts.items()
        for match in LOOP.finditer(text)
        if match[1] in values
    ]


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
    found = loops(texts)
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
