// SPDX-License-Identifier: Apache-2.0
// Products and pointwise (1x1) convolutions with known weights on AMX tiles
// (kernels/tile_product.h), in int8 and, with precision=bf16, in bf16. What follows the sums is
// taken along (code_tail.hpp). A product of whose epilogue the kernel knows only a part is left to
// oneDNN.

#include "kernels/tile_product.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "code_product.hpp"
#include "code_tail.hpp"
#include "conv_site.hpp"
#include "product.hpp"

namespace tenon::onednn {
namespace {

using Op = kernels::EpilogueOp;

// A tile has 16 rows: with few of them the weights' way from memory is all that counts, and oneDNN
// reads them as fast.
constexpr int64_t kLeastRows = 16;

class StepBuilder {
 public:
  StepBuilder(Lowering& lowering, CodeStep& step, CodeFinish finish)
      : lowering_(lowering), step_(step), finish_(std::move(finish)) {}

  void build() {
    const Tail& tail = finish_.tail;
    View dst{.type = tail.quant ? tail.quant_type : lowering_.stored_type(tail.result),
             .dims = lowering_.graph().values[tail.result].dims,
             .strides = step_.dst_strides};
    others_ = bind(lowering_, finish_);
    dst.buffer = lowering_.scratch(dst.bytes());
    args_.type = step_.src.type;
    args_.m = step_.args.m;
    args_.n = step_.args.n;
    args_.k = step_.args.k;
    args_.a_stride = step_.args.a.stride * kernels::element_bytes(args_.type);
    args_.has_windows = step_.args.a.has_windows;
    args_.windows = step_.args.a.windows;
    args_.zero = static_cast<uint8_t>(step_.src.quant.zero_point);
    kernels::Epilogue& epilogue = args_.epilogue;
    epilogue.dst.type = dst.type;
    if (tail.quant) epilogue.dst.quant = *tail.quant;
    epilogue.dst_stride = step_.dst_row;
    epilogue.low = finish_.low;
    epilogue.high = finish_.high;
    shorten_gelu(finish_.ops, epilogue.dst);
    emit(dst);
    lowering_.set_view(tail.result, dst);
    mark_absorbed(lowering_, tail);
  }

 private:
  bool has_integers() const { return args_.type != ElementType::kBf16; }

  void emit(const View& dst) {
    const int64_t padded = kernels::tile_columns(args_.n);
    const View b = packed();
    const EpilogueRows rows = epilogue_rows(lowering_, step_, finish_, padded);
    Step step{.name = lowering_.graph().nodes[step_.node].name,
              .kernel = has_integers() ? "tenon:amx_int8" : "tenon:amx_bf16"};
    step.flops = 2.0 * static_cast<double>(args_.m * args_.n * args_.k);
    step.bytes = static_cast<double>(step_.src.bytes() + dst.bytes() + b.bytes());
    step.places = {place_of(step_.src),   place_of(dst),       place_of(b),
                   place_of(rows.scales), place_of(rows.bias), shifts()};
    step.places.insert(step.places.end(), others_.begin(), others_.end());
    step.always_succeeds = true;
    step.kernel_function = [args = args_, ops = finish_.ops](const kernels::Context& context,
                                                             void* const* pointers) -> const char* {
      kernels::TileProductArgs call = args;
      call.a = pointers[0];
      call.b = pointers[2];
      call.shifts = static_cast<const int32_t*>(pointers[5]);
      call.epilogue.dst.data = pointers[1];
      call.epilogue.scales = static_cast<const float*>(pointers[3]);
      call.epilogue.bias = static_cast<const float*>(pointers[4]);
      std::array<Op, kernels::kMostEpilogueOps> with_data;
      for (size_t i = 0; i < ops.size(); ++i) {
        with_data[i] = ops[i];
        with_data[i].other.data = pointers[6 + i];
      }
      call.epilogue.ops = with_data.data();
      call.epilogue.n_ops = static_cast<int>(ops.size());
      kernels::tile_product(context, call);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
  }

  // Shared by all plans of the model.
  View packed() {
    const CodeWeights& weights = step_.weights;
    const ElementType type = has_integers() ? ElementType::kS8 : ElementType::kBf16;
    const int64_t bytes = kernels::packed_tile_bytes(type, args_.k, args_.n);
    const void* data = lowering_.constant_data(weights.view);
    std::string form = has_integers() ? "tiles of s8" : "tiles of bf16";
    for (int64_t number : {args_.k, args_.n, weights.n_stride, weights.k_places.back()})
      form += " " + std::to_string(number);
    const int64_t elements = bytes / kernels::element_bytes(type);
    return lowering_.make_constant(
        type, {elements},
        lowering_.weights().made(data, weights.view.bytes(), form, bytes, [&](void* to) {
          if (has_integers())
            pack(static_cast<const int8_t*>(data), type, to);
          else
            pack(rounded(static_cast<const float*>(data), weights.view.count()).data(), type, to);
        }));
  }

  // Column by column, each with its k side by side.
  template <class T>
  void pack(const T* from, ElementType type, void* to) const {
    const CodeWeights& weights = step_.weights;
    std::vector<T> columns(static_cast<size_t>(args_.k * args_.n));
    auto column = columns.begin();
    for (int64_t i = 0; i < args_.n; ++i)
      for (int64_t place : weights.k_places)
        *column++ = from[i * weights.n_stride + place];
    kernels::pack_tiles(type, columns.data(), 1, args_.k, args_.k, args_.n, to);
  }

  // f32 as bf16, to nearest even.
  static std::vector<uint16_t> rounded(const float* from, int64_t count) {
    std::vector<uint16_t> words(static_cast<size_t>(count));
    for (size_t i = 0; i < words.size(); ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, from + i, sizeof bits);
      const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
      const uint32_t up = bits + 0x7fffU + ((bits >> 16) & 1U);
      words[i] = static_cast<uint16_t>((is_nan ? bits | 0x400000U : up) >> 16);
    }
    return words;
  }

  // What the left operand's zero point takes from the sums of each column.
  Place shifts() const {
    const int32_t zero = step_.src.quant.zero_point;
    if (!has_integers() || zero == 0) return {};
    const CodeWeights& weights = step_.weights;
    const auto* codes = static_cast<const int8_t*>(lowering_.constant_data(weights.view));
    std::vector<int32_t> row(static_cast<size_t>(kernels::tile_columns(args_.n)));
    for (int64_t i = 0; i < args_.n; ++i) {
      int32_t sum = 0;
      for (int64_t place : weights.k_places)
        sum += codes[i * weights.n_stride + place];
      row[static_cast<size_t>(i)] = -zero * sum;
    }
    return lowering_.integers(row);
  }

  Lowering& lowering_;
  CodeStep& step_;
  CodeFinish finish_;
  std::vector<Place> others_ = {};  // operands of the epilogue
  kernels::TileProductArgs args_ = {};
};

// oneDNN's bf16 products are as fast, but for their GELU.
bool has_gelu(const Tail& tail) {
  return std::any_of(tail.ops.begin(), tail.ops.end(), [](const TailOp& op) {
    return op.eltwise && op.eltwise->algorithm == dnnl::algorithm::eltwise_gelu_erf;
  });
}

// In which type the tiles take the operands: those of 8 bits as they are, real ones in bf16.
std::optional<ElementType> type_of_left(const Lowering& lowering,
                                        const View& left,
                                        const View& weights,
                                        int column_axis,
                                        const Tail& tail) {
  if (!lowering.is_constant_view(weights) || !is_dense(weights)) return {};
  if (holds_codes(left) && left.channels == nullptr &&
      are_code_weights(lowering, weights, column_axis))
    return left.type;
  const bool is_known = weights.type == ElementType::kF32 || weights.is_quantized();
  if (lowering.real_type() == ElementType::kBf16 && has_gelu(tail) && is_known)
    return ElementType::kBf16;
  return {};
}

// Of the real numbers that weights are or stand for.
View real_weights(Lowering& lowering, const View& weights) {
  return weights.is_quantized() ? lowering.dequantized_constant(weights) : weights;
}

// Windows are gathered row by row, which takes as long as many products: it is worth it in front of
// enough columns, where the windows see one pixel of enough channels, or in a first layer, for
// which oneDNN wants a layout of its own. Measured over 24 geometries (tests/bench/README.md).
std::string why_not_gather(const CodeStep& step, ElementType type) {
  constexpr int64_t kLeastColumns = 64, kFewChannels = 4, kManyChannels = 64, kMostLines = 5;
  const kernels::CodeWindows& w = step.args.a.windows;
  if (!step.args.a.has_windows) return {};
  if (type == ElementType::kBf16) return "windows in bf16";
  if (step.args.n < kLeastColumns) return "windows in front of fewer than 64 columns";
  if (step.args.k > kernels::kMostTileTail) return "windows of more than 2048 bytes";
  const bool sees_one_pixel = w.window_height * w.window_width == 1;
  if (sees_one_pixel)
    return w.channels >= kManyChannels ? "" : "windows of one pixel with fewer than 64 channels";
  const bool is_first = w.channels <= kFewChannels && w.window_height <= kMostLines;
  return is_first ? "" : "windows of many pixels behind the first layer, or of more than 5 lines";
}

// Why the tiles do not take the product, whatever its operands are. Of a step it is enough to know
// the sizes.
std::string why_not_tiles(const CodeStep& step, ElementType type) {
  if (step.args.m < kLeastRows) return "fewer than 16 rows";
  if (!kernels::takes_tile_rows(type, step.args.k)) return "rows that are too long to be copied";
  return why_not_gather(step, type);
}

constexpr const char* kNoTiles = "this CPU has no AMX tiles";
constexpr const char* kNoOperands =
    "not two operands in 8 bits with known weights, nor bf16 with a GELU behind it";
constexpr const char* kPartOfEpilogue = "the kernel knows only a part of what follows";

// The matrices of a product; its geometry is complete but for its source and where weights lie.
struct Operands {
  View a, b;
  size_t k_axis = 0, n_axis = 0;  // of b
};

Operands operands_of(const ProductSite& site) {
  Operands found{site.lowering.view(site.product.a), site.lowering.view(site.product.b)};
  const size_t rank = found.b.dims.size();
  found.k_axis = site.product.transpose_b ? rank - 1 : rank - 2;
  found.n_axis = site.product.transpose_b ? rank - 2 : rank - 1;
  return found;
}

void build_product(const ProductSite& site,
                   Operands operands,
                   ElementType type,
                   CodeStep step,
                   CodeFinish finish) {
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
  StepBuilder(lowering, step, std::move(finish)).build();
}

void build_conv(const ConvSite& site, ElementType type, CodeStep step, CodeFinish finish) {
  Lowering& lowering = site.lowering;
  if (type == ElementType::kBf16) {
    const int source = site.node().inputs[0];
    step.src = lowering.read(source, type, channels_last_strides(site.dims(source)));
    step.weights.view = real_weights(lowering, step.weights.view);
  } else {
    step.src = codes_channels_last(lowering, site.node().inputs[0]);
  }
  add_weights(lowering, site.tail, &step);
  StepBuilder(lowering, step, std::move(finish)).build();
}

}  // namespace

Offer offer_tile_product(const ProductSite& site) {
  const Lowering& lowering = site.lowering;
  if (!computes_in_tiles()) return refused(kNoTiles);
  if (site.product.transpose_a) return refused("the first operand is transposed");
  const Operands operands = operands_of(site);
  if (!is_one_matrix(operands.b)) return refused("the second operand is no single matrix");
  const auto type =
      type_of_left(lowering, operands.a, operands.b, static_cast<int>(operands.n_axis), site.tail);
  if (!type) return refused(kNoOperands);
  const int64_t k = operands.b.dims[operands.k_axis], n = operands.b.dims[operands.n_axis];
  if (!has_known_row(lowering, site.product.bias, n)) return refused("the bias is no known row");
  CodeStep step{.node = site.product.node, .bias = site.product.bias};
  step.args.m = operands.a.count() / k;
  step.args.n = n;
  step.args.k = k;
  step.args.a.stride = k;
  step.dst_strides = row_major_strides(lowering.graph().values[site.tail.result].dims);
  step.dst_row = n;
  if (std::string why = why_not_tiles(step, *type); !why.empty()) return refused(std::move(why));
  CodeFinish finish = finish_of(lowering, step, site.tail);
  if (finish.tail.nodes.size() != site.tail.nodes.size()) return refused(kPartOfEpilogue);
  return accepted([&site, operands, type = *type, step, finish] {
    build_product(site, operands, type, step, finish);
  });
}

Offer offer_tile_conv(const ConvSite& site) {
  const Lowering& lowering = site.lowering;
  if (!computes_in_tiles()) return refused(kNoTiles);
  const Node& node = site.node();
  const View& src = lowering.view(node.inputs[0]);
  const auto type = type_of_left(lowering, src, lowering.view(node.inputs[1]), 0, site.tail);
  if (!type) return refused(kNoOperands);
  if (node.integer("group", 1) != 1) return refused("more than one group");
  if (src.dims.size() > 4) return refused("more than two spatial axes");
  if (!has_known_bias(lowering, node.input(2))) return refused("the bias is computed");
  CodeStep step = conv_step(lowering, site.index);
  if (std::string why = why_not_tiles(step, *type); !why.empty()) return refused(std::move(why));
  CodeFinish finish = finish_of(lowering, step, site.tail);
  if (finish.tail.nodes.size() != site.tail.nodes.size()) return refused(kPartOfEpilogue);
  return accepted([&site, type = *type, step, finish] { build_conv(site, type, step, finish); });
}

}  // namespace tenon::onednn
