# SPDX-License-Identifier: Apache-2.0
"""What READMEs quote as code exists: paths from the root, subcommands and options of `tenon`,
options and settings of scripts, ids of components. A line is quoted when it is indented by four
spaces, a text when it stands between backticks."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import sources

TOPS = ("abi", "bindings", "host", "plugins", "scripts", "sdk", "tests")
COMMAND_ROW = re.compile(r'\{"([a-z]+)",[^{}]*?declare_')
WORD = re.compile(r"[\w-]+(?:\.[\w-]+)*")
BASES = ("", "abi/include/tenon/", "sdk/include/tenon/", "tests/")  # that paths are named from
OPTION = re.compile(r"^--[a-z][a-z-]*$")
INLINE = re.compile(r"`([^`]+)`")
ENDINGS = "cpp|hpp|cu|h|py|pyi|lua|md|so|json|np[yz]|onnx|txt"  # of files that look like ids
ID = re.compile(rf"^([a-z0-9]+)\.(?!(?:{ENDINGS})$)[a-z0-9_]+$")
IN_SOURCES = {".cpp", ".hpp", ".c", ".h", ".py", ".lua", ".cu", ".cuh", ""}


class Tree:
    """The tracked files, and the words of their texts; each text is read once."""

    def __init__(self, root: Path):
        self.root = root
        self.files = sources.files(root)
        self.paths = {path.as_posix() for path in self.files}
        self.paths |= {parent.as_posix() for path in self.files for parent in path.parents}
        self.words_below = cache(self._words_below)
        self.commands = self.rows("commands.cpp")
        self.of_plugin = self.rows("plugin.cpp")

    def text(self, path: Path) -> str:
        return (self.root / path).read_text(errors="replace")

    def _words_below(self, folder: str) -> set[str]:
        """Words of all sources in a folder: names with their dots and without, options."""
        out = set()
        for path in self.files:
            if path.is_relative_to(folder) and path.suffix in IN_SOURCES:
                out.update(WORD.findall(self.text(path)))
        for word in [word for word in out if "." in word]:
            parts = word.split(".")
            out.update(parts, {".".join(parts[:2])})
        return out

    def rows(self, name: str) -> set[str]:
        path = Path("bindings/lua/command", name)
        return set(COMMAND_ROW.findall(self.text(path))) if path in self.files else set()


def quotations(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line number, what is quoted, and whether it is a line of its own."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif line.startswith("    "):
            yield number, line.strip(), True
        elif not fenced:
            for one in INLINE.findall(line):
                yield number, one, False


def words_of(quoted: str) -> list[str]:
    try:
        return shlex.split(quoted, comments=True)
    except ValueError:  # an apostrophe of prose
        return quoted.split()


def is_placeholder(word: str) -> bool:
    return re.search(r"[<>{}*$|]|\.\.\.|[A-Z]{2,}|YOUR|NAME", word) is not None


def missing_path(tree: Tree, readme: Path, word: str) -> str | None:
    path = re.sub(r":\d+$", "", word.strip("[](),;:").rstrip("/."))
    if not path.startswith(tuple(top + "/" for top in TOPS)) or is_placeholder(path):
        return None
    for base in (*BASES, f"{readme.parent}/"):
        if any(f"{base}{path}{ending}" in tree.paths for ending in ("", ".hpp", ".cpp", ".h")):
            return None
    return f"{word}: expected a path of this tree, there is none"


def commands_of(quoted: str, is_line: bool) -> Iterator[list[str]]:
    """The commands of a line: two columns, or one behind the other."""
    for part in re.split(r"\s{2,}(?=tenon )|&&", quoted) if is_line else [quoted]:
        words = words_of(part)
        while words and re.match(r"[A-Z_]+=", words[0]):
            words = words[1:]
        yield words


def program_of(words: list[str]) -> tuple[str, int] | None:
    """Whose options the words behind are, a path of this tree or "tenon", and where it stands."""
    for i, word in enumerate(words[:2]):
        is_called = i == 0 or words[0].endswith("python")
        if is_called and (word == "tenon" or word.endswith("/tenon")):
            return "tenon", i
        if is_called and word.startswith(("scripts/", "tests/")) and not is_placeholder(word):
            return word, i
    return None


def where_options_are(program: str) -> str:
    if program == "tenon":
        return "bindings/lua"
    if program == "scripts/fetch":
        return "scripts"
    return program.rsplit("/", 1)[0] if "/" in program else program


def unknown_command(tree: Tree, behind: list[str]) -> str | None:
    known, named = tree.commands | {"plugin"}, [w for w in behind if re.fullmatch("[a-z]+", w)]
    if not tree.commands or not named or behind[0].startswith("-"):
        return None
    if named[0] != "plugin" or len(named) == 1:
        word, among = named[0], known
    else:
        word, among = named[1], tree.of_plugin
    if word in among:
        return None
    return f"tenon {' '.join(named[:2])}: expected one of {', '.join(sorted(among))}"


def faults_of_command(tree: Tree, words: list[str]) -> Iterator[str]:
    found = program_of(words)
    if found is None:
        return
    program, at = found
    behind = words[at + 1 :]
    if program == "tenon" and (fault := unknown_command(tree, behind)):
        yield fault
    known = tree.words_below(where_options_are(program))
    for word in behind:
        option = word.strip("[]().,;").split("=")[0]
        if OPTION.match(option) and option not in known:
            yield f"{program} {option}: expected an option that {program} has"
    scripts = [word for word in behind if word.endswith(".lua") and word in tree.paths]
    for setting, value in zip(behind, behind[1:], strict=False):
        key = value.split("=")[0]
        if setting != "--set" or not scripts or is_placeholder(key):
            continue
        if key not in tree.words_below(scripts[0].rsplit("/", 1)[0]):
            yield f"--set {value}: expected a setting that {scripts[0]} reads"


def missing_id(tree: Tree, word: str) -> str | None:
    match = ID.match(word)
    if not match or f"plugins/{match[1]}" not in tree.paths:
        return None
    if any(word in tree.words_below(top) for top in ("plugins", "bindings", "sdk")):
        return None
    return f"{word}: expected the id of a component, no source has it"


def violations(root: Path) -> list[str]:
    tree, found = Tree(root), []
    for path in tree.files:
        if path.suffix != ".md" or path.name == "CHANGELOG.md":
            continue
        for number, quoted, is_line in quotations(tree.text(path)):
            faults = [missing_path(tree, path, word) for word in words_of(quoted)]
            for words in commands_of(quoted, is_line):
                faults += faults_of_command(tree, words)
            if not is_line:
                faults.append(missing_id(tree, quoted))
            found += [f"{path}:{number}: {fault}" for fault in faults if fault]
    return found
