# SPDX-License-Identifier: Apache-2.0
"""Tokens and functions of C and C++ text, as far as gates need them: no preprocessor, no types."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

TEXT = r'R"([^(\s]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<!\w)\'(?:[^\'\\\n]|\\.)+\''
COMMENT = r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.)*"  # directives go with them
SKIPPED = re.compile(f"{TEXT}|{COMMENT}", re.DOTALL | re.MULTILINE)
NUMBER = r"\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*"
SIGN = r"->|::|<=>|&&|\|\||\+\+|--|[-+*/%&|^=!<>]=|\.\.\.|\S"
TOKEN = re.compile(rf'\n|""|{NUMBER}|\w+|{SIGN}')
# Places where a function goes one way or another (McCabe, 1976), with those inside of conditions.
DECISIONS = {"if", "for", "while", "case", "catch", "&&", "||", "?"}
NO_NAMES = {"decltype", "alignas", "noexcept", "requires", "explicit", "__attribute__", "operator"}
CLASSES = {"class", "struct", "union", "enum"}


@dataclass
class Function:
    name: str
    line: int
    tokens: int
    decisions: int
    parameters: int


def without_comments(found: re.Match) -> str:
    text = '""' if found.group()[0] in "R\"'" else " "
    return text + "\n" * found.group().count("\n")


def words(text: str) -> list[str]:
    """The tokens, with a "\\n" where a line ends. A text is one token, however long."""
    return TOKEN.findall(SKIPPED.sub(without_comments, text))


def count_tokens(text: str) -> int:
    found = words(text)
    return len(found) - found.count("\n")


def is_class(header: list[str]) -> bool:
    """Whether the header is a type's: what a template takes, and what a function gives, is none."""
    angles = 0
    for word in header:
        angles += (word == "<") - (word == ">")
        if angles == 0 and word in CLASSES:
            return True
        if angles == 0 and word in ("(", "="):
            return False
    return False


def is_assigned(header: list[str]) -> bool:
    angles = 0
    for word in header:
        angles += (word == "<") - (word == ">")
        if word == "=" and angles == 0:
            return "operator" not in header
    return False


def parameter_list(header: list[str]) -> int | None:
    """Where the parenthesis of a function's parameters opens; None where this is no function."""
    depth = 0
    for i, word in enumerate(header):
        if word == "(" and depth == 0 and i > 0:
            before = header[i - 1]
            of_operator = "operator" in header[max(0, i - 4) : i - 1]  # operator()(, operator==(
            if of_operator or before not in NO_NAMES and re.fullmatch(r"\w+", before):
                return i
        depth += (word == "(") - (word == ")")
    return None


def count_parameters(header: list[str], opening: int) -> int:
    depth, angles, commas, said = 0, 0, 0, 0
    for word in header[opening:]:
        depth += word in "([{"
        depth -= word in ")]}"
        if depth == 0:
            break
        said += 1
        if depth == 1:
            angles += word == "<"
            angles -= word == ">"
            commas += word == "," and angles == 0
    return 0 if said == 1 else commas + 1


class Reader:
    """Goes through the tokens and keeps which braces are open."""

    def __init__(self) -> None:
        self.scopes: list[str] = []  # "scope" (a namespace, a type) or "value", innermost last
        self.header: list[str] = []  # what stands before the next brace
        self.parentheses = 0
        self.begun = 0  # line of the header's first token

    def take(self, word: str, line: int) -> Function | None:
        """A function where `word` is the brace that opens its body."""
        self.parentheses += (word == "(") - (word == ")")
        in_value = self.scopes[-1:] == ["value"]
        if word == "{" and (self.parentheses == 0 or in_value):
            return self.open(in_value)
        if word == "}" and self.parentheses == 0:
            closed = self.scopes.pop() if self.scopes else "scope"
            self.header = self.header if closed == "value" else []
        elif word == ";" and self.parentheses == 0 and not in_value:
            self.header = []
        else:
            self.begun = self.begun if self.header else line
            self.header.append(word)
        return None

    def open(self, in_value: bool) -> Function | None:
        header, opening = self.header, None if in_value else parameter_list(self.header)
        if in_value:
            self.scopes.append("value")
        elif "namespace" in header or header == ["extern", '""'] or is_class(header):
            self.scopes.append("scope")
            self.header = []
        elif opening is None or is_assigned(header[:opening]) or in_list(header):
            self.scopes.append("value")
        else:
            self.header = []
            count = count_parameters(header, opening)
            name = (
                "".join(header[opening - 3 : opening])
                if header[opening - 1] == ")"
                else header[opening - 1]
            )
            return Function(name, self.begun, len(header) + 1, 1, count)
        return None


def functions(text: str) -> Iterator[Function]:
    """Each function that the text defines, lambdas as parts of the function around them."""
    reader, line = Reader(), 1
    inside: Function | None = None
    depth = 0  # of the function's braces
    for word in words(text):
        if word == "\n":
            line += 1
        elif inside is None:
            inside, depth = reader.take(word, line), 1
        else:
            inside.tokens += 1
            inside.decisions += word in DECISIONS
            depth += (word == "{") - (word == "}")
            if depth == 0:
                yield inside
                inside = None


def in_list(header: list[str]) -> bool:
    """Whether a brace here is a member's in a constructor's list: `: a_{1}, b_(2) {`."""
    closed = len(header) - 1 - header[::-1].index(")") if ")" in header else -1
    rest = header[closed + 1 :]
    return bool(rest) and rest[0] in (":", ",") and re.fullmatch(r"[\w>]+", rest[-1]) is not None
