# SPDX-License-Identifier: Apache-2.0
"""The codes that a function gives, from what its header says after "Errors:".

What is said there are codes, "as NAME" (those of another function of its table), "those of TOPIC"
(stated after "Errors of TOPIC:" in the opening comment), "any", or "none of its own".
"""

import re

from model import Abi, Function, Header, Struct

CODE = re.compile(r"\bTN_[A-Z_]+\b")
AS = re.compile(r"\bas (\w+)(?: and (\w+))?")
THOSE = re.compile(r"\bthose of ([\w ]+)")
# base.h: any function may give them.
ALWAYS = frozenset({"TN_INVALID_ARGUMENT", "TN_RESOURCE_EXHAUSTED", "TN_INTERNAL"})


def codes(header: Header, struct: Struct | None, function: Function) -> frozenset[str] | None:
    """None: any code, because it passes those of somebody else on."""
    if re.search(r"\bany\b", function.errors):
        return None
    found = set(CODE.findall(function.errors)) | ALWAYS
    for topic in THOSE.findall(function.errors):
        stated = header.doc.partition(f"Errors of {topic.strip()}: ")[2]
        found |= set(CODE.findall(stated))
    functions = {f.name: f.function for f in struct.fields if f.function} if struct else {}
    for names in AS.findall(function.errors):
        for name in filter(None, names):
            other = codes(header, struct, functions[name]) if name in functions else frozenset()
            if other is None:
                return None
            found |= other
    return frozenset(found)


def bits(abi: Abi, stated: frozenset[str]) -> int:
    return sum(1 << abi.constants[code] for code in stated)
