// SPDX-License-Identifier: Apache-2.0
// Products with known weights on AMX tiles, in int8 and, with precision=bf16, in bf16.

#include <utility>

#include "product.hpp"
#include "tile_step.hpp"

namespace tenon::onednn {
namespace {

// The matrices of a product; its geometry is complete but for its source and where weights lie.
struct Operands {
  View a, b;
  size_t k_axis = 0, n_axis = 0;  // of b
};

Operands operands_of(const ProductSite& site) {
  Operands found{site.lowering.view(site.product.a), site.lowering.view(site.product.b)};
  const size_t rank = found.b.dims.size();
  found.k_axis = site.product.k_axis(rank);
  found.n_axis = site.product.n_axis(rank);
  return found;
}

void build_product(const ProductSite& site,
                   Operands operands,
                   ElementType type,
                   GemmStep step,
                   GemmEpilogue taken) {
  Lowering& lowering = site.lowering;
  View& b = operands.b;
  if (type == ElementType::kBf16) {
    step.src = lowering.read_row_major(site.product.a, ElementType::kBf16);
    b = real_weights(lowering, b);
  } else {
    step.src = lowering.read_stored(site.product.a, row_major_strides(operands.a.dims), type);
  }
  step.weights = {.view = b, .n_stride = b.strides[operands.n_axis]};
  for (int64_t i = 0; i < step.args.k; ++i)
    step.weights.k_places.push_back(i * b.strides[operands.k_axis]);
  build_tile_step(lowering, step, std::move(taken));
}

}  // namespace

Offer offer_tile_product(const ProductSite& site) {
  const Lowering& lowering = site.lowering;
  if (!computes_in_tiles()) return refused(kNoTiles);
  if (site.product.transpose_a) return refused("the first operand is transposed");
  const Operands operands = operands_of(site);
  if (!is_one_matrix(operands.b)) return refused("the second operand is no single matrix");
  const auto type =
      type_of_left(lowering, operands.a, operands.b, static_cast<int>(operands.n_axis));
  if (!type) return refused(kNoOperands);
  const int64_t k = operands.b.dims[operands.k_axis], n = operands.b.dims[operands.n_axis];
  if (!has_known_row(lowering, site.product.bias, n)) return refused("the bias is no known row");
  GemmStep step{.node = site.product.node, .bias = site.product.bias};
  step.args.m = operands.a.count() / k;
  step.args.n = n;
  step.args.k = k;
  step.args.a.stride = k;
  step.dst_strides = row_major_strides(lowering.graph().values[site.epilogue.result].dims);
  step.dst_row = n;
  if (std::string why = why_not_rows(step, *type); !why.empty()) return refused(std::move(why));
  if (std::string why = why_slower_product(step, *type, site.epilogue); !why.empty())
    return refused(std::move(why));
  GemmEpilogue taken = gemm_epilogue_of(lowering, step, site.epilogue);
  if (taken.epilogue.nodes.size() != site.epilogue.nodes.size()) return refused(kPartOfEpilogue);
  return accepted([&site, operands, type = *type, step, taken] {
    build_product(site, operands, type, step, taken);
  });
}

}  // namespace tenon::onednn
