# SPDX-License-Identifier: Apache-2.0
"""No test vanishes: every test file is named by a CMakeLists.txt or found by a run of its whole
folder, every folder of tests is added, and every plugin has tests."""

import re
from pathlib import Path

import sources

TEST = re.compile(r"(?:\w+_test|test_\w+)\.(?:cpp|c|py|lua)")
# Plugins whose tests live elsewhere, because what they promise shows there.
ELSEWHERE = {
    "kernels": "tests/plugins/seams/kernel_test.cpp",
    "layers": "tests/bindings/python/layers_test.py",
    "linalg": "tests/bindings/python/linalg_test.py",
    "reference": "tests/host/plan/expression_test.cpp",
}
TESTS = Path("tests")


def words(text: str) -> set[str]:
    """What a list of CMake names, without comments; its own folder as "."."""
    here = re.sub(r"#.*", "", text).replace("${CMAKE_CURRENT_SOURCE_DIR}", ".")
    return {word.removeprefix("./") for word in re.split(r"[\s()\"]+", here)}


def folders_of_pytest(text: str) -> set[str]:
    commands = re.findall(r"add_test\((.*?)\)", text, re.DOTALL)
    return set().union(*(words(command) for command in commands if "pytest" in command))


def is_named(test: Path, lists: dict[Path, str]) -> bool:
    """By a list of its own folder or of one above: with its ending, or without."""
    for folder in test.parents:
        text = lists.get(folder)
        if text is None:
            continue
        name = test.relative_to(folder)
        if "${test}_test." in text and test.stem.removesuffix("_test") in words(text):
            return True
        if {str(name), str(name.with_suffix("")), test.name, test.stem} & words(text):
            return True
        if test.suffix == ".py" and name.parent.as_posix() in folders_of_pytest(text):
            return True
    return False


def violations(root: Path) -> list[str]:
    files = sources.files(root)
    lists = {
        path.parent: (root / path).read_text()
        for path in files
        if path.parts[0] == "tests" and path.name == "CMakeLists.txt"
    }
    if not lists:
        return []
    tests = [path for path in files if path.parts[0] == "tests" and TEST.fullmatch(path.name)]
    found = [
        f"{test}: expected its name in a CMakeLists.txt: it is never run"
        for test in tests
        if not is_named(test, lists)
    ]
    for folder in sorted(lists):
        above = [parent for parent in folder.parents if parent in lists]
        added = any(str(folder.relative_to(parent)) in words(lists[parent]) for parent in above)
        if above and not added:
            found.append(f"{folder}: expected to be added by tests/CMakeLists.txt: it is never run")
    for plugin in sorted({path.parts[1] for path in files if is_of_plugin(path)}):
        home = Path(ELSEWHERE.get(plugin, TESTS / "plugins" / plugin))
        if not any(test == home or test.is_relative_to(home) for test in tests):
            found.append(f"plugins/{plugin}: expected a test in {home}")
    return found


def is_of_plugin(path: Path) -> bool:
    return path.parts[0] == "plugins" and len(path.parts) > 2 and path.suffix in sources.C_FAMILY
