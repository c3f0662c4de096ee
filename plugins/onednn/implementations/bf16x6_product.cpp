// SPDX-License-Identifier: Apache-2.0
// Products in f32 on AMX tiles, and convolutions with constant weights: each number is the sum of
// three bf16 parts (kernels/bf16x6_product.h).

#include "kernels/bf16x6_product.h"

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "conv_site.hpp"
#include "cpu.hpp"
#include "float_step.hpp"
#include "product.hpp"
#include "tile_step.hpp"

namespace tenon::onednn {
namespace {

// Of weights that another plan has looked at nothing is read: their pages may have gone back to the
// file.
std::string why_not_numbers(Lowering& lowering, const View& weights) {
  const auto* numbers = static_cast<const float*>(lowering.constant_data(weights));
  const std::shared_ptr<const void> fact = lowering.weights().made(
      numbers, weights.bytes(), "have bf16 parts", sizeof(bool),
      [&](void* to) { new (to) bool(kernels::have_parts(numbers, weights.count())); });
  lowering.plan().facts.push_back(fact);
  const bool have_parts = *static_cast<const bool*>(fact.get());
  return have_parts ? "" : "weights that are not finite, or almost too large";
}

// By sizes alone: how operands lie, as what follows, may differ with and without recomputation, and
// a step has the same bits. Of computed ones onednn/computed.py has the shapes.
std::string why_slower(const Lowering& lowering, const FloatStep& made) {
  constexpr int64_t kLeastComputedRows = 32;
  const auto& args = made.step.args;
  const bool is_fast = is_faster_on_tiles(lowering, args.m, args.n, args.k) &&
                       (!made.right || args.m >= kLeastComputedRows);
  return is_fast ? "" : "too few rows or columns for what is split, or rows of 32 elements";
}

std::string find_conv_step(const ConvSite& site, FloatStep* found) {
  const Lowering& lowering = site.lowering;
  const Node& node = site.node();
  const View& weights = lowering.view(node.inputs[1]);
  if (std::string why = why_not_floats(lowering, weights); !why.empty()) return why;
  if (std::string why = why_not_one_product(site); !why.empty()) return why;
  found->step = conv_step(lowering, site.index);
  found->left_stride = found->step.args.k;
  const bool has_whole_steps = weights.dims[1] % kernels::kSplitDepth == 0;
  if (found->step.args.a.has_windows && !has_whole_steps)
    return "windows of channels that are no multiple of 32";
  found->taken = gemm_epilogue_of(lowering, found->step, site.epilogue);
  const bool is_whole = found->taken.epilogue.nodes.size() == site.epilogue.nodes.size();
  return is_whole ? "" : kPartOfEpilogue;
}

// read: the source, and what depends on it, when the step is built.
template <class Site, class Read>
Offer offered(const Site& site, FloatStep made, const Read& read) {
  if (std::string why = why_not_numbers(site.lowering, made.step.weights.view); !why.empty())
    return refused(std::move(why));
  return accepted_unless(why_slower(site.lowering, made), [&site, made, read]() mutable {
    read(site, &made.step);
    build_float_step(site.lowering, std::move(made), FloatKernel::kTiles);
  });
}

// A matrix as the kernel reads it where it lies.
struct Order {
  int64_t stride = 0;  // elements between lines, whose elements lie side by side
  bool is_transposed = false;
};
// strides: of rows and columns.
Order order_of(int64_t row_stride, int64_t column_stride) {
  const bool has_rows = column_stride == 1;
  return {has_rows ? row_stride : column_stride, !has_rows};
}

// Both operands are computed: neither is packed.
class ComputedProduct {
 public:
  explicit ComputedProduct(const ProductSite& site)
      : lowering_(site.lowering),
        product_(site.product),
        a_(lowering_.view(product_.a)),
        b_(lowering_.view(product_.b)) {}

  std::string why_not() {
    if (lowering_.real_type() != ElementType::kF32)
      return "floating-point numbers are kept in bf16";
    if (!holds_floats(a_) || !holds_floats(b_)) return "an operand is not in floating point";
    if (a_.dims.size() < 2 || b_.dims.size() < 2) return "a vector";
    if (!is_one_matrix(b_)) return "the second operand is no single matrix";
    if (a_.count() == 0 || b_.count() == 0) return "an operand without elements";
    folds_ = !is_one_matrix(a_);
    if (folds_ && product_.transpose_a) return "a batch of matrices, transposed";
    a_ = planned_real_matrix(lowering_, product_.a);
    b_ = planned_real_matrix(lowering_, product_.b);
    return "";
  }

  FloatStep step(const Epilogue& epilogue) const {
    FloatStep made;
    const size_t rank = b_.dims.size();
    const size_t k_axis = product_.k_axis(rank), n_axis = product_.n_axis(rank);
    made.step.node = product_.node;
    made.step.bias = product_.bias;
    made.step.args.k = b_.dims[k_axis];
    made.step.args.n = made.step.dst_row = b_.dims[n_axis];
    made.step.args.m = a_.count() / made.step.args.k;
    made.step.dst_strides = row_major_strides(lowering_.graph().values[epilogue.result].dims);
    const Order left = left_order(), right = order_of(b_.strides[k_axis], b_.strides[n_axis]);
    made.left_stride = left.stride;
    made.is_left_transposed = left.is_transposed;
    made.right = b_;
    made.right_order = {.columns = made.step.args.n,
                        .stride = right.stride,
                        .is_transposed = right.is_transposed,
                        .has_parts = false};
    made.taken = gemm_epilogue_of(lowering_, made.step, epilogue);
    return made;
  }

  void build(FloatStep made) {
    made.step.src = folds_ ? lowering_.read_row_major(product_.a, ElementType::kF32)
                           : real_matrix(lowering_, product_.a);
    made.right = real_matrix(lowering_, product_.b);
    build_float_step(lowering_, std::move(made), FloatKernel::kTiles);
  }

 private:
  Order left_order() const {
    const size_t rank = a_.dims.size();
    const size_t row = product_.transpose_a ? rank - 1 : rank - 2;
    const size_t column = product_.transpose_a ? rank - 2 : rank - 1;
    if (folds_) return {a_.dims[column], false};
    return order_of(a_.strides[row], a_.strides[column]);
  }

  Lowering& lowering_;
  const Product& product_;
  View a_, b_;
  bool folds_ = false;  // the rows of all batches are one product
};

Offer offer_computed_product(const ProductSite& site) {
  ComputedProduct product(site);
  if (std::string why = product.why_not(); !why.empty()) return refused(std::move(why));
  const int64_t n = site.lowering.graph().values[site.node().outputs[0]].dims.back();
  if (!has_known_row(site.lowering, site.product.bias, n))
    return refused("the bias is no known row");
  // What follows does not decide which kernel multiplies (why_slower).
  FloatStep made = product.step(site.epilogue);
  if (made.taken.epilogue.nodes.size() != site.epilogue.nodes.size())
    made = product.step(site.alone);
  return accepted_unless(why_slower(site.lowering, made),
                         [product, made]() mutable { product.build(std::move(made)); });
}

}  // namespace

Offer offer_bf16x6_product(const ProductSite& site) {
  if (!computes_in_tiles()) return refused(kNoTiles);
  if (!site.lowering.is_constant_view(site.lowering.view(site.product.b)))
    return offer_computed_product(site);
  FloatStep made;
  if (std::string why = find_float_step(site, &made); !why.empty()) return refused(std::move(why));
  return offered(site, made, [](const ProductSite& built, GemmStep* step) {
    step->src = built.lowering.read_row_major(built.product.a, ElementType::kF32);
  });
}

Offer offer_bf16x6_conv(const ConvSite& site) {
  if (!computes_in_tiles()) return refused(kNoTiles);
  FloatStep made;
  if (std::string why = find_conv_step(site, &made); !why.empty()) return refused(std::move(why));
  return offered(site, made, [](const ConvSite& built, GemmStep* step) {
    const int source = built.node().inputs[0];
    step->src =
        built.lowering.read(source, ElementType::kF32, channels_last_strides(built.dims(source)));
    add_weights(built.lowering, built.epilogue, step);
  });
}

}  // namespace tenon::onednn
