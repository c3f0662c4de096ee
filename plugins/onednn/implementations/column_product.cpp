// SPDX-License-Identifier: Apache-2.0
// A product of f32 with one column, or one row, whose sums run along both operands as they lie: a
// scalar product, a matrix times a vector. A primitive multiplies as if there were a register of
// columns.

#include <array>
#include <string>

#include "kernels/exact_product.h"
#include "product.hpp"

namespace tenon::onednn {
namespace {

// Of a matrix that is larger, every form is as fast as memory.
constexpr int64_t kMostProducts = int64_t{1} << 20;

// Strides of axes without a second element say nothing.
int64_t step_of(const View& view, size_t axis) {
  return view.dims[axis] == 1 ? 1 : view.strides[axis];
}

}  // namespace

Offer offer_column_product(const ProductSite& site) {
  const int value = site.node().outputs[0];
  View a, b;
  if (const std::string why = plain_operands(site, &a, &b); !why.empty()) return refused(why);
  const size_t rows_axis = a.dims.size() - 2, columns_axis = b.dims.size() - 1;
  const bool is_column = b.dims[columns_axis] == 1;
  if (!is_column && a.dims[rows_axis] != 1) return refused("neither one row nor one column");
  if (step_of(a, rows_axis + 1) != 1 || step_of(b, columns_axis - 1) != 1)
    return refused("an operand whose sums do not run along it");
  kernels::ExactProductArgs args{.type = ElementType::kF32};
  args.m = is_column ? a.dims[rows_axis] : b.dims[columns_axis];
  args.a_row = is_column ? a.strides[rows_axis] : b.strides[columns_axis];
  args.k = a.dims[rows_axis + 1];
  args.n = args.a_k = args.b_k = args.b_column = 1;
  if (args.m * args.k > kMostProducts)
    return refused("more than " + std::to_string(kMostProducts) + " products");
  return accepted([&site, a, b, args, is_column, value] {
    Lowering& l = site.lowering;
    const Dims& dims = l.graph().values[value].dims;
    const View dst = l.make(value, ElementType::kF32, row_major_strides(dims));
    Step step{.name = site.node().name, .kernel = "tenon:column_product", .always_succeeds = true};
    step.flops = 2.0 * static_cast<double>(args.m * args.k);
    step.bytes = static_cast<double>(a.bytes() + b.bytes() + dst.bytes());
    step.places = {place_of(is_column ? a : b), place_of(is_column ? b : a), place_of(dst)};
    step.kernel_function = [args](const kernels::Context& context,
                                  void* const* pointers) -> const char* {
      static constexpr std::array<int64_t, 1> kStart = {0};
      kernels::ExactProductArgs now = args;
      now.a_starts = now.b_starts = kStart;
      now.a = pointers[0];
      now.b = pointers[1];
      now.dst = pointers[2];
      kernels::exact_product(context, now);
      return nullptr;
    };
    l.add_step(std::move(step));
  });
}

}  // namespace tenon::onednn
