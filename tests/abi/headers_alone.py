# SPDX-License-Identifier: Apache-2.0
"""Compiles each ABI header alone, strictly: headers_alone.py STANDARD COMPILER INCLUDE_FOLDER."""

import subprocess
import sys
from pathlib import Path

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wpadded", "-Wundef", "-Werror"]


def complaint(header: str, standard: str, compiler: str, include: Path) -> str:
    language = "c++" if "++" in standard else "c"
    done = subprocess.run(
        [
            compiler,
            f"-std={standard}",
            *STRICT,
            "-x",
            language,
            "-fsyntax-only",
            "-I",
            include,
            "-",
        ],
        input=f'#include "{header}"\n#include "{header}"\n',
        capture_output=True,
        text=True,
    )
    return done.stderr if done.returncode else ""


def main(standard: str, compiler: str, folder: str) -> int:
    include = Path(folder)
    headers = sorted(str(path.relative_to(include)) for path in include.rglob("*.h"))
    complaints = [
        text for header in headers if (text := complaint(header, standard, compiler, include))
    ]
    print("\n".join(complaints) or f"{len(headers)} headers compile alone as {standard}")
    return 1 if complaints or not headers else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
