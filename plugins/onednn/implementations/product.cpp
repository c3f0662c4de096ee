// SPDX-License-Identifier: Apache-2.0
// What the implementations of a product share, and their list.

#include "product.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "cpu.hpp"
#include "float_product.hpp"
#include "lists.hpp"

namespace tenon::onednn {
namespace {

constexpr int kSevenBits = 64;  // 2 * 64 * 255 is less than 2^15

constexpr Implementation<ProductSite> kProduct[] = {
    {"binary", offer_binary_product},
    {"symmetric halves", offer_symmetric_product, kRival},
    {"sparse", offer_sparse_product, kRival},
    {"amx", offer_tile_product, kRival},
    {"int8 gemm", offer_int8_product},
    {"bf16x6", offer_bf16x6_product, kRival},
    {"f32 gemm", offer_float_product, kRival},
    {"small", offer_small_product},
    {"column", offer_column_product},
    {"row", offer_row_product},
    {"onednn", offer_onednn_product, kRival},
};

}  // namespace

Names product_names() {
  return names_of(kProduct);
}

bool is_fast_matrix(const View& view) {
  size_t rank = view.dims.size();
  return view.strides[rank - 1] == 1 || view.strides[rank - 2] == 1;
}

int mask_of_scales(const View& b, size_t rank) {
  return b.channels != nullptr ? 1 << (rank - 1) : 0;
}

bool holds_quantized(const View& view) {
  return view.is_quantized() && (view.type == ElementType::kU8 || view.type == ElementType::kS8);
}

bool holds_floats(const View& view) {
  return is_real_type(view.type) && !view.is_quantized();
}

// The rows of all batches as one matrix, where they lie so.
static void fold_rows(View* a) {
  if (a->dims.size() <= 2 || !is_row_major(*a)) return;
  const int64_t k = a->dims.back();
  a->dims = {a->count() / k, k};
  a->strides = {k, 1};
}

std::string plain_operands(const ProductSite& site, View* a, View* b) {
  const Lowering& lowering = site.lowering;
  const Product& product = site.product;
  auto is_plain = [](const View& view) {
    return view.type == ElementType::kF32 && !view.is_quantized() && view.channels == nullptr &&
           view.dims.size() >= 2 && is_one_matrix(view);
  };
  *a = lowering.view(product.a);
  *b = lowering.view(product.b);
  if (!product.transpose_a && b->dims.size() >= 2 && is_one_matrix(*b)) fold_rows(a);
  if (product.bias != kNone) return "a bias of its own";
  const ElementType result = lowering.stored_type(site.node().outputs[0]);
  if (!is_plain(*a) || !is_plain(*b) || result != ElementType::kF32)
    return "not two matrices of f32";
  if (product.transpose_a) *a = transposed(*a);
  if (product.transpose_b) *b = transposed(*b);
  return {};
}

bool is_one_matrix(const View& view) {
  return std::all_of(view.dims.begin(), view.dims.end() - 2, [](int64_t dim) { return dim == 1; });
}

bool are_int8_weights(const Lowering& lowering, const View& view, int axis) {
  return view.is_quantized() && view.type == ElementType::kS8 && view.quant.zero_point == 0 &&
         (view.channels == nullptr || view.channels->axis == axis) &&
         lowering.is_constant_view(view);
}

bool sums_are_exact(const Lowering& lowering, const View& quantized, const View& weights) {
  if (adds_int8_exactly()) return true;
  if (quantized.type != ElementType::kU8 || !is_dense(weights)) return false;
  const auto* numbers = static_cast<const int8_t*>(lowering.constant_data(weights));
  return std::all_of(numbers, numbers + weights.count(),
                     [](int8_t number) { return std::abs(number) <= kSevenBits; });
}

bool may_be_int8(const View& a, const View& b) {
  return adds_int8_exactly() && holds_quantized(a) && holds_quantized(b) && a.channels == nullptr &&
         b.channels == nullptr;
}

View as_signed(Lowering& lowering, int value) {
  const View& found = lowering.view(value);
  if (found.type != ElementType::kU8) return found;
  return lowering.read_stored(value, dense_strides_like(found.dims, found.strides),
                              ElementType::kS8);
}

void read_as_floats(Lowering& lowering, int operand, int weights) {
  const View& found = lowering.view(weights);
  if (!holds_quantized(found) || !lowering.is_constant_view(found)) return;
  const bool is_shared = lowering.graph().only_user(weights) == kNone;
  if (is_shared || holds_quantized(lowering.view(operand))) return;
  lowering.set_view(weights, lowering.dequantized_constant(found));
}

View planned_real_matrix(const Lowering& lowering, int value) {
  View planned = lowering.view(value);
  const ElementType type = lowering.real_type();
  const bool is_fast = is_fast_matrix(planned);
  if (is_fast && planned.type == type && !planned.is_quantized()) return planned;
  if (planned.type == type && !planned.is_quantized())
    planned.strides = row_major_strides(planned.dims);
  else if (!is_fast || planned.is_quantized())
    planned.strides = dense_strides_like(planned.dims, planned.strides);
  planned.type = type;
  planned.quant = {};
  planned.channels = nullptr;
  if (!is_dense(planned) || !is_fast_matrix(planned))
    planned.strides = row_major_strides(planned.dims);
  return planned;
}

View real_matrix(Lowering& lowering, int value) {
  const View planned = planned_real_matrix(lowering, value);
  return lowering.read(value, planned.type, planned.strides);
}

bool has_known_row(const Lowering& lowering, int bias, int64_t n) {
  const bool is_row = bias == kNone || lowering.graph().values[bias].count() == n;
  return is_row && has_known_bias(lowering, bias);
}

Dims strides_behind_transposes(const Graph& graph, int value) {
  const Dims& dims = graph.value(value).dims;
  std::vector<size_t> axes(dims.size());  // of the value, in the order of what is behind
  std::iota(axes.begin(), axes.end(), size_t{0});
  for (int user = graph.only_user(value); user != kNone && graph.node(user).op == "Transpose";
       user = graph.only_user(graph.node(user).outputs[0])) {
    const Dims perm = graph.node(user).integers("perm");
    if (perm.size() != dims.size()) break;
    const std::vector<size_t> before = axes;
    for (size_t i = 0; i < axes.size(); ++i)
      axes[i] = before[static_cast<size_t>(perm[i])];
  }
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    strides[axes[i]] = stride;
    stride *= std::max<int64_t>(dims[axes[i]], 1);
  }
  return strides;
}

Dims strides_for_reader(const Lowering& lowering, int value) {
  const Dims wanted = strides_behind_transposes(lowering.graph(), value);
  if (!wanted.empty() && wanted.back() == 1) return wanted;
  return row_major_strides(lowering.graph().value(value).dims);
}

void lower_product(Lowering& lowering, const Product& product) {
  const Node& node = lowering.graph().nodes[product.node];
  read_as_floats(lowering, product.a, product.b);
  const int channel_axis =
      static_cast<int>(lowering.graph().values[node.outputs[0]].dims.size()) - 1;
  const ProductSite site{lowering, product,
                         product.bias != kNone
                             ? find_epilogue_with_bias(lowering, product.node, channel_axis)
                             : find_epilogue(lowering, product.node, channel_axis),
                         empty_epilogue(lowering, product.node)};
  choose<ProductSite>(lowering, site, kProduct);
}

}  // namespace tenon::onednn
