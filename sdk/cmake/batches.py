# SPDX-License-Identifier: Apache-2.0
"""Puts the C++ files of each target into batches that are compiled as one (TenonBatches.cmake).

Files of one batch share their unnamed namespaces. So that no file means anything else in a
batch than alone, a file goes into the first batch that has room and where no file says a word
that another one declares in an unnamed namespace, as static or as a macro. What is read is the
first column, where this tree's format has the declarations of a namespace.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

TYPE = re.compile(r"(?:struct|class|enum class|enum|union|namespace)\s+(?:\[\[\w+\]\]\s*)?(\w+)")
ALIAS = re.compile(r"using\s+(\w+)\s*=")
MACRO = re.compile(r"#define\s+(\w+)")
OTHER = re.compile(
    r"(?!#|//|using|template|return|static_assert)[A-Za-z_\[][^=;{(]*?[\s*&](\w+)\s*(?:[({=;\[]|$)"
)
LAST = re.compile(r"([a-z_]\w*)\(")  # a function whose type stands on the line before
WORD = re.compile(r"\w+")
STRINGS_AND_COMMENTS = re.compile(r'//.*|"(?:[^"\\]|\\.)*"')


def declared(text: str) -> set[str]:
    """The names that a file keeps to itself."""
    names, unnamed = set(), False
    for line in text.splitlines():
        if line.startswith("namespace {"):
            unnamed = True
        elif line.startswith("}  // namespace") and line.strip() == "}  // namespace":
            unnamed = False
        elif found := MACRO.match(line):
            names.add(found[1])
        elif unnamed or line.startswith(("static ", "using ", "namespace ")):
            for pattern in (TYPE, ALIAS, OTHER, LAST):
                if found := pattern.match(line):
                    names.add(found[1])
    return names - {"tenon"}


def said(text: str) -> set[str]:
    return set(WORD.findall(STRINGS_AND_COMMENTS.sub("", text)))


@dataclass
class Batch:
    declared: set[str] = field(default_factory=set)
    said: set[str] = field(default_factory=set)
    files: list[Path] = field(default_factory=list)

    def takes(self, names: set[str], words: set[str]) -> bool:
        return not self.declared & words and not self.said & names

    def add(self, file: Path, names: set[str], words: set[str]) -> None:
        self.files.append(file)
        self.declared |= names
        self.said |= words


def batches_of(files: list[Path], size: int) -> list[Batch]:
    """At most `size` files each, in the order given."""
    batches: list[Batch] = []
    for file in files:
        text = file.read_text()
        names, words = declared(text), said(text)
        room = (batch for batch in batches if len(batch.files) < size and batch.takes(names, words))
        batch = next(room, None)
        if batch is None:
            batches.append(batch := Batch())
        batch.add(file, names, words)
    return batches


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:  # what did not change is not compiled again
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main(root: Path, size: int, listed: Path) -> None:
    """listed: a line for each target, `name|build folder|sources that stay|sources to batch`."""
    out = []
    for line in listed.read_text().splitlines():
        target, folder, kept, given = line.split("|")
        sources = kept.split(",") if kept else []
        for i, batch in enumerate(batches_of([Path(file) for file in given.split(",")], size)):
            if len(batch.files) == 1:
                sources.append(str(batch.files[0]))
                continue
            path = Path(folder) / f"{target}_batch_{i}.cpp"
            # From the root, so that worktrees share one compiler cache.
            lines = [f'#include "{file.relative_to(root).as_posix()}"\n' for file in batch.files]
            write(path, "".join(lines))
            sources.append(str(path))
        text = ";".join(sources)
        out.append(f'set_property(TARGET {target} PROPERTY SOURCES "{text}")\n')
    write(listed.with_suffix(".cmake"), "".join(out))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
