// SPDX-License-Identifier: Apache-2.0
#include "tile_step.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tenon/half.hpp"

namespace tenon::onednn {
namespace {

// A tile has 16 rows: with few of them the weights' way from memory is all that counts, and oneDNN
// reads them as fast.
constexpr int64_t kLeastRows = 16;

class StepBuilder {
 public:
  StepBuilder(Lowering& lowering, GemmStep& step, GemmEpilogue taken)
      : lowering_(lowering), step_(step), taken_(std::move(taken)) {}

  // A convolution that reads the planes of its source.
  void see_lines(const kernels::TileLines& lines) {
    args_.row = kernels::TileRow::kLines;
    args_.lines = lines;
    Dims places(static_cast<size_t>(kernels::tile_line_depth(lines)), kernels::kOutside);
    for (size_t k = 0; k < places.size(); ++k) {
      const int64_t element = kernels::tile_line_element(lines, static_cast<int64_t>(k));
      if (element != kernels::kOutside)
        places[k] = step_.weights.k_places[static_cast<size_t>(element)];
    }
    step_.weights.k_places = std::move(places);
  }
  // A convolution whose windows are read where they lie.
  void see_taps(const kernels::TileTaps& taps) {
    args_.row = kernels::TileRow::kTaps;
    args_.taps = taps;
  }

  void build() {
    const Epilogue& epilogue = taken_.epilogue;
    View dst{.type = epilogue.quant ? epilogue.quant_type : lowering_.stored_type(epilogue.result),
             .dims = lowering_.graph().values[epilogue.result].dims,
             .strides = step_.dst_strides};
    tabulate_gelu(lowering_, dst.type, &taken_);
    others_ = bind(lowering_, taken_);
    // Planes of f32 are rounded as they are read.
    args_.type = step_.src.type == ElementType::kF32 ? ElementType::kBf16 : step_.src.type;
    args_.m = step_.args.m;
    args_.n = step_.args.n;
    args_.k = static_cast<int64_t>(step_.weights.k_places.size());
    dst.buffer = memory_of(dst);
    args_.a_stride = step_.args.a.stride * kernels::element_bytes(args_.type);
    if (step_.args.a.has_windows && args_.row == kernels::TileRow::kElements)
      args_.row = kernels::TileRow::kWindow;
    args_.windows = step_.args.a.windows;
    args_.windows.channels *= kernels::element_bytes(args_.type);
    args_.windows.pixel *= kernels::element_bytes(args_.type);
    args_.zero = static_cast<uint8_t>(step_.src.quant.zero_point);
    set_result(taken_, dst, step_.dst_row, &args_.epilogue);
    emit(dst);
    lowering_.set_view(epilogue.result, dst);
    mark_absorbed(lowering_, epilogue);
  }

 private:
  bool has_integers() const { return args_.type != ElementType::kBf16; }

  // A residual is overwritten where that saves memory traffic: where a thread reads and writes rows
  // of its own. Rows of taps write over the rows behind them before these have their sums.
  int memory_of(const View& dst) {
    const bool has_own_rows = args_.row != kernels::TileRow::kTaps &&
                              kernels::divides_tile_rows(args_.m, args_.n, args_.k);
    return has_own_rows ? result_memory(lowering_, taken_, others_, {place_of(step_.src)}, dst)
                        : lowering_.scratch(dst.bytes());
  }

  void emit(const View& dst) {
    const int64_t padded = kernels::tile_columns(args_.n);
    const View b = packed();
    const EpilogueRows rows = epilogue_rows(lowering_, step_, taken_, padded);
    Step step{.name = lowering_.graph().nodes[step_.node].name,
              .kernel = has_integers() ? "tenon:amx_int8" : "tenon:amx_bf16"};
    step.flops = 2.0 * static_cast<double>(args_.m * args_.n * step_.args.k);
    step.bytes = static_cast<double>(step_.src.bytes() + dst.bytes() + b.bytes());
    step.places = {place_of(step_.src),   place_of(dst),       place_of(b),
                   place_of(rows.scales), place_of(rows.bias), shifts()};
    step.places.insert(step.places.end(), others_.begin(), others_.end());
    step.always_succeeds = true;
    step.kernel_function = [args = args_, ops = taken_.ops](const kernels::Context& context,
                                                            void* const* pointers) -> const char* {
      kernels::TileProductArgs call = args;
      call.a = pointers[0];
      call.b = pointers[2];
      call.shifts = static_cast<const int32_t*>(pointers[5]);
      call.epilogue.dst.data = pointers[1];
      call.epilogue.scales = static_cast<const float*>(pointers[3]);
      call.epilogue.bias = static_cast<const float*>(pointers[4]);
      const BoundOps bound(ops, pointers + 6, &call.epilogue);
      kernels::tile_product(context, call);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
  }

  // Shared by all plans of the model.
  View packed() {
    const GemmWeights& weights = step_.weights;
    const ElementType type = has_integers() ? ElementType::kS8 : ElementType::kBf16;
    const int64_t bytes = kernels::packed_tile_bytes(type, args_.k, args_.n);
    const void* data = lowering_.constant_data(weights.view);
    std::string form = has_integers() ? "tiles of s8" : "tiles of bf16";
    for (int64_t number : {args_.k, args_.n})
      form += " " + std::to_string(number);
    form += name_of_places(weights);
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
    const GemmWeights& weights = step_.weights;
    std::vector<T> columns(static_cast<size_t>(args_.k * args_.n));
    auto column = columns.begin();
    for (int64_t i = 0; i < args_.n; ++i)
      for (int64_t place : weights.k_places)
        *column++ = place == kernels::kOutside ? T{} : from[i * weights.n_stride + place];
    kernels::pack_tiles(type, columns.data(), 1, args_.k, args_.k, args_.n, to);
  }

  static std::vector<uint16_t> rounded(const float* from, int64_t count) {
    std::vector<uint16_t> words(static_cast<size_t>(count));
    std::transform(from, from + count, words.begin(), bfloat_of_float);
    return words;
  }

  // What the left operand's zero point takes from the sums of each column.
  Place shifts() const {
    const int32_t zero = step_.src.quant.zero_point;
    if (!has_integers() || zero == 0) return {};
    const GemmWeights& weights = step_.weights;
    const auto* quantized = static_cast<const int8_t*>(lowering_.constant_data(weights.view));
    std::vector<int32_t> row(static_cast<size_t>(kernels::tile_columns(args_.n)));
    for (int64_t i = 0; i < args_.n; ++i) {
      int32_t sum = 0;
      for (int64_t place : weights.k_places)
        if (place != kernels::kOutside) sum += quantized[i * weights.n_stride + place];
      row[static_cast<size_t>(i)] = -zero * sum;
    }
    return lowering_.integers(row);
  }

  Lowering& lowering_;
  GemmStep& step_;
  GemmEpilogue taken_;
  std::vector<Place> others_ = {};  // operands of the epilogue
  kernels::TileProductArgs args_ = {};
};

}  // namespace

bool has_gelu(const Epilogue& epilogue) {
  return std::any_of(epilogue.ops.begin(), epilogue.ops.end(), [](const EpilogueNode& op) {
    return op.eltwise && op.eltwise->algorithm == dnnl::algorithm::eltwise_gelu_erf;
  });
}

void build_tile_step(Lowering& lowering, GemmStep& step, GemmEpilogue taken, TileForm form) {
  StepBuilder builder(lowering, step, std::move(taken));
  if (form.lines != nullptr) builder.see_lines(*form.lines);
  if (form.taps != nullptr) builder.see_taps(*form.taps);
  builder.build();
}

std::optional<ElementType> type_of_left(const Lowering& lowering,
                                        const View& left,
                                        const View& weights,
                                        int column_axis) {
  if (!lowering.is_constant_view(weights) || !is_dense(weights)) return {};
  if (holds_quantized(left) && left.channels == nullptr &&
      are_int8_weights(lowering, weights, column_axis))
    return left.type;
  const bool is_known = weights.type == ElementType::kF32 || weights.is_quantized();
  if (lowering.real_type() == ElementType::kBf16 && is_known) return ElementType::kBf16;
  return {};
}

std::string why_slower_product(const GemmStep& step, ElementType type, const Epilogue& epilogue) {
  constexpr int64_t kMostElements = 1536;
  const bool is_slower =
      type == ElementType::kBf16 && step.args.k > kMostElements && !has_gelu(epilogue);
  return is_slower ? "rows of more than 1536 elements in bf16 without a GELU" : "";
}

View real_weights(Lowering& lowering, const View& weights) {
  return weights.is_quantized() ? lowering.dequantized_constant(weights) : weights;
}

std::string why_not_rows(const GemmStep& step, ElementType type) {
  if (step.args.m < kLeastRows) return "fewer than 16 rows";
  if (!kernels::takes_tile_rows(type, step.args.k)) return "rows that are too long to be copied";
  return {};
}

}  // namespace tenon::onednn
