// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step of a product on AMX tiles (kernels/tile_product.h), and what products and convolutions
// ask before they become one. What follows the sums is taken along (gemm_epilogue.hpp); where the
// kernel knows only a part of it, all is left to oneDNN.

#include <optional>

#include "choice.hpp"
#include "gemm_epilogue.hpp"
#include "int8_product.hpp"
#include "kernels/tile_product.h"

namespace tenon::onednn {

// How the tiles find the rows of a convolution where they are not gathered.
struct TileForm {
  const kernels::TileLines* lines = nullptr;
  const kernels::TileTaps* taps = nullptr;
};
void build_tile_step(Lowering& lowering, GemmStep& step, GemmEpilogue taken, TileForm form = {});

// In which type the tiles take the operands: those of 8 bits as they are, real ones in bf16.
std::optional<ElementType> type_of_left(const Lowering& lowering,
                                        const View& left,
                                        const View& weights,
                                        int column_axis);
// The floats that weights are or stand for.
View real_weights(Lowering& lowering, const View& weights);
bool has_gelu(const Epilogue& epilogue);
// Why the tiles do not take the rows of a product. Of a step it is enough to know the sizes.
std::string why_not_rows(const GemmStep& step, ElementType type);
// Why oneDNN keeps a product of rows where they lie: its bf16 ones of long rows are faster but for
// their GELU (tests/bench/README.md).
std::string why_slower_product(const GemmStep& step, ElementType type, const Epilogue& epilogue);

constexpr const char* kNoTiles = "this CPU has no AMX tiles";
constexpr const char* kNoOperands =
    "neither two operands in 8 bits nor two in bf16, or unknown weights";
constexpr const char* kPartOfEpilogue = "the kernel knows only a part of what follows";

}  // namespace tenon::onednn
