// SPDX-License-Identifier: Apache-2.0
// Making a plan: check the program, order and merge the dimensions, turn nodes into instructions on
// a small set of tiles, choose the tile's length.

#include <algorithm>
#include <array>
#include <numeric>

#include "../code/code_store.h"
#include "../kernel_table.h"
#include "../pointwise.h"
#include "../pointwise_program.h"

namespace tenon::onednn::kernels {

namespace {

constexpr int64_t kMaxTile = 1024;

const PointwiseOps& baseline_ops() {
  const PointwiseOps* ops = nullptr;
  int64_t lanes = 0;
  kernel_table(Level::kBaseline).pointwise_ops(&ops, &lanes);
  return *ops;
}

// These give nothing where all is well, else why not.
std::string check_nodes(const PointwiseSpec& spec) {
  const PointwiseOps& ops = baseline_ops();
  if (spec.nodes.empty()) return "pointwise: expected at least one node, got none";
  for (uint32_t i = 0; i < spec.nodes.size(); ++i) {
    const tn_expr_node& node = spec.nodes[i];
    const std::string where = "pointwise: node " + std::to_string(i) + ": ";
    if (node.op == TN_EXPR_INPUT && node.a >= spec.inputs.size()) {
      return where + "expected an input below " + std::to_string(spec.inputs.size()) + ", got " +
             std::to_string(node.a);
    }
    if (node.op == TN_EXPR_CONST || node.op == TN_EXPR_INPUT) continue;
    if (node.op >= 192 || ops.op[node.op] == nullptr) {
      return where + "opcode " + std::to_string(node.op) + " has no float kernel";
    }
    const uint32_t operands[] = {node.a, node.b, node.c};
    for (int k = 0; k < arity(node.op); ++k) {
      if (operands[k] >= i) return where + "expected operands that are earlier nodes";
    }
  }
  return {};
}

std::string check_edges(std::span<const PointwiseEdge> edges, uint64_t rank) {
  for (const PointwiseEdge& edge : edges) {
    if (edge.strides.size() != rank) return "pointwise: expected one stride per dimension";
    if (!is_float_kernel_type(edge.type)) return "pointwise: expected a type of the float kernels";
    if (edge.quant.scale != 0 && element_bytes(edge.type) != 1)
      return "pointwise: expected a scale with 8-bit integers only";
  }
  return {};
}

// Axes of more than one element, from the outermost to the innermost of the first output.
std::vector<uint64_t> ordered_axes(const PointwiseSpec& spec) {
  std::vector<uint64_t> axes;
  for (uint64_t d = 0; d < spec.dims.size(); ++d)
    if (spec.dims[d] != 1) axes.push_back(d);
  const std::vector<int64_t>& order = spec.outputs[0].strides;
  std::stable_sort(axes.begin(), axes.end(),
                   [&](uint64_t a, uint64_t b) { return order[a] > order[b]; });
  return axes;
}

// Neighbours that every edge runs through without a gap, to be walked as one axis.
std::vector<std::vector<uint64_t>> merged_axes(const PointwiseSpec& spec) {
  std::vector<std::vector<uint64_t>> groups;
  for (uint64_t axis : ordered_axes(spec)) {
    auto is_seamless = [&](const PointwiseEdge& edge) {
      return edge.strides[groups.back().back()] == edge.strides[axis] * spec.dims[axis];
    };
    const bool merges = !groups.empty() && std::ranges::all_of(spec.inputs, is_seamless) &&
                        std::ranges::all_of(spec.outputs, is_seamless);
    if (!merges) groups.emplace_back();
    groups.back().push_back(axis);
  }
  return groups;
}

// By node: the last live node that reads it, or their number where it is a result.
std::vector<uint64_t> last_uses(const Program& program) {
  std::vector<uint64_t> last_use(program.nodes.size(), 0);
  for (uint64_t i = 0; i < program.nodes.size(); ++i) {
    const tn_expr_node& node = program.nodes[i];
    const uint32_t operands[] = {node.a, node.b, node.c};
    for (int k = 0; !program.dead[i] && k < arity(node.op); ++k)
      last_use[operands[k]] = i;
  }
  for (uint32_t result : program.results)
    last_use[result] = program.nodes.size();
  return last_use;
}

}  // namespace

std::string PointwisePlan::check(const PointwiseSpec& spec) const {
  if (std::string why = check_nodes(spec); !why.empty()) return why;
  if (spec.outputs.empty() || spec.outputs.size() != spec.results.size()) {
    return "pointwise: expected one result node per output";
  }
  for (uint32_t result : spec.results) {
    if (result >= spec.nodes.size()) return "pointwise: a result names no node";
  }
  if (spec.inputs.size() > kMaxInputs) return "pointwise: expected at most 64 inputs";
  std::string why = check_edges(spec.inputs, spec.dims.size());
  return why.empty() ? check_edges(spec.outputs, spec.dims.size()) : why;
}

std::string PointwisePlan::lay_out(const PointwiseSpec& spec) {
  count_ = 1;
  for (uint64_t d = 0; d < spec.dims.size(); ++d) {
    if (spec.dims[d] < 0) return "pointwise: expected dimensions of at least 0";
    if (__builtin_mul_overflow(count_, spec.dims[d], &count_)) {
      return "pointwise: the shape has too many elements";
    }
  }
  const std::vector<std::vector<uint64_t>> groups = merged_axes(spec);
  if (groups.size() > kPointwiseMaxRank) return "pointwise: more than 8 dimensions do not merge";
  rank_ = std::max<int64_t>(1, static_cast<int64_t>(groups.size()));
  std::fill_n(dims_, kPointwiseMaxRank, 1);
  for (uint64_t g = 0; g < groups.size(); ++g) {
    for (uint64_t axis : groups[g])
      dims_[g] *= spec.dims[axis];
  }
  auto lay = [&](const PointwiseEdge& from) {
    Edge edge{from.type, from.quant, {}, 0, true, true, true, false, {Place::kTile, 0}};
    int64_t dense = 1;
    for (int64_t g = rank_ - 1; g >= 0; --g) {
      const uint64_t group = static_cast<uint64_t>(g);
      edge.strides[g] = groups.empty() ? 1 : from.strides[groups[group].back()];
      edge.is_flat = edge.is_flat && edge.strides[g] == dense;
      edge.is_scalar = edge.is_scalar && (edge.strides[g] == 0 || count_ == 1);
      edge.is_periodic = edge.is_periodic && (g == rank_ - 1 || edge.strides[g] == 0);
      dense *= dims_[g];
      if (edge.is_flat) edge.run = dense;
    }
    return edge;
  };
  inputs_.clear();
  outputs_.clear();
  for (const PointwiseEdge& edge : spec.inputs)
    inputs_.push_back(lay(edge));
  for (const PointwiseEdge& edge : spec.outputs) {
    outputs_.push_back(lay(edge));
    if (count_ > 0 && outputs_.back().strides[rank_ - 1] != 1) {
      return "pointwise: expected outputs that share a contiguous innermost dimension";
    }
  }
  return {};
}

void PointwisePlan::compile(const Program& program) {
  const uint64_t n = program.nodes.size();
  std::vector<uint64_t> last_use = last_uses(program);
  constants_.clear();
  code_.clear();
  n_tiles_used_ = 0;
  std::vector<Operand> place(n, Operand{Place::kTile, 0});
  std::vector<uint32_t> free_tiles;
  for (uint64_t i = 0; i < n; ++i) {
    if (program.dead[i]) continue;
    const tn_expr_node& node = program.nodes[i];
    if (node.op == TN_EXPR_CONST) {
      place[i] = {Place::kConstant, static_cast<uint32_t>(constants_.size())};
      constants_.push_back(static_cast<float>(node.imm));
      continue;
    }
    if (node.op == TN_EXPR_INPUT) {
      place[i] = {Place::kInput, node.a};
      continue;
    }
    const int n_operands = arity(node.op);
    const std::array<uint32_t, 3> operands = {node.a, n_operands > 1 ? node.b : node.a,
                                              n_operands > 2 ? node.c : node.a};
    // Freed before the destination is chosen: an instruction may write over its operand.
    for (int k = 0; k < n_operands; ++k) {
      const uint32_t from = operands[static_cast<uint64_t>(k)];
      if (place[from].place != Place::kTile || last_use[from] != i) continue;
      free_tiles.push_back(place[from].index);
      last_use[from] = n + 1;  // once, where an operand is named twice
    }
    if (free_tiles.empty()) free_tiles.push_back(static_cast<uint32_t>(n_tiles_used_++));
    place[i] = {Place::kTile, free_tiles.back()};
    free_tiles.pop_back();
    code_.push_back(
        {node.op, place[i].index, place[operands[0]], place[operands[1]], place[operands[2]]});
  }
  direct_ = -1;
  int64_t n_same = 0;
  for (uint64_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].value = place[program.results[i]];
    const bool takes_input = outputs_[i].value.place == Place::kInput;
    if (takes_input && outputs_.size() > 1) inputs_[outputs_[i].value.index].is_stored = true;
    const bool is_last = !code_.empty() && outputs_[i].value.place == Place::kTile &&
                         outputs_[i].value.index == code_.back().tile;
    if (!is_last) continue;
    n_same += 1;
    const bool fits = outputs_[i].type == ElementType::kF32 && outputs_[i].is_flat;
    direct_ = fits && !streams(outputs_[i]) ? static_cast<int64_t>(i) : -1;
  }
  if (n_same != 1) direct_ = -1;
}

// Rows of a few elements cost more to begin than to compute: many of them are laid out in a tile,
// one behind the other, and so are operands with gaps.
bool PointwisePlan::needs_tiles() const {
  constexpr int64_t kShortRow = 48;
  const int64_t inner = rank_ - 1;
  return (rank_ > 1 && dims_[inner] < kShortRow) ||
         std::any_of(inputs_.begin(), inputs_.end(), [inner](const Edge& edge) {
           return !edge.is_scalar && edge.strides[inner] != 0 && edge.strides[inner] != 1;
         });
}

void PointwisePlan::generate(const Program& program, const PointwiseSpec& spec) {
  const Level level = spec.level;
  generated_.reset();
  is_one_row_ = false;
  level_ = level;
  in_tiles_ = needs_tiles();
  code_tiles_ = n_tiles_used_;
  if (level == Level::kBaseline) {
    interpreted_because_ = "no AVX2";
    return;
  }
  const int64_t n_outputs = in_tiles_ ? static_cast<int64_t>(outputs_.size()) : 0;
  if (tile_of(n_tiles_used_ + n_outputs) == 0) {
    interpreted_because_ = "too many operands for tiles";
    return;
  }
  // What a tile holds is f32.
  auto code_edge = [this](const Edge& edge, bool is_repeated) {
    return in_tiles_ ? code::CodeEdge{.is_repeated = is_repeated}
                     : code::CodeEdge{edge.type, edge.quant, is_repeated};
  };
  std::vector<code::CodeEdge> sources;
  std::vector<code::CodeEdge> targets;
  for (const Edge& edge : inputs_)
    sources.push_back(
        code_edge(edge, edge.is_scalar || (!in_tiles_ && edge.strides[rank_ - 1] == 0)));
  for (const Edge& edge : outputs_)
    targets.push_back(code_edge(edge, false));
  const code::Isa isa = level == Level::kAvx512 ? code::Isa::kAvx512 : code::Isa::kAvx2;
  code::CodeStore own;
  code::CodeStore& code_store = spec.code_store == nullptr ? own : *spec.code_store;
  generated_ = code_store.pointwise(program, sources, targets, isa, &interpreted_because_);
  if (generated_ == nullptr) return;
  n_tiles_used_ += n_outputs;
  is_one_row_ = !in_tiles_ && count_ > 0 && rank_ == 1 && count_ <= kUnit;
}

std::string PointwisePlan::how() const {
  return generated_ != nullptr ? "generated" : "interpreted: " + interpreted_because_;
}

int64_t PointwisePlan::fixed_floats() const {
  return static_cast<int64_t>(constants_.size() + inputs_.size()) * kSplatFloats;
}

// Elements of each tile, where so many are written beside those of the inputs; 0: there is no room.
int64_t PointwisePlan::tile_of(int64_t n_written) const {
  const int64_t buffers = n_written + static_cast<int64_t>(inputs_.size()) + 1;
  return std::max<int64_t>(0,
                           std::min(kMaxTile, (kArenaFloats - fixed_floats()) / buffers / 64 * 64));
}

void PointwisePlan::choose_tile() {
  tile_ = tile_of(n_tiles_used_);
  pitch_ = tile_;
  // A whole number of periods lets a per-channel operand be loaded once for all tiles.
  const int64_t inner = dims_[rank_ - 1];
  const bool periodic = std::any_of(inputs_.begin(), inputs_.end(), [](const Edge& edge) {
    return edge.is_periodic && !edge.is_scalar && !edge.is_flat;
  });
  if (periodic && rank_ > 1 && inner > 0 && inner <= tile_) {
    const int64_t step = std::lcm(inner, kSplatFloats);
    tile_ = step <= tile_ ? tile_ / step * step : tile_ / inner * inner;
  }
  bytes_per_element_ = 0;
  for (const Edge& edge : inputs_)
    bytes_per_element_ += element_bytes(edge.type);
  for (const Edge& edge : outputs_)
    bytes_per_element_ += element_bytes(edge.type);
}

std::string PointwisePlan::make(const PointwiseSpec& spec) {
  if (std::string why = check(spec); !why.empty()) return why;
  if (std::string why = lay_out(spec); !why.empty()) return why;
  const Program program(spec.nodes, spec.results);
  compile(program);
  generate(program, spec);
  choose_tile();
  if (tile_ <= 0) return "pointwise: too many values are live at once";
  return {};
}

}  // namespace tenon::onednn::kernels
