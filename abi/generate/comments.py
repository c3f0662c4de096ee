# SPDX-License-Identifier: Apache-2.0
"""Comments of a header by line, and the thread tags in them.

A comment belongs to a declaration when it ends on the line above or begins on its last line.
The opening comment of a header may give a tag to all of its functions, "All functions: [any]", and
a comment after an empty line to the paragraph of declarations that it opens. So it is with error
codes: "Errors: ...", "Errors of these: ..." for a paragraph, "Errors of all functions: ...".
"""

import re
from dataclasses import dataclass

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
TAG = re.compile(r"\[(pure|serial|any|finish)\]")
ERRORS = re.compile(r"\bErrors( of these[^:]*)?: ")
ERRORS_OF_THESE = re.compile(r"\bErrors of these[^:]*: ")
ERRORS_OF_ALL = re.compile(r"\bErrors of all functions: ")


@dataclass
class Comment:
    first: int
    last: int
    text: str
    alone: bool  # nothing but the comment stands on its first line


def clean(raw: str) -> str:
    lines = [line.strip().removeprefix("*").strip() for line in raw[2:-2].splitlines()]
    text = " ".join(line for line in lines if line)
    return re.sub(r"\s*SPDX-License-Identifier: Apache-2\.0\s*", "", text).strip()


class Comments:
    def __init__(self, text: str):
        self.lines = text.splitlines()
        self.found = []
        for match in COMMENT.finditer(text):
            first = text.count("\n", 0, match.start()) + 1
            start_of_line = text.rfind("\n", 0, match.start()) + 1
            self.found.append(
                Comment(
                    first,
                    first + match.group().count("\n"),
                    clean(match.group()),
                    not text[start_of_line : match.start()].strip(),
                )
            )
        blank = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
        self.code = blank.splitlines()

    def opening(self) -> str:
        """The comments before the first line of code."""
        first_code = next((number for number, line in enumerate(self.code, 1) if line.strip()), 1)
        return " ".join(c.text for c in self.found if c.last < first_code and c.text)

    def end(self, line: int) -> int:
        """The last line of the declaration that starts on `line`: where its ';' or its '{' is."""
        depth = 0
        for number in range(line, len(self.code) + 1):
            for char in self.code[number - 1]:
                depth += {"(": 1, ")": -1}.get(char, 0)
                if depth <= 0 and char in ";{":
                    return number
        return line

    def above(self, line: int) -> str:
        return next((c.text for c in self.found if c.last == line - 1 and c.alone), "")

    def of(self, line: int) -> str:
        end = self.end(line)
        behind = [c.text for c in self.found if line <= c.first <= end and not c.alone]
        return " ".join(part for part in [self.above(line), *behind] if part)

    def paragraph(self, line: int) -> str:
        """The comment that opens the run of lines without an empty one in which `line` stands."""
        top = line
        while top > 1 and self.lines[top - 2].strip():
            top -= 1
        return next((c.text for c in self.found if c.first == top and c.alone), "")

    def tags(self, line: int) -> tuple[str, ...]:
        for text in (self.of(line), self.paragraph(line), self._for_all()):
            tags = TAG.findall(text)
            if tags:
                return tuple(tags)
        return ()

    def errors(self, line: int) -> str:
        """What the header says of the codes: beside the function, for its paragraph, or for all."""
        said = (
            (ERRORS, self.of(line)),
            (ERRORS_OF_THESE, self.paragraph(line)),
            (ERRORS_OF_ALL, self.opening()),
        )
        for pattern, text in said:
            if match := pattern.search(text):
                return TAG.sub("", text[match.end() :]).strip()
        return ""

    def around(self, line: int) -> str:
        """Everything that is said of the declaration, its paragraph's and its header's included."""
        return " ".join((self.of(line), self.paragraph(line), self.opening()))

    def _for_all(self) -> str:
        return self.opening().partition("All functions:")[2]
