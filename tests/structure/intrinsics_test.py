# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import intrinsics
from planted import only, write


def test_instruction_sets_are_files_of_their_own(tmp_path: Path) -> None:
    kernels = "plugins/onednn/kernels"
    write(tmp_path, f"{kernels}/level/register_wide.h", "#include <immintrin.h>\n")
    write(tmp_path, f"{kernels}/amx/tiles.h", "#include <immintrin.h>\n")
    assert intrinsics.violations(tmp_path) == []

    write(tmp_path, f"{kernels}/level/norm.cpp", "#include <vector>\n#include <arm_neon.h>\n")
    assert "norm.cpp:2: includes <arm_neon.h>" in only(intrinsics.violations(tmp_path))
