// SPDX-License-Identifier: Apache-2.0
#include "int4_product.hpp"

#include <utility>

#include "gemm_epilogue.hpp"
#include "lists.hpp"

namespace tenon::onednn {
namespace {

struct Int4Site {
  Lowering& lowering;
  const Product& product;
  const Int4Matrix& matrix;
  Int4Rows rows;
};

class StepBuilder {
 public:
  explicit StepBuilder(const Int4Site& site)
      : lowering_(site.lowering),
        product_(site.product),
        matrix_(site.matrix),
        group_(site.matrix.kernel_group()),
        n_groups_(kernels::int4_groups(site.matrix.k, group_)) {}

  void build(bool as_int8) {
    const Graph& graph = lowering_.graph();
    const int channel_axis = static_cast<int>(result_dims().size()) - 1;
    GemmStep step{.node = product_.node, .bias = product_.bias};
    const Epilogue all = product_.bias != kNone
                             ? find_epilogue_with_bias(lowering_, product_.node, channel_axis)
                             : find_epilogue(lowering_, product_.node, channel_axis);
    const View a = lowering_.view(product_.a);
    step.args.m = a.count() / matrix_.k;
    step.args.n = matrix_.n;
    step.args.k = matrix_.k;
    step.dst_strides = row_major_strides(graph.values[all.result].dims);
    step.dst_row = matrix_.n;
    GemmEpilogue taken = gemm_epilogue_of(lowering_, step, all);
    emit(step, taken, as_int8);
    mark_absorbed(lowering_, taken.epilogue);
  }

 private:
  const Dims& result_dims() const {
    const Graph& graph = lowering_.graph();
    return graph.values[graph.nodes[product_.node].outputs[0]].dims;
  }

  View rows() const {
    const View& found = lowering_.view(product_.a);
    const ElementType type = holds_floats(found) ? found.type : lowering_.real_type();
    return lowering_.read_row_major(product_.a, type);
  }

  void emit(GemmStep& step, GemmEpilogue& taken, bool as_int8) {
    const Graph& graph = lowering_.graph();
    const Epilogue& epilogue = taken.epilogue;
    step.src = rows();
    View dst{.type = epilogue.quant ? epilogue.quant_type : lowering_.stored_type(epilogue.result),
             .dims = graph.values[epilogue.result].dims,
             .strides = step.dst_strides};
    const std::vector<Place> others = bind(lowering_, taken);
    dst.buffer = lowering_.scratch(dst.bytes());
    kernels::Int4ProductArgs args;
    args.m = step.args.m;
    args.n = matrix_.n;
    args.k = args.a_stride = matrix_.k;
    args.a.type = step.src.type;
    args.b.group = group_;
    args.b.n_groups = n_groups_;
    args.b.scale_type = matrix_.scale_type;
    args.as_int8 = as_int8;
    set_result(taken, dst, matrix_.n, &args);
    shorten_gelu(taken.ops, args.dst);
    const int64_t scratch = kernels::int4_scratch_bytes(args.m, args.k, group_, as_int8);
    const EpilogueRows rows =
        epilogue_rows(lowering_, step, taken, kernels::int4_columns(matrix_.n));
    const View b = quantized(), b_scales = scales();
    Step made{.name = graph.nodes[product_.node].name,
              .kernel = as_int8 ? "tenon:int4 (8-bit rows)" : "tenon:int4 (real rows)"};
    made.flops = 2.0 * static_cast<double>(args.m * args.n * args.k);
    made.bytes = static_cast<double>(step.src.bytes() + dst.bytes() + b.bytes() + b_scales.bytes());
    made.places = {place_of(step.src),
                   place_of(dst),
                   place_of(b),
                   place_of(b_scales),
                   zeros(),
                   {lowering_.scratch(scratch), 0},
                   place_of(rows.scales),
                   place_of(rows.bias)};
    made.places.insert(made.places.end(), others.begin(), others.end());
    made.always_succeeds = true;
    made.kernel_function = [args, ops = taken.ops](const kernels::Context& context,
                                                   void* const* pointers) -> const char* {
      kernels::Int4ProductArgs call = args;
      call.a.data = pointers[0];
      call.dst.data = pointers[1];
      call.b.quantized = static_cast<const uint8_t*>(pointers[2]);
      call.b.scales = pointers[3];
      call.b.zeros = static_cast<const uint8_t*>(pointers[4]);
      call.scratch = pointers[5];
      call.scales = static_cast<const float*>(pointers[6]);
      call.bias = static_cast<const float*>(pointers[7]);
      const BoundOps bound(ops, pointers + 8, &call);
      kernels::int4_product(context, call);
      return nullptr;
    };
    lowering_.add_step(std::move(made));
    lowering_.set_view(epilogue.result, dst);
  }

  // Shared by all plans of the model. `what` names the array, the rest of the form what it is of.
  View kept(ElementType type,
            int64_t count,
            const void* data,
            int64_t bytes,
            std::string what,
            const std::function<void(void*)>& fill) const {
    for (int64_t number : {matrix_.k, matrix_.n, group_, matrix_.block, matrix_.quantized.k_stride,
                           int64_t{matrix_.quantized.flip}})
      what.append(" ").append(std::to_string(number));
    return lowering_.make_constant(
        type, {count},
        lowering_.weights().made(data, bytes, what, count * kernels::element_bytes(type), fill));
  }

  View quantized() const {
    return kept(ElementType::kU8, kernels::int4_packed_bytes(matrix_.k, matrix_.n, group_),
                matrix_.quantized.data, matrix_.quantized_bytes, "4-bit panels", [&](void* to) {
                  kernels::pack_int4(matrix_.quantized, matrix_.k, matrix_.n, group_,
                                     static_cast<uint8_t*>(to));
                });
  }

  // to(place, row, column) for the first row of each group and all columns of whole panels.
  template <class F>
  void each_group(const F& to) const {
    int64_t place = 0;
    for (int64_t panel = 0; panel < matrix_.n; panel += kernels::kInt4Panel)
      for (int64_t group = 0; group < n_groups_; ++group)
        for (int64_t column = panel; column < panel + kernels::kInt4Panel; ++column, ++place)
          if (column < matrix_.n) to(place, group * group_, column);
  }
  int64_t n_numbers() const { return kernels::int4_columns(matrix_.n) * n_groups_; }

  View scales() const {
    return kept(matrix_.scale_type, n_numbers(), matrix_.scales, matrix_.scale_bytes,
                "scales of 4-bit panels", [&](void* to) {
                  const int64_t bytes = kernels::element_bytes(matrix_.scale_type);
                  each_group([&](int64_t place, int64_t row, int64_t column) {
                    const int64_t at = matrix_.scale_places(row / matrix_.block, column);
                    std::copy_n(static_cast<const char*>(matrix_.scales) + at * bytes, bytes,
                                static_cast<char*>(to) + place * bytes);
                  });
                });
  }

  // No place where all are the one that the kernel knows.
  Place zeros() const {
    if (matrix_.zeros.data == nullptr && matrix_.zero_point == kernels::kInt4Zero) return {};
    const bool has_data = matrix_.zeros.data != nullptr;
    const View made =
        kept(ElementType::kU8, n_numbers(), has_data ? matrix_.zeros.data : matrix_.quantized.data,
             has_data ? matrix_.zero_bytes : matrix_.quantized_bytes, "zeros of 4-bit panels",
             [&](void* to) {
               each_group([&](int64_t place, int64_t row, int64_t column) {
                 static_cast<uint8_t*>(to)[place] = matrix_.zero_at(row, column);
               });
             });
    return place_of(made);
  }

  Lowering& lowering_;
  const Product& product_;
  const Int4Matrix& matrix_;
  int64_t group_, n_groups_;
};

Offer offer_int8(const Int4Site& site) {
  if (site.rows == Int4Rows::kReal) return refused("the node asks for floating point");
  if (site.rows != Int4Rows::kInt8 && !site.lowering.options().int8_rows)
    return refused("precision=fp32 keeps rows in floating point");
  return accepted([&site] { StepBuilder(site).build(true); });
}

Offer offer_reals(const Int4Site& site) {
  return accepted([&site] { StepBuilder(site).build(false); });
}

constexpr Implementation<Int4Site> kInt4Product[] = {
    {"int4 times int8", offer_int8},
    {"int4 times f32", offer_reals},
};

}  // namespace

Names int4_product_names() {
  return names_of(kInt4Product);
}

void lower_int4_product(Lowering& lowering,
                        const Product& product,
                        const Int4Matrix& matrix,
                        Int4Rows rows) {
  const Int4Site site{lowering, product, matrix, rows};
  choose<Int4Site>(lowering, site, kInt4Product);
}

bool lower_packed_product(Lowering& lowering, const Product& product) {
  const Graph& graph = lowering.graph();
  const Node* weights = packed_weights_of(graph, product.b);
  if (weights == nullptr) return false;
  std::string why = why_not_packed(graph, product.node, product.b);
  if (!why.empty()) {
    lowering.choice().refusals.push_back({"int4", std::move(why)});
    return false;
  }
  lower_int4_product(lowering, product, *int4_matrix(graph, *weights, product.transpose_b, &why));
  return true;
}

}  // namespace tenon::onednn
