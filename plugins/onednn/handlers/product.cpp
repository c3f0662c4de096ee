// SPDX-License-Identifier: Apache-2.0
#include "product.hpp"

#include <algorithm>
#include <cstdlib>

#include "../cpu.hpp"
#include "code_product.hpp"
#include "packed_weights.hpp"
#include "tile_product.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
constexpr int kSevenBits = 64;  // 2 * 64 * 255 is less than 2^15

void swap_last(Dims& dims) {
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
}

// oneDNN multiplies matrices with one axis of stride 1, and does it fast for these orders of axes.
bool is_fast_matrix(const View& view) {
  size_t rank = view.dims.size();
  return view.strides[rank - 1] == 1 || view.strides[rank - 2] == 1;
}

class ProductBuilder {
 public:
  ProductBuilder(Lowering& lowering, const Product& product)
      : lowering_(lowering), product_(product), node_(lowering.graph().nodes[product.node]) {}

  void build(const Tail& tail) {
    choose_operands();
    choose_dims(tail);
    int bias = product_.bias != kNone ? product_.bias : tail.bias;
    Fused fused = fuse(lowering_, tail,
                       {.result_strides = dst_strides_,
                        .dims = c_dims_,
                        .channel_axis = static_cast<int>(c_dims_.size()) - 1,
                        .src_buffers = {a_.buffer, b_.buffer}});
    if (int8_) add_scales(lowering_, a_, b_, c_dims_.size(), &fused.attr, &fused.arguments);
    Desc dst = is_folded_ ? descriptor(fused.dst, c_dims_, row_major_strides(c_dims_))
                          : descriptor(is_turned_ ? turned(fused.dst) : fused.dst);
    Desc bias_desc;
    if (bias != kNone) {
      Dims dims(c_dims_.size(), 1);
      dims.back() = c_dims_.back();
      bias_desc = Desc(dims, dnnl::memory::data_type::f32, row_major_strides(dims));
    }
    Desc a = descriptor(a_, a_dims_, a_strides_);
    Desc b = packs_b_ || packs_in_run_
                 ? Desc(b_dims_, dnnl_type(b_type_), dnnl::memory::format_tag::any)
                 : descriptor(b_, b_dims_, b_strides_);
    auto pd =
        bias == kNone
            ? dnnl::matmul::primitive_desc(lowering_.engine(), a, b, dst, fused.attr)
            : dnnl::matmul::primitive_desc(lowering_.engine(), a, b, bias_desc, dst, fused.attr);
    std::string kernel = pd.impl_info_str();
    if (kernel.rfind("ref", 0) == 0 && !tail.nodes.empty()) throw CompileError("slow kernel");
    emit(pd, tail, std::move(fused), bias);
  }

 private:
  void choose_operands() {
    a_ = lowering_.view(product_.a);
    b_ = lowering_.view(product_.b);
    bool b_constant = lowering_.is_constant_view(b_);
    if (!b_constant && may_be_int8(a_, b_)) b_ = signed_codes(lowering_, product_.b);
    int last = static_cast<int>(b_.dims.size()) - 1;
    int column_axis = product_.transpose_b ? last - 1 : last;
    bool is_right = b_constant ? are_code_weights(lowering_, b_, column_axis)
                               : b_.type == ElementType::kS8 && may_be_int8(a_, b_);
    int8_ = holds_codes(a_) && a_.channels == nullptr && is_right &&
            (b_constant ? sums_are_exact(lowering_, a_, b_) : adds_codes_exactly());
    packs_b_ = b_constant && is_one_matrix(b_);
    b_type_ = int8_ ? ElementType::kS8 : lowering_.real_type();
    if (!int8_) {
      a_ = real_matrix(lowering_, product_.a);
      packs_in_run_ = packs_when_it_runs();
      if (!packs_b_ && !packs_in_run_)
        b_ = real_matrix(lowering_, product_.b);
      else if (b_.is_quantized())
        b_ = lowering_.dequantized_constant(b_);
    }
    if (!is_fast_matrix(a_)) a_ = row_major(product_.a, a_);
    if (!packs_b_ && !is_fast_matrix(b_)) b_ = row_major(product_.b, b_);
  }

  // Weights that are trained in f32 and multiplied in bf16 are converted in every run: then
  // straight into the blocks that the product reads, which makes it 3 to 10 % faster.
  bool packs_when_it_runs() const {
    return !packs_b_ && !product_.transpose_a && b_.type == ElementType::kF32 &&
           lowering_.real_type() == ElementType::kBf16 && !b_.is_quantized() &&
           is_fast_matrix(b_) && is_one_matrix(b_);
  }

  View row_major(int value, const View& view) {
    if (!int8_) return lowering_.read_row_major(value, lowering_.real_type());
    return lowering_.read_stored(value, row_major_strides(view.dims), view.type);
  }

  void choose_dims(const Tail& tail) {
    const Dims& result = lowering_.graph().values[tail.result].dims;
    dst_strides_ = row_major_strides(result);
    bool folds = is_one_matrix(b_) && !product_.transpose_a && !reads_columns();
    if (folds && !is_row_major(a_)) a_ = row_major(product_.a, a_);
    is_folded_ = folds;
    a_dims_ = a_.dims;
    a_strides_ = a_.strides;
    b_dims_ = b_.dims;
    b_strides_ = b_.strides;
    c_dims_ = result;
    if (product_.transpose_a) {
      swap_last(a_dims_);
      swap_last(a_strides_);
    }
    if (product_.transpose_b) {
      swap_last(b_dims_);
      swap_last(b_strides_);
    }
    if (folds) {
      int64_t k = a_dims_.back();
      a_dims_ = {a_.count() / k, k};
      a_strides_ = {k, 1};
      b_strides_.erase(b_strides_.begin(), b_strides_.end() - 2);
      b_dims_.erase(b_dims_.begin(), b_dims_.end() - 2);
      c_dims_ = {a_dims_[0], b_dims_[1]};
      return;
    }
    pad_batch(a_dims_, a_strides_, c_dims_.size());
    pad_batch(b_dims_, b_strides_, c_dims_.size());
    dst_strides_ = strides_for_reader(lowering_, tail.result);
    if (!reads_columns() && is_faster_turned(tail)) turn();
  }

  // One matrix whose columns are dense, as gradients of weights have it: oneDNN's kernel for AVX2
  // reads it as fast as rows, so that a copy is lost (a tenth of the time at 2048 x 1536 x 384).
  bool reads_columns() const {
    return a_.dims.size() == 2 && !int8_ && a_.strides[0] == 1 && a_.strides[1] != 1 &&
           !computes_in_bf16();
  }

  // oneDNN copies an `a` whose columns are dense into rows. With few columns in `b` this costs more
  // than the same product turned, b' @ a', which copies b: gradients of values in attention take
  // 0.8 of the time.
  bool is_faster_turned(const Tail& tail) const {
    const size_t rank = c_dims_.size();
    const bool is_alone = tail.nodes.empty() && product_.bias == kNone && !int8_ && !packs_b_;
    return is_alone && c_dims_[rank - 2] > c_dims_[rank - 1] && a_strides_[rank - 1] != 1 &&
           b_strides_[rank - 1] == 1;
  }

  void turn() {
    is_turned_ = true;
    std::swap(a_, b_);
    std::swap(a_dims_, b_dims_);
    std::swap(a_strides_, b_strides_);
    for (Dims* axes : {&a_dims_, &a_strides_, &b_dims_, &b_strides_})
      swap_last(*axes);
    Dims turned_dims = c_dims_;
    swap_last(turned_dims);
    dst_strides_ = row_major_strides(turned_dims);
    swap_last(dst_strides_);
  }

  static void pad_batch(Dims& dims, Dims& strides, size_t rank) {
    int64_t outer = dims[0] * strides[0];
    while (dims.size() < rank) {
      dims.insert(dims.begin(), 1);
      strides.insert(strides.begin(), outer);
    }
  }

  void emit(const dnnl::matmul::primitive_desc& pd, const Tail& tail, Fused fused, int bias) {
    std::vector<Argument> arguments = std::move(fused.arguments);
    arguments.push_back({DNNL_ARG_SRC, place_of(a_), pd.src_desc()});
    Place b = place_of(b_);
    if (packs_b_) {
      b = lowering_.packed(b_, Desc(b_dims_, dnnl_type(b_.type), b_strides_), pd.weights_desc());
    } else if (packs_in_run_) {
      View weights = b_;
      weights.dims = b_dims_;
      weights.strides = b_strides_;
      b = packed_weights(lowering_, lowering_.graph().values[product_.b].name, weights,
                         pd.weights_desc(), 1);
    }
    arguments.push_back({DNNL_ARG_WEIGHTS, b, pd.weights_desc()});
    if (bias != kNone) {
      const View& view = lowering_.view(bias);
      bool is_codes = view.is_quantized() && lowering_.is_constant_view(view);
      View real = is_codes ? lowering_.dequantized_constant(view)
                           : lowering_.read_row_major(bias, ElementType::kF32);
      arguments.push_back({DNNL_ARG_BIAS, place_of(real), pd.bias_desc()});
    }
    if (fused.dst.buffer == kNone) fused.dst.buffer = lowering_.scratch(fused.dst.bytes());
    arguments.push_back({DNNL_ARG_DST, place_of(fused.dst), pd.dst_desc()});
    double flops =
        2.0 * static_cast<double>(element_count(c_dims_)) * static_cast<double>(a_dims_.back());
    lowering_.add_primitive(node_.name, pd.impl_info_str(), dnnl::matmul(pd), pd.scratchpad_desc(),
                            std::move(arguments), flops);
    lowering_.set_view(tail.result, fused.dst);
    mark_absorbed(lowering_, tail);
  }

  Lowering& lowering_;
  Product product_;
  const Node& node_;
  bool int8_ = false;
  bool packs_b_ = false;
  bool packs_in_run_ = false;
  bool is_folded_ = false;
  bool is_turned_ = false;
  ElementType b_type_ = ElementType::kF32;
  View a_;
  View b_;
  Dims a_dims_, a_strides_, b_dims_, b_strides_, c_dims_, dst_strides_;
};

}  // namespace

void add_scales(Lowering& lowering,
                const View& a,
                const View& b,
                size_t rank,
                dnnl::primitive_attr* attr,
                std::vector<Argument>* arguments) {
  auto scale = [&](int id, int mask, const std::vector<float>& values) {
    attr->set_scales_mask(id, mask);
    arguments->push_back({DNNL_ARG_ATTR_SCALES | id, lowering.floats(values),
                          Desc({static_cast<int64_t>(values.size())}, dnnl::memory::data_type::f32,
                               dnnl::memory::dims{1})});
  };
  auto zero = [&](int id, int32_t point) {
    if (point == 0) return;
    attr->set_zero_points_mask(id, 0);
    arguments->push_back({DNNL_ARG_ATTR_ZERO_POINTS | id, lowering.integers({point}),
                          Desc({1}, dnnl::memory::data_type::s32, dnnl::memory::dims{1})});
  };
  scale(DNNL_ARG_SRC, 0, {a.quant.scale});
  const bool per_channel = b.channels != nullptr;
  scale(DNNL_ARG_WEIGHTS, per_channel ? 1 << (rank - 1) : 0,
        per_channel ? b.channels->scales : std::vector<float>{b.quant.scale});
  zero(DNNL_ARG_SRC, a.quant.zero_point);
  zero(DNNL_ARG_WEIGHTS, b.quant.zero_point);
}

bool holds_codes(const View& view) {
  return view.is_quantized() && (view.type == ElementType::kU8 || view.type == ElementType::kS8);
}

bool holds_floats(const View& view) {
  const bool is_float = view.type == ElementType::kF32 || view.type == ElementType::kBf16;
  return is_float && !view.is_quantized();
}

bool is_one_matrix(const View& view) {
  return std::all_of(view.dims.begin(), view.dims.end() - 2, [](int64_t dim) { return dim == 1; });
}

bool are_code_weights(const Lowering& lowering, const View& view, int axis) {
  return view.is_quantized() && view.type == ElementType::kS8 && view.quant.zero_point == 0 &&
         (view.channels == nullptr || view.channels->axis == axis) &&
         lowering.is_constant_view(view);
}

bool sums_are_exact(const Lowering& lowering, const View& codes, const View& weights) {
  if (adds_codes_exactly()) return true;
  if (codes.type != ElementType::kU8 || !is_dense(weights)) return false;
  const auto* numbers = static_cast<const int8_t*>(lowering.constant_data(weights));
  return std::all_of(numbers, numbers + weights.count(),
                     [](int8_t number) { return std::abs(number) <= kSevenBits; });
}

bool may_be_int8(const View& a, const View& b) {
  return adds_codes_exactly() && holds_codes(a) && holds_codes(b) && a.channels == nullptr &&
         b.channels == nullptr;
}

View signed_codes(Lowering& lowering, int value) {
  const View& found = lowering.view(value);
  if (found.type != ElementType::kU8) return found;
  return lowering.read_stored(value, dense_strides_like(found.dims, found.strides),
                              ElementType::kS8);
}

View real_matrix(Lowering& lowering, int value) {
  const View& found = lowering.view(value);
  const ElementType type = lowering.real_type();
  const bool is_real = found.type == type && !found.is_quantized();
  if (is_real) return is_fast_matrix(found) ? found : lowering.read_row_major(value, type);
  Dims strides = is_fast_matrix(found) && !found.is_quantized()
                     ? found.strides
                     : dense_strides_like(found.dims, found.strides);
  View wanted{.dims = found.dims, .strides = strides};
  if (!is_dense(wanted) || !is_fast_matrix(wanted)) strides = row_major_strides(found.dims);
  return lowering.read(value, type, strides);
}

Dims strides_for_reader(const Lowering& lowering, int value) {
  const Graph& graph = lowering.graph();
  const Value& result = graph.values[value];
  const Dims plain = row_major_strides(result.dims);
  const int user = graph.only_user(value);
  if (user == kNone || graph.nodes[user].op != "Transpose") return plain;
  Dims perm = graph.nodes[user].integers("perm");
  if (perm.size() != result.dims.size()) return plain;
  Dims transposed;
  for (int64_t axis : perm)
    transposed.push_back(result.dims[axis]);
  Dims strides = row_major_strides(transposed);
  Dims wanted(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    wanted[perm[i]] = strides[i];
  return wanted.back() == 1 ? wanted : plain;
}

void lower_product(Lowering& lowering, const Product& product) {
  if (lower_symmetric_product(lowering, product)) return;
  const Dims& dims = lowering.graph().values[lowering.graph().nodes[product.node].outputs[0]].dims;
  Tail tail = find_tail(lowering, product.node, static_cast<int>(dims.size()) - 1);
  if (product.bias != kNone && tail.bias != kNone) {
    tail.ops.insert(tail.ops.begin(), TailOp{tail.nodes.front(), std::nullopt,
                                             dnnl::algorithm::binary_add, tail.bias});
    tail.bias = kNone;
  }
  if (lower_tile_product(lowering, product, tail)) return;
  if (lower_code_product(lowering, product, tail)) return;
  try {
    ProductBuilder(lowering, product).build(tail);
    return;
  } catch (const dnnl::error&) {
    if (tail.nodes.empty()) throw;
  } catch (const CompileError&) {
    if (tail.nodes.empty()) throw;
  }
  ProductBuilder(lowering, product).build(empty_tail(lowering, product.node));
}

}  // namespace tenon::onednn
