// SPDX-License-Identifier: Apache-2.0
#include "int8_product.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "gemm_epilogue.hpp"

namespace tenon::onednn {
namespace {

class StepBuilder {
 public:
  StepBuilder(Lowering& lowering, GemmStep& step, const Epilogue& epilogue)
      : lowering_(lowering), step_(step), taken_(gemm_epilogue_of(lowering, step, epilogue)) {}

  void build() {
    const Graph& graph = lowering_.graph();
    const Epilogue& epilogue = taken_.epilogue;
    View dst{.type = epilogue.quant ? epilogue.quant_type : ElementType::kF32,
             .dims = graph.values[epilogue.result].dims,
             .strides = step_.dst_strides};
    others_ = bind(lowering_, taken_);
    dst.buffer = lowering_.scratch(dst.bytes());
    kernels::Int8ProductArgs& args = step_.args;
    args.a.is_signed = step_.src.type == ElementType::kS8;
    args.a.zero = step_.src.quant.zero_point;
    set_result(taken_, dst, step_.dst_row, &args);
    emit(dst);
    lowering_.set_view(epilogue.result, dst);
    mark_absorbed(lowering_, epilogue);
  }

 private:
  void emit(const View& dst) {
    const kernels::Int8ProductArgs& args = step_.args;
    const int64_t groups = step_.weights.groups;
    const int64_t packed = kernels::packed_int8_bytes(args.k, args.n);
    const int64_t padded = kernels::packed_columns(args.n);
    const View b = lowering_.make_constant(ElementType::kS8, {groups * packed}, packed_weights());
    const EpilogueRows rows = epilogue_rows(lowering_, step_, taken_, padded);
    Step step{.name = lowering_.graph().nodes[step_.node].name, .kernel = "tenon:int8_product"};
    step.flops = 2.0 * static_cast<double>(groups * args.m * args.n * args.k);
    step.bytes = static_cast<double>(step_.src.bytes() + dst.bytes() + b.bytes());
    step.places = {place_of(step_.src), place_of(dst), place_of(b), place_of(rows.scales),
                   place_of(rows.bias)};
    step.places.insert(step.places.end(), others_.begin(), others_.end());
    step.always_succeeds = true;
    step.kernel_function = [args, groups, packed, padded, src_group = step_.src_group,
                            ops = taken_.ops](const kernels::Context& context,
                                              void* const* pointers) -> const char* {
      for (int64_t g = 0; g < groups; ++g) {
        kernels::Int8ProductArgs call = args;
        call.a.quantized = static_cast<const uint8_t*>(pointers[0]) + g * src_group;
        call.dst.data =
            static_cast<char*>(pointers[1]) + g * args.n * kernels::element_bytes(args.dst.type);
        call.b = static_cast<const int8_t*>(pointers[2]) + g * packed;
        call.scales = static_cast<const float*>(pointers[3]) + g * padded;
        call.bias = static_cast<const float*>(pointers[4]) + g * padded;
        const BoundOps bound(ops, pointers + 5, &call, g * args.n);
        kernels::int8_product(context, call);
      }
      return nullptr;
    };
    lowering_.add_step(std::move(step));
  }

  // Shared by all plans of the model.
  std::shared_ptr<const void> packed_weights() {
    const GemmWeights& weights = step_.weights;
    const int64_t k = step_.args.k, n = step_.args.n;
    const void* data = lowering_.constant_data(weights.view);
    std::string form = "panels";
    for (int64_t number : {weights.groups, k, n})
      form += " " + std::to_string(number);
    form += name_of_places(weights);
    return lowering_.weights().made(
        data, weights.view.bytes(), form, weights.groups * kernels::packed_int8_bytes(k, n),
        [&](void* to) {
          pack_weights(static_cast<const uint8_t*>(data), static_cast<int8_t*>(to));
        });
  }

  void pack_weights(const uint8_t* from, int8_t* to) const {
    const GemmWeights& weights = step_.weights;
    const int64_t k = step_.args.k, n = step_.args.n;
    std::vector<uint8_t> columns(static_cast<size_t>(k * n));
    for (int64_t g = 0; g < weights.groups; ++g) {
      const uint8_t* const group = from + g * weights.group_stride;
      auto column = columns.begin();
      for (int64_t i = 0; i < n; ++i)
        for (int64_t place : weights.k_places)
          *column++ = group[i * weights.n_stride + place];
      kernels::pack_int8(columns.data(), 1, k, k, n, 0, to + g * kernels::packed_int8_bytes(k, n));
    }
  }

  Lowering& lowering_;
  GemmStep& step_;
  GemmEpilogue taken_;
  std::vector<Place> others_ = {};  // operands of the epilogue
};

}  // namespace

std::string name_of_places(const GemmWeights& weights) {
  const Dims& places = weights.k_places;
  const std::string_view bytes(reinterpret_cast<const char*>(places.data()),
                               places.size() * sizeof(places[0]));
  std::string name;
  for (int64_t number : {weights.group_stride, weights.n_stride})
    name += " " + std::to_string(number);
  return name + " " + std::to_string(std::hash<std::string_view>()(bytes));
}

void add_int8_step(Lowering& lowering, GemmStep step, const Epilogue& epilogue) {
  StepBuilder(lowering, step, epilogue).build();
}

Offer offer_int8_product(const ProductSite& site) {
  Lowering& lowering = site.lowering;
  const Product& product = site.product;
  if (product.transpose_a) return refused("the first operand is transposed");
  const View& a = lowering.view(product.a);
  const View& b = lowering.view(product.b);
  const size_t rank = b.dims.size();
  if (!is_one_matrix(b) || !is_dense(b)) return refused("the second operand is no single matrix");
  const size_t k_axis = product.k_axis(rank), n_axis = product.n_axis(rank);
  const bool are_quantized = holds_quantized(a) && a.channels == nullptr &&
                             are_int8_weights(lowering, b, static_cast<int>(n_axis));
  if (!are_quantized) return refused("not two operands in 8 bits with known weights");
  if (sums_are_exact(lowering, a, b)) return refused("oneDNN's int8 sums are exact");
  const int64_t k = b.dims[k_axis], n = b.dims[n_axis];
  if (k > kernels::kMostInt8Depth) return refused("sums of more than 32768 products");
  if (!has_known_row(lowering, product.bias, n)) return refused("the bias is no known row");
  GemmStep step{.node = product.node, .bias = product.bias};
  step.weights = {.view = b, .n_stride = b.strides[n_axis]};
  step.args.m = a.count() / k;
  step.args.n = n;
  step.args.k = k;
  step.args.a.stride = k;
  step.dst_strides = row_major_strides(lowering.graph().values[site.epilogue.result].dims);
  step.dst_row = n;
  return accepted([&site, step, k_stride = b.strides[k_axis]]() mutable {
    const View& quantized = site.lowering.view(site.product.a);
    step.src = site.lowering.read_stored(site.product.a, row_major_strides(quantized.dims),
                                         quantized.type);
    for (int64_t i = 0; i < step.args.k; ++i)
      step.weights.k_places.push_back(i * k_stride);
    add_int8_step(site.lowering, std::move(step), site.epilogue);
  });
}

}  // namespace tenon::onednn
