// SPDX-License-Identifier: Apache-2.0
#include "channel_moves.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>

#include "byte_table.hpp"
#include "dense.hpp"
#include "kernels/channel_rows.h"
#include "lowering/epilogue.hpp"

namespace tenon::onednn {
namespace {

using kernels::Quant;

// Follows one value through nodes that move its channels.
class Walk {
 public:
  Walk(const Lowering& lowering, int value, ElementType type, const Quant& quant)
      : lowering_(lowering),
        graph_(lowering.graph()),
        type_(type),
        quant_(quant),
        image_(graph_.values[static_cast<size_t>(value)].dims) {
    at_.value = value;
    at_.is_real = graph_.values[static_cast<size_t>(value)].type == ElementType::kF32;
    at_.from.resize(static_cast<size_t>(image_[1]));
    std::iota(at_.from.begin(), at_.from.end(), 0);
    factors_ = {image_[1]};
  }

  // Its first step is `node`, whoever else reads what it does.
  bool start(int node) {
    const Node& first = graph_.nodes[static_cast<size_t>(node)];
    if (!follows(first)) return false;
    at_.value = first.outputs[0];
    return true;
  }

  ChannelMoves run() {
    if (factors_.size() == 1) keep();
    while (step()) {
      if (factors_.size() == 1) keep();
    }
    if (!kept_.results.empty() && kept_.nodes.size() == nodes_.size()) split();
    return std::move(kept_);
  }

 private:
  // The value is an image: the moves may end here.
  void keep() {
    kept_.nodes = nodes_;
    kept_.results = {at_};
    kept_.is_shuffle = !std::is_sorted(at_.from.begin(), at_.from.end());
  }

  const Value& value() const { return graph_.values[static_cast<size_t>(at_.value)]; }
  int only_waiting_user() const {
    if (value().n_outputs > 0) return kNone;
    const int user = graph_.only_user(at_.value);
    return user != kNone && !lowering_.is_done(user) ? user : kNone;
  }

  bool step() {
    const int user = only_waiting_user();
    if (user == kNone) return false;
    const Node& node = graph_.nodes[static_cast<size_t>(user)];
    if (node.inputs[0] != at_.value || !follows(node)) return false;
    nodes_.push_back(user);
    at_.value = node.outputs[0];
    return true;
  }

  bool follows(const Node& node) {
    if (node.op == "QuantizeLinear" || node.op == "DequantizeLinear") return follows_scale(node);
    if (node.op == "Reshape") return follows_reshape(node);
    return node.op == "Transpose" && follows_transpose(node);
  }

  bool follows_scale(const Node& node) {
    const bool is_quantize = node.op == "QuantizeLinear";
    const std::optional<Quant> quant = tensor_quant(lowering_, node);
    if (!quant || !is_same(*quant, quant_) || is_quantize != at_.is_real) return false;
    if (is_quantize && graph_.values[static_cast<size_t>(node.outputs[0])].type != type_)
      return false;
    at_.is_real = !is_quantize;
    return true;
  }

  // Of the result's axes all but the channels' are those of the image.
  bool has_image_axes(const Dims& dims) const {
    const size_t spatial = image_.size() - 2;
    return dims.size() >= image_.size() && dims[0] == image_[0] &&
           std::equal(image_.end() - static_cast<std::ptrdiff_t>(spatial), image_.end(),
                      dims.end() - static_cast<std::ptrdiff_t>(spatial));
  }

  bool follows_reshape(const Node& node) {
    const Dims& dims = graph_.values[static_cast<size_t>(node.outputs[0])].dims;
    const bool has_known_shape = node.inputs.size() < 2 ||
                                 graph_.values[static_cast<size_t>(node.inputs[1])].data != nullptr;
    if (!has_known_shape || !has_image_axes(dims)) return false;
    factors_.assign(dims.begin() + 1, dims.end() - static_cast<std::ptrdiff_t>(image_.size() - 2));
    return element_count(factors_) == image_[1];
  }

  bool follows_transpose(const Node& node) {
    const size_t rank = factors_.size() + image_.size() - 1;
    Dims reversed(rank);
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    const Dims perm = node.integers("perm", reversed);
    for (size_t i = 0; i < rank; ++i) {
      const bool is_factor = i >= 1 && i <= factors_.size();
      if (!is_factor && perm[i] != static_cast<int64_t>(i)) return false;
    }
    const Dims strides = row_major_strides(factors_);
    Dims factors, moved;
    for (size_t i = 0; i < factors_.size(); ++i) {
      factors.push_back(factors_[static_cast<size_t>(perm[i + 1] - 1)]);
      moved.push_back(strides[static_cast<size_t>(perm[i + 1] - 1)]);
    }
    std::vector<int32_t> from;
    for (int64_t i = 0; i < element_count(factors); ++i) {
      int64_t place = 0, rest = i;
      for (size_t axis = factors.size(); axis-- > 0; rest /= factors[axis])
        place += rest % factors[axis] * moved[axis];
      from.push_back(at_.from[static_cast<size_t>(place)]);
    }
    at_.from = std::move(from);
    factors_ = std::move(factors);
    return true;
  }

  // Every reader takes channels that follow each other: each gets its own, dense.
  void split() {
    if (value().n_outputs > 0 || value().users.empty() || !at_.is_real) return;
    ChannelMoves made{.nodes = nodes_, .results = {}, .is_shuffle = kept_.is_shuffle};
    for (int user : value().users) {
      const Node& node = graph_.nodes[static_cast<size_t>(user)];
      if (lowering_.is_done(user) || node.inputs[0] != at_.value || !takes_parts(node, &made))
        return;
      if (std::find(made.nodes.begin(), made.nodes.end(), user) == made.nodes.end())
        made.nodes.push_back(user);
    }
    kept_ = std::move(made);
  }

  bool takes_parts(const Node& node, ChannelMoves* made) const {
    if (node.op == "Split") return takes_split(node, made);
    return node.op == "Slice" && takes_slice(node, made);
  }

  void add_part(int result, int64_t first, ChannelMoves* made) const {
    const auto begin = at_.from.begin() + static_cast<std::ptrdiff_t>(first);
    const int64_t n = graph_.values[static_cast<size_t>(result)].dims[1];
    made->results.push_back({result, true, {begin, begin + static_cast<std::ptrdiff_t>(n)}});
  }

  bool takes_split(const Node& node, ChannelMoves* made) const {
    if (positive_axis(node.integer("axis", 0), image_.size()) != 1) return false;
    if (node.input(1) != kNone &&
        graph_.values[static_cast<size_t>(node.inputs[1])].data == nullptr)
      return false;
    int64_t first = 0;
    for (int output : node.outputs) {
      if (output == kNone) return false;
      add_part(output, first, made);
      first += graph_.values[static_cast<size_t>(output)].dims[1];
    }
    return first == image_[1];
  }

  bool takes_slice(const Node& node, ChannelMoves* made) const {
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const int value = node.inputs[i];
      const bool is_one =
          value == kNone || (graph_.values[static_cast<size_t>(value)].data != nullptr &&
                             graph_.values[static_cast<size_t>(value)].count() == 1);
      if (!is_one) return false;
    }
    auto number = [&](size_t i, int64_t fallback) {
      return node.input(i) == kNone ? fallback : lowering_.constant_integers(node.inputs[i])[0];
    };
    const int64_t start = number(1, 0);
    const Dims& dims = graph_.values[static_cast<size_t>(node.outputs[0])].dims;
    const int64_t first = start < 0 ? start + image_[1] : start;
    if (number(3, 0) != 1 || number(4, 1) != 1) return false;
    if (first < 0 || first + dims[1] > image_[1] || dims[1] == 0) return false;
    add_part(node.outputs[0], first, made);
    return true;
  }

  const Lowering& lowering_;
  const Graph& graph_;
  ElementType type_;
  Quant quant_;
  Dims image_;
  MovedChannels at_;
  Dims factors_;  // of the channels, between Reshapes
  std::vector<int> nodes_;
  ChannelMoves kept_;
};

bool is_image(const Dims& dims) {
  return dims.size() >= 3 && dims[1] <= kernels::kMostChannels && element_count(dims) > 0;
}

// Numbers from one pixel to the next; nothing where the channels of each do not lie side by side.
std::optional<int64_t> pixel_stride(const View& view) {
  if (view.dims[1] != 1 && view.strides[1] != 1) return std::nullopt;
  std::optional<int64_t> stride;
  int64_t expected = 0;
  for (size_t i = view.dims.size(); i-- > 0;) {
    if (i == 1 || view.dims[i] == 1) continue;
    if (!stride) stride = expected = view.strides[i];
    if (view.strides[i] != expected) return std::nullopt;
    expected *= view.dims[i];
  }
  return stride.value_or(view.dims[1]);
}

struct PixelPiece {
  int64_t channels = 0;
  int64_t stride = 0;
  Requantization quantized;
  Place place;
};

std::optional<PixelPiece> pixel_piece(const View& from, const View& whole) {
  if (from.count() == 0 || from.dims.size() != whole.dims.size()) return std::nullopt;
  const std::optional<int64_t> stride = pixel_stride(from);
  const std::optional<Requantization> quantized = requantization(from, whole);
  if (!stride || !quantized) return std::nullopt;
  return PixelPiece{from.dims[1], *stride, *quantized, place_of(from)};
}

struct Result {
  std::vector<int32_t> from;
  std::vector<kernels::ChannelChunk> chunks;
};

// The pass, but for its memory.
struct Pass {
  int64_t pixels = 0;
  std::vector<PixelPiece> pieces;
  std::vector<Result> results;

  void run(const kernels::Context& context, void* const* pointers) const {
    kernels::ChannelRowsArgs args;
    args.pixels = pixels;
    for (const PixelPiece& piece : pieces)
      args.pieces[args.n_pieces++] = {
          static_cast<const uint8_t*>(*pointers++), piece.stride, piece.channels,
          piece.quantized.table != nullptr ? piece.quantized.table->data() : nullptr};
    for (const Result& result : results)
      args.results[args.n_results++] = {
          static_cast<uint8_t*>(*pointers++), static_cast<int64_t>(result.from.size()),
          result.from.data(), result.chunks.empty() ? nullptr : result.chunks.data()};
    kernels::channel_rows(context, args);
  }
};

// The numbers of `whole`, pixel by pixel, where the moves take them.
void add_pass(Lowering& lowering,
              const std::string& name,
              const View& whole,
              std::vector<PixelPiece> pieces,
              const ChannelMoves& moves) {
  Pass pass{.pixels = whole.count() / whole.dims[1], .pieces = std::move(pieces), .results = {}};
  Step step{.name = name, .kernel = "tenon:channel_rows", .always_succeeds = true};
  for (const PixelPiece& piece : pass.pieces)
    step.places.push_back(piece.place);
  step.bytes = static_cast<double>(whole.count());
  for (const MovedChannels& moved : moves.results) {
    View view{.type = whole.type,
              .dims = lowering.graph().values[static_cast<size_t>(moved.value)].dims};
    view.strides = channels_last_strides(view.dims);
    view.buffer = lowering.scratch(view.bytes());
    step.places.push_back(place_of(view));
    step.bytes += static_cast<double>(view.bytes());
    if (moved.is_real) view.quant = whole.quant;
    lowering.set_view(moved.value, view);
    pass.results.push_back({moved.from, kernels::plan_channel_chunks(moved.from)});
  }
  for (int node : moves.nodes)
    lowering.mark_done(node);
  step.kernel_function = [pass = std::move(pass)](const kernels::Context& context,
                                                  void* const* pointers) -> const char* {
    pass.run(context, pointers);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

bool fits(size_t n_pieces, const ChannelMoves& moves) {
  const auto most = static_cast<size_t>(kernels::kMostChannelPieces);
  return n_pieces <= most && !moves.results.empty() && moves.results.size() <= most;
}

// Bytes with the scale of all inputs, or that of the only QuantizeLinear behind.
View concat_type(const Lowering& lowering, const Node& node, int quantize) {
  const View& first = lowering.view(node.inputs[0]);
  View whole{.type = first.type, .quant = first.quant};
  if (quantize != kNone) {
    const Node& user = lowering.graph().nodes[static_cast<size_t>(quantize)];
    whole.type = lowering.graph().values[static_cast<size_t>(user.outputs[0])].type;
    whole.quant = *tensor_quant(lowering, user);
  }
  return whole;
}

}  // namespace

ChannelMoves find_channel_moves(const Lowering& lowering,
                                int value,
                                ElementType type,
                                const Quant& quant) {
  return Walk(lowering, value, type, quant).run();
}

bool lower_channel_concat(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[static_cast<size_t>(index)];
  const Dims& dims = graph.values[static_cast<size_t>(node.outputs[0])].dims;
  if (!is_image(dims) || positive_axis(node.integer("axis", 0), dims.size()) != 1) return false;
  const int quantize = only_quantize(lowering, node.outputs[0]);
  View whole = concat_type(lowering, node, quantize);
  if (!whole.is_quantized() || kernels::element_bytes(whole.type) != 1) return false;
  whole.dims = dims;
  std::vector<PixelPiece> pieces;
  bool has_gaps = false;
  for (int input : node.inputs) {
    std::optional<PixelPiece> piece = pixel_piece(lowering.view(input), whole);
    if (!piece || (quantize == kNone && piece->quantized.table != nullptr)) return false;
    has_gaps = has_gaps || piece->stride != piece->channels;
    pieces.push_back(std::move(*piece));
  }
  const int first =
      quantize == kNone ? node.outputs[0] : graph.nodes[static_cast<size_t>(quantize)].outputs[0];
  const ChannelMoves moves = find_channel_moves(lowering, first, whole.type, whole.quant);
  const bool gains = moves.is_shuffle || moves.results.size() > 1 || has_gaps;
  if (!gains || !fits(pieces.size(), moves)) return false;
  if (quantize != kNone) lowering.mark_done(quantize);
  add_pass(lowering, node.name, whole, std::move(pieces), moves);
  return true;
}

bool lower_channel_shuffle(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[static_cast<size_t>(index)];
  const View whole = lowering.view(node.inputs[0]);
  const bool are_bytes = whole.is_quantized() && kernels::element_bytes(whole.type) == 1;
  if (node.op != "Reshape" || !are_bytes || !is_image(whole.dims)) return false;
  std::optional<PixelPiece> piece = pixel_piece(whole, whole);
  if (!piece || lowering.is_constant_view(whole)) return false;
  Walk walk(lowering, node.inputs[0], whole.type, whole.quant);
  if (!walk.start(index)) return false;
  const ChannelMoves moves = walk.run();
  if (!moves.is_shuffle || !fits(1, moves)) return false;
  add_pass(lowering, node.name, whole, {std::move(*piece)}, moves);
  return true;
}

}  // namespace tenon::onednn
