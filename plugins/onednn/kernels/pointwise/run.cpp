// SPDX-License-Identifier: Apache-2.0
// Running a plan: for each tile, load the inputs that are not f32 in memory already, run the
// instructions, store the outputs.

#include <algorithm>
#include <array>

#include "../code/pointwise_code.h"
#include "../kernel_table.h"
#include "../pointwise.h"

namespace tenon::onednn::kernels {

namespace {

// An output past this size would evict what the next node reads, and itself.
constexpr int64_t kStreamBytes = int64_t{24} << 20;

}  // namespace

struct PointwisePlan::Frame {
  const KernelTable* table;
  const PointwiseOps* ops;
  int64_t lanes;
  std::span<const void* const> sources;
  std::span<void* const> targets;
};

// The runs of the innermost dimension within elements [at, at + n) of the iteration space; whole
// ones that follow each other along the next dimension are one grid. Calls f(the grid in the edge,
// the position in the tile).
template <class F>
static void for_each_grid(
    const int64_t* dims, const int64_t* strides, int64_t rank, int64_t at, int64_t n, const F& f) {
  const int64_t inner = dims[rank - 1];
  int64_t index[kPointwiseMaxRank] = {};
  int64_t rest = at / inner;
  int64_t offset = 0;
  for (int64_t d = rank - 2; d >= 0; --d) {
    index[d] = rest % dims[d];
    rest /= dims[d];
    offset += index[d] * strides[d];
  }
  int64_t column = at % inner;
  RowGrid grid{.row_stride = rank > 1 ? strides[rank - 2] : 0, .stride = strides[rank - 1]};
  for (int64_t done = 0; done < n;) {
    const bool is_whole = rank > 1 && column == 0 && n - done >= inner;
    grid.offset = offset + column * grid.stride;
    grid.length = std::min(n - done, inner - column);
    grid.rows = is_whole ? std::min((n - done) / inner, dims[rank - 2] - index[rank - 2]) : 1;
    f(grid, done);
    done += grid.rows * grid.length;
    column = 0;
    for (int64_t d = rank - 2, steps = grid.rows; d >= 0; --d, steps = 1) {
      offset += steps * strides[d];
      index[d] += steps;
      if (index[d] < dims[d]) break;
      offset -= index[d] * strides[d];
      index[d] = 0;
    }
  }
}

void PointwisePlan::load_rows(
    const Frame& frame, uint32_t i, int64_t at, int64_t n, float* dst) const {
  const Edge& edge = inputs_[i];
  const Source src{frame.sources[i], edge.type, edge.quant};
  if (edge.is_flat) return frame.table->load_f32(src, at, n, dst);
  for_each_grid(dims_, edge.strides, rank_, at, n, [&](const RowGrid& grid, int64_t to) {
    frame.table->load_grid(src, grid, dst + to);
  });
}

// Of an element of the iteration space, in elements of the edge.
int64_t PointwisePlan::offset_of(const Edge& edge, int64_t at) const {
  int64_t offset = 0;
  for (int64_t d = rank_ - 1; d >= 0; --d) {
    offset += at % dims_[d] * edge.strides[d];
    at /= dims_[d];
  }
  return offset;
}

void PointwisePlan::load_constants_and_scalars(const Frame& frame, float* arena) const {
  for (float value : constants_) {
    std::fill_n(arena, kSplatFloats, value);
    arena += kSplatFloats;
  }
  for (uint32_t i = 0; i < inputs_.size(); ++i, arena += kSplatFloats) {
    if (!inputs_[i].is_scalar) continue;
    frame.table->load_f32({frame.sources[i], inputs_[i].type, inputs_[i].quant}, 0, 1, arena);
    std::fill_n(arena, kSplatFloats, arena[0]);
  }
}

PointwiseOperand PointwisePlan::load_input(
    const Frame& frame, uint32_t i, int64_t at, int64_t n, float* arena, int64_t* loaded_at) const {
  const Edge& edge = inputs_[i];
  float* splat = arena + (static_cast<int64_t>(constants_.size()) + i) * kSplatFloats;
  if (edge.is_scalar) return {splat, 0};
  // Whole registers of f32 are read where they lie, if they stay there until all is stored.
  const bool in_place = edge.type == ElementType::kF32 && n % frame.lanes == 0 && !edge.is_stored;
  const float* data = static_cast<const float*>(frame.sources[i]);
  if (edge.is_flat && in_place) return {data + at, 1};
  if (in_place && edge.run > 0 && at % edge.run + n <= edge.run)
    return {data + offset_of(edge, at), 1};
  float* loaded = tile(arena, n_tiles_used_ + i);
  // The phase of what the tile holds; a longer load of the same phase serves as well.
  const int64_t phase = edge.is_periodic ? at % dims_[rank_ - 1] : -1;
  if (phase >= 0 && phase == loaded_at[i]) return {loaded, 1};
  load_rows(frame, i, at, n, loaded);
  if (n == tile_) loaded_at[i] = phase;
  return {loaded, 1};
}

bool PointwisePlan::streams(const Edge& edge) const {
  return count_ * element_bytes(edge.type) >= kStreamBytes;
}

void PointwisePlan::store_output(
    const Frame& frame, uint32_t i, int64_t at, int64_t n, const float* src) const {
  const Edge& edge = outputs_[i];
  const Target dst{frame.targets[i], edge.type, edge.quant};
  if (edge.is_flat) return frame.table->store_f32(src, n, dst, at, streams(edge));
  for_each_grid(dims_, edge.strides, rank_, at, n, [&](const RowGrid& grid, int64_t from) {
    for (int64_t r = 0; r < grid.rows; ++r)
      frame.table->store_f32(src + from + r * grid.length, grid.length, dst,
                             grid.offset + r * grid.row_stride, streams(edge));
  });
}

PointwiseOperand PointwisePlan::resolve(Operand operand,
                                        const PointwiseOperand* inputs,
                                        float* arena) const {
  if (operand.place == Place::kInput) return inputs[operand.index];
  if (operand.place == Place::kTile) return {tile(arena, operand.index), 1};
  return {arena + operand.index * kSplatFloats, 0};
}

PointwiseOperand PointwisePlan::computed(const Frame& frame,
                                         uint32_t output,
                                         const PointwiseOperand* inputs,
                                         float* arena) const {
  if (has_code(*frame.table)) return {tile(arena, code_tiles_ + output), 1};
  return resolve(outputs_[output].value, inputs, arena);
}

void PointwisePlan::store_outputs(const Frame& frame,
                                  int64_t at,
                                  int64_t n,
                                  const PointwiseOperand* inputs,
                                  float* arena,
                                  bool is_direct) const {
  float* spare = tile(arena, n_tiles_used_ + static_cast<int64_t>(inputs_.size()));
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    if (is_direct && i == direct_) continue;
    const PointwiseOperand value = computed(frame, i, inputs, arena);
    if (value.step == 0) std::fill_n(spare, n, value.data[0]);
    store_output(frame, i, at, n, value.step == 0 ? spare : value.data);
  }
}

void PointwisePlan::run_code_of_tile(const Frame& frame,
                                     int64_t at,
                                     int64_t n,
                                     const PointwiseOperand* inputs,
                                     float* arena,
                                     bool is_direct) const {
  std::array<void*, code::PointwiseCode::kMostEdges> pointers;
  for (uint64_t i = 0; i < inputs_.size(); ++i)
    pointers[i] = const_cast<float*>(inputs[i].data);
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    const bool is_in_place = is_direct && i == direct_;
    pointers[inputs_.size() + i] =
        is_in_place ? static_cast<float*>(frame.targets[i]) + at : tile(arena, code_tiles_ + i);
  }
  generated_->run(pointers.data(), n, false);
}

void PointwisePlan::interpret_tile(const Frame& frame,
                                   int64_t at,
                                   int64_t n,
                                   const PointwiseOperand* inputs,
                                   float* arena,
                                   bool is_direct) const {
  const int64_t n_vectors = (n + frame.lanes - 1) / frame.lanes;
  for (const Instruction& step : code_) {
    float* dst = tile(arena, step.tile);
    if (is_direct && &step == &code_.back()) {
      dst = static_cast<float*>(frame.targets[static_cast<uint64_t>(direct_)]) + at;
    }
    frame.ops->op[step.op](dst, resolve(step.a, inputs, arena), resolve(step.b, inputs, arena),
                           resolve(step.c, inputs, arena), n_vectors);
  }
}

void PointwisePlan::run_tiles(const Frame& frame, int64_t lo, int64_t hi) const {
  alignas(64) float arena[kArenaFloats];
  int64_t loaded_at[kMaxInputs];
  PointwiseOperand inputs[kMaxInputs];
  std::fill_n(loaded_at, inputs_.size(), -1);
  load_constants_and_scalars(frame, arena);
  const auto compute =
      has_code(*frame.table) ? &PointwisePlan::run_code_of_tile : &PointwisePlan::interpret_tile;
  for (int64_t t = lo; t < hi; ++t) {
    const int64_t at = t * tile_;
    const int64_t n = std::min(tile_, count_ - at);
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      inputs[i] = load_input(frame, i, at, n, arena, loaded_at);
    }
    const bool is_direct = direct_ >= 0 && n % frame.lanes == 0;
    (this->*compute)(frame, at, n, inputs, arena, is_direct);
    store_outputs(frame, at, n, inputs, arena, is_direct);
  }
}

// The work in units of at most kUnit elements of one row; neighbours in a row are run as one.
void PointwisePlan::run_code(const Frame& frame, int64_t lo, int64_t hi) const {
  const int64_t inner = dims_[rank_ - 1];
  const int64_t per_row = (inner + kUnit - 1) / kUnit;
  const bool past_caches = std::any_of(outputs_.begin(), outputs_.end(),
                                       [this](const Edge& edge) { return streams(edge); });
  const uint64_t n_edges = inputs_.size() + outputs_.size();
  std::array<char*, code::PointwiseCode::kMostEdges> bases;
  std::array<void*, code::PointwiseCode::kMostEdges> pointers;
  for (uint64_t e = 0; e < n_edges; ++e) {
    const void* data = e < inputs_.size() ? frame.sources[e] : frame.targets[e - inputs_.size()];
    bases[e] = static_cast<char*>(const_cast<void*>(data));
  }
  int64_t index[kPointwiseMaxRank] = {};
  for (int64_t d = rank_ - 2, row = lo / per_row; d >= 0; --d) {
    index[d] = row % dims_[d];
    row /= dims_[d];
  }
  for (int64_t unit = lo; unit < hi;) {
    const int64_t first = unit % per_row;
    const int64_t n_units = std::min(per_row - first, hi - unit);
    const int64_t begin = first * kUnit;
    const int64_t end = std::min(inner, (first + n_units) * kUnit);
    for (uint64_t e = 0; e < n_edges; ++e) {
      const Edge& edge = e < inputs_.size() ? inputs_[e] : outputs_[e - inputs_.size()];
      int64_t offset = begin * edge.strides[rank_ - 1];
      for (int64_t d = 0; d < rank_ - 1; ++d)
        offset += index[d] * edge.strides[d];
      pointers[e] = bases[e] + offset * element_bytes(edge.type);
    }
    generated_->run(pointers.data(), end - begin, past_caches);
    unit += n_units;
    for (int64_t d = rank_ - 2; d >= 0 && ++index[d] == dims_[d]; --d)
      index[d] = 0;
  }
}

PointwisePlan::Work PointwisePlan::work(const Context& context) const {
  const int64_t bytes = bytes_per_element_ + 4 * static_cast<int64_t>(code_.size());
  if (count_ == 0) return {0, bytes};
  if (is_one_row_ && has_code(*context.table)) return {1, count_ * bytes};
  if (in_tiles_ || !has_code(*context.table)) return {(count_ + tile_ - 1) / tile_, tile_ * bytes};
  const int64_t inner = dims_[rank_ - 1];
  return {count_ / inner * ((inner + kUnit - 1) / kUnit), std::min(inner, kUnit) * bytes};
}

bool PointwisePlan::has_code(const KernelTable& table) const {
  return generated_ != nullptr && &table == &kernel_table(level_);
}

void PointwisePlan::run_units(const Context& context,
                              std::span<const void* const> sources,
                              std::span<void* const> targets,
                              int64_t lo,
                              int64_t hi) const {
  Frame frame{context.table, nullptr, 0, sources, targets};
  if (!in_tiles_ && has_code(*context.table)) return run_code(frame, lo, hi);
  frame.table->pointwise_ops(&frame.ops, &frame.lanes);
  run_tiles(frame, lo, hi);
}

// Steps of a loop may be over small tensors: nothing is divided or looked up for it.
void PointwisePlan::run_row(std::span<const void* const> sources,
                            std::span<void* const> targets) const {
  std::array<void*, code::PointwiseCode::kMostEdges> pointers;
  void** next = pointers.data();
  for (const void* source : sources)
    *next++ = const_cast<void*>(source);
  std::copy(targets.begin(), targets.end(), next);
  generated_->run(pointers.data(), count_, false);
}

void PointwisePlan::run(const Context& context,
                        std::span<const void* const> sources,
                        std::span<void* const> targets) const {
  if (is_one_row_ && has_code(*context.table)) return run_row(sources, targets);
  const Work all = work(context);
  parallel_for(context.parallel, all.units, grain_rows(all.unit_bytes),
               [&](int64_t lo, int64_t hi) { run_units(context, sources, targets, lo, hi); });
}

}  // namespace tenon::onednn::kernels
