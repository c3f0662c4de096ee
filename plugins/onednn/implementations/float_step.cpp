// SPDX-License-Identifier: Apache-2.0
#include "float_step.hpp"

#include <string>
#include <utility>

#include "cpu.hpp"
#include "kernels/bf16x6_product.h"
#include "kernels/float_product.h"
#include "kernels/tile_product.h"

namespace tenon::onednn {
namespace {

// Where a step finds what it is given when it runs.
enum Operand : size_t { kSource, kResult, kWeights, kScales, kBias, kOthers };

void set_arguments(void* const* pointers, kernels::ProductResult* to) {
  to->dst.data = pointers[kResult];
  to->scales = static_cast<const float*>(pointers[kScales]);
  to->bias = static_cast<const float*>(pointers[kBias]);
}

class StepBuilder {
 public:
  StepBuilder(Lowering& lowering, FloatStep made, FloatKernel kernel)
      : lowering_(lowering),
        made_(std::move(made)),
        step_(made_.step),
        taken_(made_.taken),
        kernel_(kernel) {}

  void build() {
    const int result = taken_.epilogue.result;
    if (taken_.epilogue.norm != kNone) step_.norm = channel_norm(lowering_, taken_.epilogue.norm);
    View dst{
        .type = taken_.epilogue.quant ? taken_.epilogue.quant_type : lowering_.stored_type(result),
        .dims = lowering_.graph().values[result].dims,
        .strides = step_.dst_strides};
    const std::vector<Place> others = bind(lowering_, taken_);
    const View b = made_.right ? *made_.right : packed();
    dst.buffer = memory_of(dst, b, others);
    const EpilogueRows rows =
        epilogue_rows(lowering_, step_, taken_, kernels::float_columns(step_.args.n));
    Step made{.name = lowering_.graph().nodes[step_.node].name};
    made.flops = 2.0 * static_cast<double>(step_.args.m * step_.args.n * step_.args.k);
    made.bytes = static_cast<double>(step_.src.bytes() + dst.bytes() + b.bytes());
    made.places = {place_of(step_.src), place_of(dst), place_of(b), place_of(rows.scales),
                   place_of(rows.bias)};
    made.places.insert(made.places.end(), others.begin(), others.end());
    made.always_succeeds = true;
    if (kernel_ == FloatKernel::kTiles)
      set_tiles(dst, &made);
    else
      set_vectors(dst, &made);
    lowering_.add_step(std::move(made));
    lowering_.set_view(result, dst);
    mark_absorbed(lowering_, taken_.epilogue);
  }

 private:
  // On tiles a residual is overwritten where that saves memory traffic: where a thread reads and
  // writes rows of its own.
  int memory_of(const View& dst, const View& b, const std::vector<Place>& others) {
    const auto& args = step_.args;
    const bool has_own_rows =
        kernel_ == FloatKernel::kTiles && kernels::divides_tile_rows(args.m, args.n, args.k);
    if (!has_own_rows) return lowering_.scratch(dst.bytes());
    return result_memory(lowering_, taken_, others, {place_of(step_.src), place_of(b)}, dst);
  }

  void set_vectors(const View& dst, Step* made) {
    kernels::FloatProductArgs args;
    args.m = step_.args.m;
    args.n = step_.args.n;
    args.k = args.a_stride = step_.args.k;
    set_result(taken_, dst, step_.dst_row, &args);
    shorten_gelu(taken_.ops, args.dst);
    made->kernel = "tenon:float_product";
    made->kernel_function = [args, ops = taken_.ops](const kernels::Context& context,
                                                     void* const* pointers) -> const char* {
      kernels::FloatProductArgs call = args;
      call.a = static_cast<const float*>(pointers[kSource]);
      call.b = static_cast<const float*>(pointers[kWeights]);
      set_arguments(pointers, &call);
      const BoundOps bound(ops, pointers + kOthers, &call);
      kernels::float_product(context, call);
      return nullptr;
    };
  }

  void set_tiles(const View& dst, Step* made) {
    kernels::SplitProductArgs args;
    args.m = step_.args.m;
    args.n = step_.args.n;
    args.k = step_.args.k;
    args.a_stride = made_.left_stride;
    args.a_is_transposed = made_.is_left_transposed;
    args.has_windows = step_.args.a.has_windows;
    args.windows = step_.args.a.windows;
    const kernels::SplitRight panels{
        .columns = panel(), .group = panel() * args.k, .stride = panel()};
    args.b = made_.right ? made_.right_order : panels;
    args.cut = kernels::cut_product(args.m, args.n, args.k, lowering_.options().threads);
    set_result(taken_, dst, step_.dst_row, &args.epilogue);
    shorten_gelu(taken_.ops, args.epilogue.dst);
    made->kernel = "tenon:amx_bf16x6";
    made->kernel_function = [args, ops = taken_.ops](const kernels::Context& context,
                                                     void* const* pointers) -> const char* {
      kernels::SplitProductArgs call = args;
      call.a = static_cast<const float*>(pointers[kSource]);
      call.b.data = static_cast<const float*>(pointers[kWeights]);
      set_arguments(pointers, &call.epilogue);
      const BoundOps bound(ops, pointers + kOthers, &call.epilogue);
      kernels::bf16x6_product(context, call);
      return nullptr;
    };
  }

  static int64_t panel() { return kernels::float_panel(kernels::make_context(best_level())); }

  // Shared by all plans of the model.
  View packed() const {
    const GemmWeights& weights = step_.weights;
    const kernels::FloatWeights from{
        .data = static_cast<const float*>(lowering_.constant_data(weights.view)),
        .k = step_.args.k,
        .n = step_.args.n,
        .n_stride = weights.n_stride,
        .k_places = weights.k_places.data()};
    const int64_t bytes = kernels::packed_float_bytes(from, panel());
    std::string form = "f32 panels";
    for (int64_t number : {from.k, from.n})
      form += " " + std::to_string(number);
    form += name_of_places(weights);
    return lowering_.make_constant(
        ElementType::kF32, {bytes / 4},
        lowering_.weights().made(from.data, weights.view.bytes(), form, bytes, [&](void* to) {
          kernels::pack_floats(from, panel(), static_cast<float*>(to));
        }));
  }

  Lowering& lowering_;
  FloatStep made_;
  GemmStep& step_;
  GemmEpilogue& taken_;
  FloatKernel kernel_;
};

}  // namespace

std::string why_not_floats(const Lowering& lowering, const View& weights) {
  if (lowering.real_type() != ElementType::kF32) return "floating-point numbers are kept in bf16";
  if (!lowering.is_constant_view(weights)) return "the weights are computed";
  if (!is_dense(weights)) return "weights with gaps between them";
  if (weights.type != ElementType::kF32 || weights.is_quantized())
    return "weights are no f32 numbers";
  return weights.count() == 0 ? "weights without elements" : "";
}

std::string find_float_step(const ProductSite& site, FloatStep* found) {
  const Lowering& lowering = site.lowering;
  const Product& product = site.product;
  if (product.transpose_a) return "the first operand is transposed";
  const View& b = lowering.view(product.b);
  if (std::string why = why_not_floats(lowering, b); !why.empty()) return why;
  const size_t rank = b.dims.size();
  if (rank < 2 || !is_one_matrix(b)) return "the second operand is no single matrix";
  const size_t k_axis = product.k_axis(rank), n_axis = product.n_axis(rank);
  if (!has_known_row(lowering, product.bias, b.dims[n_axis])) return "the bias is no known row";
  GemmStep& step = found->step;
  step.node = product.node;
  step.bias = product.bias;
  step.weights = {.view = b};
  step.args.k = found->left_stride = b.dims[k_axis];
  step.args.n = step.dst_row = b.dims[n_axis];
  step.args.m = lowering.view(product.a).count() / step.args.k;
  step.dst_strides = row_major_strides(lowering.graph().values[site.epilogue.result].dims);
  step.weights.n_stride = b.strides[n_axis];
  for (int64_t i = 0; i < step.args.k; ++i)
    step.weights.k_places.push_back(i * b.strides[k_axis]);
  found->taken = gemm_epilogue_of(lowering, step, site.epilogue);
  const bool is_whole = found->taken.epilogue.nodes.size() == site.epilogue.nodes.size();
  return is_whole ? "" : "the kernel does not take along what follows";
}

bool is_faster_on_tiles(const Lowering& lowering, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kLeastRows = 16, kManyWeights = 2 << 20;
  constexpr double kLeastEfficiency = 0.4, kLeastOfOneBlock = 0.3;
  if (!computes_in_tiles() || k <= kernels::kSplitDepth) return false;
  if (m >= kLeastRows && n * k >= kManyWeights) return true;
  const double efficiency = kernels::cut_product(m, n, k, lowering.options().threads).efficiency;
  return efficiency >= (m == kernels::kTileRows ? kLeastOfOneBlock : kLeastEfficiency);
}

void build_float_step(Lowering& lowering, FloatStep made, FloatKernel kernel) {
  StepBuilder(lowering, std::move(made), kernel).build();
}

}  // namespace tenon::onednn
