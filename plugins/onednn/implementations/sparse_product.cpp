// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of 1x1 with constant weights that are mostly zeros, in reals and in
// 8-bit quantized values.

#include "sparse_product.hpp"

#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <utility>

#include "conv_geometry.hpp"
#include "conv_site.hpp"
#include "cpu.hpp"
#include "gemm_epilogue.hpp"
#include "product.hpp"

namespace tenon::onednn {
namespace {

using kernels::SparseRows;
using kernels::SparseWeights;

// What a step is made of. The step says to gemm_epilogue what it asks about any GEMM.
struct SparseStep {
  GemmStep step = {};
  SparseRows rows = {};  // all but the source
  SparseWeights weights = {};
  SparseForm form = {};
};

std::string named(std::initializer_list<int64_t> numbers) {
  std::string name;
  for (int64_t number : numbers)
    name += " " + std::to_string(number);
  return name;
}

class StepBuilder {
 public:
  StepBuilder(Lowering& lowering, SparseStep& made)
      : lowering_(lowering), made_(made), step_(made.step) {}

  void build(const Epilogue& epilogue) {
    GemmEpilogue taken = gemm_epilogue_of(lowering_, step_, epilogue);
    if (taken.epilogue.norm != kNone) step_.norm = channel_norm(lowering_, taken.epilogue.norm);
    const Graph& graph = lowering_.graph();
    View dst{.type = taken.epilogue.quant ? taken.epilogue.quant_type
                                          : lowering_.stored_type(taken.epilogue.result),
             .dims = graph.values[taken.epilogue.result].dims,
             .strides = step_.dst_strides};
    const std::vector<Place> others = bind(lowering_, taken);
    dst.buffer = lowering_.scratch(dst.bytes());
    emit(taken, dst, others);
    lowering_.set_view(taken.epilogue.result, dst);
    mark_absorbed(lowering_, taken.epilogue);
  }

 private:
  void emit(GemmEpilogue& taken, const View& dst, const std::vector<Place>& others) {
    const SparseWeights& weights = made_.weights;
    kernels::SparseProductArgs args;
    args.m = step_.args.m;
    args.n = weights.n;
    args.k = weights.k;
    args.a = made_.rows;
    args.a.src = {.type = step_.src.type, .quant = step_.src.quant};
    set_result(taken, dst, step_.dst_row, &args);
    shorten_gelu(taken.ops, args.dst);
    const View b = packed();
    const EpilogueRows rows =
        epilogue_rows(lowering_, step_, taken, kernels::sparse_columns(weights.n));
    const int64_t scratch = kernels::sparse_scratch_bytes(args.m, args.k, weights.are_quantized);
    Step made{.name = lowering_.graph().nodes[step_.node].name, .kernel = kernel_name()};
    made.flops = 2.0 * static_cast<double>(args.m * args.n * args.k);
    made.bytes = static_cast<double>(step_.src.bytes() + dst.bytes() + b.bytes());
    made.places = {place_of(step_.src),   place_of(dst),
                   place_of(b),           {lowering_.scratch(scratch), 0},
                   place_of(rows.scales), place_of(rows.bias)};
    made.places.insert(made.places.end(), others.begin(), others.end());
    made.always_succeeds = true;
    made.kernel_function = [args, weights, form = made_.form, ops = taken.ops](
                               const kernels::Context& context,
                               void* const* pointers) -> const char* {
      kernels::SparseProductArgs call = args;
      call.a.src.data = pointers[0];
      call.dst.data = pointers[1];
      call.b = kernels::unpacked_sparse(weights, form.width, form.n_blocks, pointers[2]);
      call.scratch = pointers[3];
      call.scales = static_cast<const float*>(pointers[4]);
      call.bias = static_cast<const float*>(pointers[5]);
      const BoundOps bound(ops, pointers + 6, &call);
      kernels::sparse_product(context, call);
      return nullptr;
    };
    lowering_.add_step(std::move(made));
  }

  const char* kernel_name() const {
    switch (made_.form.width) {
      case 1:
        return "tenon:sparse";
      case 4:
        return "tenon:sparse (1x4)";
      default:
        return "tenon:sparse (1x16)";
    }
  }

  // Shared by all plans of the model.
  View packed() const {
    const SparseWeights& weights = made_.weights;
    const SparseForm& form = made_.form;
    const int64_t bytes = kernels::packed_sparse_bytes(weights, form.width, form.n_blocks);
    const std::string name = "sparse" + named({weights.k, weights.n, weights.k_stride,
                                               weights.n_stride, form.width, form.n_blocks});
    return lowering_.make_constant(
        ElementType::kU8, {bytes},
        lowering_.weights().made(
            weights.data, step_.weights.view.bytes(), name, bytes,
            [&](void* to) { kernels::pack_sparse(weights, form.width, form.n_blocks, to); }));
  }

  Lowering& lowering_;
  SparseStep& made_;
  GemmStep& step_;
};

// What may be multiplied so at all: by type.
std::string why_not_types(const Lowering& lowering, const View& src, const View& b, int axis) {
  if (lowering.options().sparse == Use::kOff) return "sparse=off";
  if (!lowering.is_constant_view(b)) return "the weights are computed";
  if (!is_dense(b)) return "weights with gaps between them";
  if (holds_quantized(src)) {
    if (src.channels != nullptr || !are_int8_weights(lowering, b, axis))
      return "not two operands in 8 bits with known weights";
    const kernels::Context context = kernels::make_context(best_level());
    if (!adds_int8_exactly() || !kernels::multiplies_sparse_int8(context))
      return "8-bit values are multiplied with VNNI only";
    return {};
  }
  if (b.type != ElementType::kF32 || b.is_quantized()) return "weights are no f32 numbers";
  return {};
}

// The weights of a step: (k, n) of the view's axes.
SparseWeights weights_of(const Lowering& lowering, const View& b, size_t k_axis, size_t n_axis) {
  return {.data = lowering.constant_data(b),
          .are_quantized = b.is_quantized(),
          .k = b.dims[k_axis],
          .n = b.dims[n_axis],
          .k_stride = b.strides[k_axis],
          .n_stride = b.strides[n_axis]};
}

ElementType left_type(const Lowering& lowering, const View& found) {
  return holds_floats(found) ? found.type : lowering.real_type();
}

// Of weights that another plan has counted nothing is read: their pages may have gone back to the
// file.
SparseCounts counts_of(Lowering& lowering, const SparseWeights& weights) {
  if (!lowering.weights().are_of_a_tensor(weights.data)) return count_nonzero(weights);
  const int64_t bytes = weights.k * weights.n * (weights.are_quantized ? 1 : 4);
  const std::string name =
      "zeros" + named({weights.k, weights.n, weights.k_stride, weights.n_stride,
                       static_cast<int64_t>(weights.are_quantized)});
  std::shared_ptr<const void> counts =
      lowering.weights().made(weights.data, bytes, name, sizeof(SparseCounts),
                              [&](void* to) { new (to) SparseCounts(count_nonzero(weights)); });
  lowering.plan().facts.push_back(counts);
  return *static_cast<const SparseCounts*>(counts.get());
}

// By the option, or by the rule of the sweeps.
Offer offered(const Lowering& lowering, const SparseStep& made, std::function<void()> build) {
  if (lowering.options().sparse == Use::kAll) return asked_for(std::move(build));
  Offer offer = accepted_unless(
      why_slower_sparse(lowering, made.weights, made.form, made.step.args.m), std::move(build));
  offer.traits = traits_of(made.form);
  return offer;
}

// The step with the best form of its weights, or why there is none.
std::string finish_step(Lowering& lowering, SparseStep* made) {
  const SparseWeights& weights = made->weights;
  made->form = cheapest_form(weights, counts_of(lowering, weights), made->step.args.m);
  return why_not_sparse(made->weights, made->form);
}

// A window of one pixel without padding, on images of at most two axes.
std::string why_no_pixels(const ConvSite& site) {
  const Node& node = site.node();
  const Dims& weights = site.dims(node.inputs[1]);
  if (weights.size() > 4) return "more than two spatial axes";
  if (node.integer("group", 1) != 1) return "more than one group";
  const Window window = find_window(node, site.dims(node.inputs[0]), site.dims(node.outputs[0]),
                                    Dims(weights.begin() + 2, weights.end()));
  if (element_count(window.kernel) != 1) return "no window of 1x1";
  for (const Dims* pads : {&window.pad_begin, &window.pad_end})
    for (int64_t pad : *pads)
      if (pad != 0) return "a padded image";
  return {};
}

}  // namespace

Offer offer_sparse_conv(const ConvSite& site) {
  Lowering& lowering = site.lowering;
  const Node& node = site.node();
  if (std::string why = why_no_pixels(site); !why.empty()) return refused(std::move(why));
  const View& b = lowering.view(node.inputs[1]);
  const View& src = lowering.view(node.inputs[0]);
  if (std::string why = why_not_types(lowering, src, b, 0); !why.empty())
    return refused(std::move(why));
  if (!has_known_bias(lowering, node.input(2))) return refused("the bias is computed");
  auto made = std::make_shared<SparseStep>();
  made->step = conv_step(lowering, site.index);
  made->weights = weights_of(lowering, b, 1, 0);
  const kernels::ConvWindows& w = made->step.args.a.windows;
  made->rows.stride = w.stride_x * src.dims[1];
  if (made->step.args.a.has_windows) {
    made->rows.of_line = w.out_width;
    made->rows.line = w.stride_y * w.width * src.dims[1];
    made->rows.of_image = w.out_height;
    made->rows.image = w.height * w.width * src.dims[1];
  }
  if (std::string why = finish_step(lowering, made.get()); !why.empty())
    return refused(std::move(why));
  return offered(lowering, *made, [&site, made] {
    const int value = site.node().inputs[0];
    const View& found = site.lowering.view(value);
    made->step.src = holds_quantized(found)
                         ? quantized_channels_last(site.lowering, value)
                         : site.lowering.read(value, left_type(site.lowering, found),
                                              channels_last_strides(found.dims));
    StepBuilder(site.lowering, *made).build(site.epilogue);
  });
}

Offer offer_sparse_product(const ProductSite& site) {
  Lowering& lowering = site.lowering;
  const Product& product = site.product;
  if (product.transpose_a) return refused("the first operand is transposed");
  const View& a = lowering.view(product.a);
  const View& b = lowering.view(product.b);
  const size_t rank = b.dims.size();
  if (rank < 2 || !is_one_matrix(b)) return refused("the second operand is no single matrix");
  const size_t k_axis = product.k_axis(rank), n_axis = product.n_axis(rank);
  if (std::string why = why_not_types(lowering, a, b, static_cast<int>(n_axis)); !why.empty())
    return refused(std::move(why));
  if (!has_known_row(lowering, product.bias, b.dims[n_axis]))
    return refused("the bias is no known row");
  auto made = std::make_shared<SparseStep>();
  made->weights = weights_of(lowering, b, k_axis, n_axis);
  GemmStep& step = made->step;
  step.node = product.node;
  step.bias = product.bias;
  step.weights = {.view = b};
  step.args.k = made->weights.k;
  step.args.n = step.dst_row = made->weights.n;
  step.args.m = a.count() / step.args.k;
  step.dst_strides = row_major_strides(lowering.graph().values[site.epilogue.result].dims);
  made->rows.stride = step.args.k;
  if (std::string why = finish_step(lowering, made.get()); !why.empty())
    return refused(std::move(why));
  return offered(lowering, *made, [&site, made] {
    const int value = site.product.a;
    const View& found = site.lowering.view(value);
    made->step.src =
        holds_quantized(found)
            ? site.lowering.read_stored(value, row_major_strides(found.dims), found.type)
            : site.lowering.read_row_major(value, left_type(site.lowering, found));
    StepBuilder(site.lowering, *made).build(site.epilogue);
  });
}

}  // namespace tenon::onednn
