# SPDX-License-Identifier: Apache-2.0
"""Puts the C++ files of each target into batches that are compiled as one (TenonBatches.cmake).

Files of one batch share their unnamed namespaces and see each other's headers. So that no file
means anything else in a batch than alone, a name that a file keeps to itself (in an unnamed
namespace, as static, as an alias) and that another file of the batch, or a header of it, says is
renamed within its file, by a macro around the `#include`. All headers are read before the first of
these macros. A name that a macro cannot rename (it is a member's as well, a macro makes text of it,
a header of its own has an overload) parts the files that say it. What is read is the first column,
where this tree's format has the declarations of a namespace.
"""

import os
import pickle
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
DECLARATIONS = (TYPE, ALIAS, OTHER, LAST)
MORE = re.compile(r", (\w+) = ")  # the second constant of a line
ENUM = re.compile(r"^enum (?:\w+ )?(?:: \w+ )?\{([^}]*)\}", re.MULTILINE)
ENUMERATOR = re.compile(r"(?:^|,)\s*(\w+)")
WORD = re.compile(r"\w+")
RAW = re.compile(r'R"([^(\s]*)\(.*?\)\1"', re.DOTALL)  # a template of a file, say
ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\) ")
STRINGS_AND_COMMENTS = re.compile(r'//.*|"(?:[^"\\]|\\.)*"')
INCLUDE = re.compile(r'#include\s+(?:<([^>]+)>|"([^"]+)")')
FUNCTION = re.compile(r"^[A-Za-z][^;={(\n]*?[ &*](\w+)\(", re.MULTILINE)
OVERRIDE = re.compile(r"(\w+)\([^;{]*\)[^;{]*\boverride\b")
# A macro would rename the member, the name in another namespace or the text as well.
MEMBER = re.compile(r"(?:\.|->|(\w*)::)(?=\s*~?(\w+))")
MADE_TEXT = re.compile(r"\b(?!EXPECT_|ASSERT_)[A-Z][A-Z0-9_]+\(\s*(\w+)")
NAMESPACE = re.compile(r"namespace (?:\w+::)*(\w+) \{")
DIRECTIVE = re.compile(r"^#(?!include).*", re.MULTILINE)


def declared(text: str) -> set[str]:
    """The names that a file keeps to itself."""
    names, unnamed = set(), False
    for line in ATTRIBUTE.sub("", text).splitlines():
        if line.startswith("namespace {"):
            unnamed = True
        elif line.startswith("}  // namespace") and line.strip() == "}  // namespace":
            unnamed = False
        elif found := MACRO.match(line):
            names.add(found[1])
        elif unnamed or line.startswith(("static ", "using ", "namespace ")):
            found = next(filter(None, (pattern.match(line) for pattern in DECLARATIONS)), None)
            if found:
                names.add(found[1])
                names |= set(MORE.findall(line)) if found.re is OTHER else set()
    for values in ENUM.findall(text):
        names |= set(ENUMERATOR.findall(values))
    return names - {"tenon", "__attribute__", "static_assert"}


@dataclass
class Facts:
    """What the text of one file says, whoever includes it."""

    said: set[str]
    functions: set[str]
    macros: set[str]
    included: list[str]  # names of headers, as they are written
    declared: set[str] = field(default_factory=set)  # of sources alone, from here on
    fixed: set[str] = field(default_factory=set)  # names that a macro cannot rename
    headers: list[tuple[str, bool]] = field(default_factory=list)  # outside of #if; in <>
    is_alone: bool = False  # a macro of its own is meant for a header


@dataclass
class File:
    path: Path
    declared: set[str]
    said: set[str]
    fixed: set[str]  # of the declared ones: not to be renamed
    headers: list[str]  # as the batch includes them
    seen: set[str]  # headers of the tree that the file sees
    called: set[str]  # what it and its headers say of their functions: no other may overload them
    alone: bool


class Reader:
    """Facts of files. Those of files that have not changed come from the run before."""

    def __init__(self, kept: Path | None = None) -> None:
        self.kept = kept
        own = os.stat(__file__)
        self.version = (sys.version, own.st_mtime_ns, own.st_size)
        self.old: dict[str, tuple[tuple[int, int], Facts]] = {}
        self.new: dict[str, tuple[tuple[int, int], Facts]] = {}
        if kept is None or not kept.exists():
            return
        try:
            version, old = pickle.loads(kept.read_bytes())
            if version == self.version:
                self.old = old
        except (OSError, ValueError, TypeError, EOFError, AttributeError, pickle.PickleError):
            pass  # damaged: all is read

    def facts(self, path: str) -> Facts:
        if path not in self.new:
            about = os.stat(path)
            stamp = (about.st_mtime_ns, about.st_size)
            known = self.old.get(path)
            if known is None or known[0] != stamp:
                text = Path(path).read_text()
                is_source = path.endswith(".cpp")
                known = (stamp, source_facts(text) if is_source else header_facts(text))
            self.new[path] = known
        return self.new[path][1]

    def keep(self) -> None:
        if self.kept is not None and self.new != self.old:
            made = self.kept.with_suffix(f".{os.getpid()}")
            made.write_bytes(pickle.dumps((self.version, self.new), pickle.HIGHEST_PROTOCOL))
            made.replace(self.kept)


class Headers:
    """The headers of the tree: what each says, and which others come with it."""

    def __init__(self, root: Path, reader: Reader | None = None) -> None:
        self.root = root
        self.reader = reader or Reader()
        self.named: dict[str, list[str]] = {}
        for folder, inner, files in os.walk(root):
            inner[:] = [name for name in inner if name not in ("build", ".git", ".venv", ".cache")]
            for name in files:
                if name.endswith((".h", ".hpp")):
                    self.named.setdefault(name, []).append(os.path.join(folder, name))
        self.behind: dict[str, list[str]] = {}

    def find(self, name: str, folder: str) -> list[str]:
        """What `#include` of this name in `folder` may mean: the one there, or any so named."""
        found = self.named.get(name.rsplit("/", 1)[-1], [])
        beside = os.path.normpath(os.path.join(folder, name))
        tail = "/" + name.replace("../", "")
        return [beside] if beside in found else [path for path in found if path.endswith(tail)]

    def included(self, path: str) -> list[str]:
        if path not in self.behind:
            folder, names = os.path.dirname(path), self.reader.facts(path).included
            self.behind[path] = [header for name in names for header in self.find(name, folder)]
        return self.behind[path]

    def seen(self, path: str) -> set[str]:
        seen: set[str] = set()
        left = list(self.included(path))
        while left:
            header = left.pop()
            if header not in seen:
                seen.add(header)
                left += self.included(header)
        return seen

    def said(self, headers: set[str]) -> set[str]:
        return set().union(*(self.reader.facts(header).said for header in headers))

    def functions(self, headers: set[str]) -> set[str]:
        return set().union(*(self.reader.facts(header).functions for header in headers))

    def macros(self, headers: set[str]) -> set[str]:
        return set().union(*(self.reader.facts(header).macros for header in headers))


def words(text: str) -> set[str]:
    return set(WORD.findall(STRINGS_AND_COMMENTS.sub("", text)))


def header_facts(text: str) -> Facts:
    included = [found[1] or found[2] for found in INCLUDE.finditer(text)]
    return Facts(words(text), set(FUNCTION.findall(text)), set(MACRO.findall(text)), included)


def source_facts(text: str) -> Facts:
    text = RAW.sub('""', text)
    code = STRINGS_AND_COMMENTS.sub("", text)
    facts = header_facts(text)
    facts.declared = declared(text)
    own = set(NAMESPACE.findall(code))
    members = {name for space, name in MEMBER.findall(code) if space not in own}
    facts.fixed = members | set(MADE_TEXT.findall(code)) | set(OVERRIDE.findall(code)) | own
    for line in DIRECTIVE.findall(code):
        facts.fixed |= set(WORD.findall(line))
    quoted = [found[2] for found in INCLUDE.finditer(text) if found[2]]
    if any(not name.endswith((".h", ".hpp")) for name in quoted):
        facts.fixed |= facts.declared  # text that is included in place says more
    facts.headers = headers_of(text)
    facts.is_alone = -1 < text.find("#define ") < text.rfind("#include ")
    return facts


def headers_of(text: str) -> list[tuple[str, bool]]:
    headers, depth = [], 0
    for line in text.splitlines():
        if line.startswith("#if"):
            depth += 1
        elif line.startswith("#endif"):
            depth -= 1
        elif depth == 0 and (found := INCLUDE.match(line)):
            name = found[1] or found[2]
            if found[1] or name.endswith((".h", ".hpp")):
                headers.append((name, found[1] is not None))
    return headers


def read(path: Path, tree: Headers) -> File:
    facts, seen = tree.reader.facts(str(path)), tree.seen(str(path))
    functions = tree.functions(seen)  # an overload of a header's function is called by one name
    headers = []
    for name, is_system in facts.headers:
        near = path.parent / name
        if not is_system and near.exists():
            name = near.resolve().relative_to(tree.root).as_posix()
        headers.append(f"<{name}>" if is_system else f'"{name}"')
    return File(
        path,
        facts.declared,
        facts.said,
        facts.declared & (facts.fixed | functions),
        headers,
        seen,
        (facts.said | tree.said(seen)) & functions,
        facts.is_alone,
    )


@dataclass
class Batch:
    tree: Headers
    files: list[File] = field(default_factory=list)

    def takes(self, file: File, size: int) -> bool:
        if len(self.files) == size or file.alone or self.files[0].alone:
            return False
        if any(a.fixed & file.said or file.fixed & a.said for a in self.files):
            return False
        seen = set().union(*(a.seen for a in self.files))
        pairs = [(file, seen - file.seen), *((a, file.seen - a.seen) for a in self.files)]
        return not any(
            one.fixed & self.tree.said(unseen)
            or one.said & self.tree.macros(unseen)
            or one.called & self.tree.functions(unseen)
            for one, unseen in pairs
        )

    def renamed(self, file: File) -> list[str]:
        others = [other for other in self.files if other is not file]
        said = set().union(*(other.said for other in others))
        unseen = set().union(*(other.seen for other in others)) - file.seen
        return sorted(file.declared & (said | self.tree.said(unseen)))

    def text(self) -> str:
        """From the root, so that worktrees share one compiler cache."""
        headers = dict.fromkeys(header for file in self.files for header in file.headers)
        lines = [f"#include {header}" for header in headers]
        for i, file in enumerate(self.files):
            names = self.renamed(file)
            lines += [f"#define {name} {name}_of_{file.path.stem}_{i}" for name in names]
            lines.append(f'#include "{file.path.relative_to(self.tree.root).as_posix()}"')
            lines += [f"#undef {name}" for name in names]
        return "\n".join(lines) + "\n"


def batches_of(files: list[File], size: int, tree: Headers) -> list[Batch]:
    """Batches of at most `size` files, which come in the order given."""
    batches: list[Batch] = []
    for file in files:
        room = (batch for batch in batches if batch.takes(file, size))
        batch = next(room, None)
        if batch is None:
            batches.append(batch := Batch(tree))
        batch.files.append(file)
    return batches


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:  # what did not change is not compiled again
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main(root: Path, size: int, listed: Path) -> None:
    """listed: a line for each target, `name|build folder|sources that stay|sources to batch`."""
    out = []
    reader = Reader(listed.with_suffix(".facts"))
    tree = Headers(root, reader)
    for line in listed.read_text().splitlines():
        target, folder, kept, given = line.split("|")
        sources = kept.split(",") if kept else []
        files = [read(Path(file), tree) for file in given.split(",")]
        for i, batch in enumerate(batches_of(files, size, tree)):
            if len(batch.files) == 1:
                sources.append(str(batch.files[0].path))
                continue
            path = Path(folder) / f"{target}_batch_{i}.cpp"
            write(path, batch.text())
            sources.append(str(path))
        text = ";".join(sources)
        out.append(f'set_property(TARGET {target} PROPERTY SOURCES "{text}")\n')
    write(listed.with_suffix(".cmake"), "".join(out))
    reader.keep()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
