# SPDX-License-Identifier: Apache-2.0
"""The field's words: what has a term in the literature is called by it, and not by one of ours.

A row is a pattern that has no other meaning in this tree, and what to write. Patterns that also
have a plain meaning ("parts", "codes", "place") are left to readers: CONTRIBUTING.md lists them.
"""

import re
from pathlib import Path

import sources

TEXT = sources.CODE | {".md", ".txt", ".cmake", ".rs", ".sh", ""}
TERMS = {
    r"told|tells?|telling": "reports, notifies, says, shows",
    r"way back": "the backward pass; dequantize",
    r"real numbers?": "floating point",
    r"few numbers": "small tensors",
    r"narrow products?": "low-precision GEMM",
    r"kNobody": "unclaimed",
    r"settle[sd]?|settling|settle_\w+": "claim, converge, finish",
    r"turned": "transposed, rotated, reversed",
    r"\w*are_codes\w*|code_tail\w*|(?:\d+-bit|packed) codes?|codes of \d+ bits": "quantized values",
    r"strangers?": "third party",
    r"\w*_(?:tells?|told|turned|settled?)(?:_\w*)?": "reports, transposed, steady, in a name",
    r"(?:tells?|told|turned)_\w+": "reports, transposed, in a name",
    r"(?-i:\w*(?:Told|Tells)(?:[A-Z]\w*)?)": "reports, notifies, in a name",
    r"(?:its|their|and) kin": "the names of these functions",
    r"made again": "recomputed, compiled again, replaced",
    r"goes no way|on its way back": "the backward pass",
    r"\w*(?:quant|normal|optim)is(?:e|ing|ation)\w*": "quantize, normalize, optimize",
}
ANY = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern in TERMS), re.IGNORECASE)
# Quotations of history, and this gate itself.
LEFT = re.compile(
    r"CHANGELOG\.md|LICENSE|NOTICE|tests/structure/(?:words|gates_test)\.py|tests/fuzz/corpus/.*"
)


def term_for(found: str) -> str:
    return next(t for p, t in TERMS.items() if re.fullmatch(p, found, re.IGNORECASE))


def violations(root: Path) -> list[str]:
    found = []
    for path in sources.files(root):
        if path.suffix not in TEXT or LEFT.fullmatch(path.as_posix()):
            continue
        text = (root / path).read_text(errors="replace")
        for match in ANY.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            term = term_for(match.group())
            found.append(f"{path}:{line}: expected one of: {term}; got {match.group()!r}")
    return found
