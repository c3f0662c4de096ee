// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fused pointwise groups: one program of tn_expr_nodes over broadcast inputs. On a CPU with AVX2 or
// AVX-512 one loop of machine code is made for it (code/); where that cannot be, it is interpreted
// in tiles that stay in L1, each instruction a vectorised loop over the tile. All arithmetic is
// f32; the types of the edges are converted on the way (convert.h). a*b+c whose product has no
// other reader is one fused multiply-add. Integer programs (TN_EXPR_DOMAIN_INT, UINT) are not for
// this kernel.
//
// A plan is made once per shape and is immutable: any number of threads may run it at once, and a
// run allocates nothing. A target may be exactly one of the sources (same address, type and
// strides); any other overlap is not allowed. No alignment is required.
//
//   PointwiseSpec spec{.nodes = nodes, .results = {{last}}, .dims = dims, ...};
//   PointwisePlan plan;
//   if (std::string why = plan.make(spec); !why.empty()) ...
//   plan.run(context, sources, targets);

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/expr.h"

#include "context.h"
#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace code {
class CodeStore;
class PointwiseCode;
}  // namespace code
struct Program;

constexpr int64_t kPointwiseMaxRank = 8;

// One input or output: how it lies over PointwiseSpec::dims. A stride of 0 broadcasts (inputs
// only).
struct PointwiseEdge {
  ElementType type = ElementType::kF32;
  Quant quant = {};
  std::vector<int64_t> strides = {};  // [rank], in elements
};

struct PointwiseSpec {
  std::span<const tn_expr_node> nodes;  // TN_EXPR_INPUT's a counts `inputs`
  std::span<const uint32_t> results;    // the node that each output takes
  std::span<const int64_t> dims;        // of the outputs, in any order of axes
  std::span<const PointwiseEdge> inputs;
  std::span<const PointwiseEdge> outputs;
  // What machine code is made for; runs at other levels interpret, so that it is to be the level of
  // the contexts that the plan runs with. The baseline has none.
  Level level = best_level();
  // Has the machine code of other plans, which may serve; nullptr: each plan makes its own.
  code::CodeStore* code_store = nullptr;
};

class PointwisePlan {
 public:
  // Empty on success, else why this group cannot run here.
  [[nodiscard]] std::string make(const PointwiseSpec& spec);
  // sources[i], targets[i]: the first element of each edge.
  void run(const Context& context,
           std::span<const void* const> sources,
           std::span<void* const> targets) const;
  // The same in pieces: units that any thread may run, each about so many bytes of traffic.
  struct Work {
    int64_t units;
    int64_t unit_bytes;
  };
  Work work(const Context& context) const;
  void run_units(const Context& context,
                 std::span<const void* const> sources,
                 std::span<void* const> targets,
                 int64_t lo,
                 int64_t hi) const;
  // Why a run at the level of the spec interprets; empty where it runs generated code.
  const std::string& interpreted_because() const { return interpreted_because_; }
  // "generated", or "interpreted: " and why: for plans that people read.
  std::string how() const;

 private:
  // Where an instruction finds an operand.
  enum class Place : uint8_t { kConstant, kInput, kTile };
  struct Operand {
    Place place;
    uint32_t index;
  };
  struct Instruction {
    uint32_t op;
    uint32_t tile;  // destination
    Operand a, b, c;
  };
  struct Edge {
    ElementType type;
    Quant quant;
    int64_t strides[kPointwiseMaxRank];
    int64_t run;       // so many elements lie one behind the other: of the innermost axes
    bool is_flat;      // contiguous over the whole iteration space
    bool is_scalar;    // one element for all of it
    bool is_periodic;  // depends on the innermost dimension only
    bool is_stored;    // inputs: an output takes it as it is, and another may be written over it
    Operand value;     // outputs: what is stored
  };
  struct Frame;

  std::string check(const PointwiseSpec& spec) const;
  std::string lay_out(const PointwiseSpec& spec);
  void compile(const Program& program);
  void generate(const Program& program, const PointwiseSpec& spec);
  bool needs_tiles() const;
  int64_t tile_of(int64_t n_written) const;
  void choose_tile();
  int64_t fixed_floats() const;
  bool streams(const Edge& edge) const;
  int64_t offset_of(const Edge& edge, int64_t at) const;
  bool has_code(const KernelTable& table) const;
  void store_outputs(const Frame& frame,
                     int64_t at,
                     int64_t n,
                     const PointwiseOperand* inputs,
                     float* arena,
                     bool is_direct) const;
  PointwiseOperand computed(const Frame& frame,
                            uint32_t output,
                            const PointwiseOperand* inputs,
                            float* arena) const;
  // The tiles lie behind the constants and scalars.
  float* tile(float* arena, int64_t index) const { return arena + fixed_floats() + index * pitch_; }
  void interpret_tile(const Frame& frame,
                      int64_t at,
                      int64_t n,
                      const PointwiseOperand* inputs,
                      float* arena,
                      bool is_direct) const;
  void run_code_of_tile(const Frame& frame,
                        int64_t at,
                        int64_t n,
                        const PointwiseOperand* inputs,
                        float* arena,
                        bool is_direct) const;
  PointwiseOperand resolve(Operand operand, const PointwiseOperand* inputs, float* arena) const;
  void run_code(const Frame& frame, int64_t lo, int64_t hi) const;
  void run_row(std::span<const void* const> sources, std::span<void* const> targets) const;
  void run_tiles(const Frame& frame, int64_t lo, int64_t hi) const;
  void load_constants_and_scalars(const Frame& frame, float* arena) const;
  PointwiseOperand load_input(const Frame& frame,
                              uint32_t i,
                              int64_t at,
                              int64_t n,
                              float* arena,
                              int64_t* loaded_at) const;
  void load_rows(const Frame& frame, uint32_t i, int64_t at, int64_t n, float* dst) const;
  void store_output(const Frame& frame, uint32_t i, int64_t at, int64_t n, const float* src) const;

  static constexpr int64_t kMaxInputs = 64;
  static constexpr int64_t kArenaFloats = 12288;  // 48 KiB of stack per thread, about one L1
  static constexpr int64_t kSplatFloats = 16;     // a constant fills the widest register
  // Elements that one thread takes at a time of a row that generated code runs over.
  static constexpr int64_t kUnit = 4096;

  int64_t rank_ = 0;
  int64_t dims_[kPointwiseMaxRank] = {};
  int64_t count_ = 0;         // elements of the iteration space
  int64_t tile_ = 0;          // elements per tile
  int64_t pitch_ = 0;         // floats between tiles: tile_ in whole registers
  int64_t n_tiles_used_ = 0;  // tiles that instructions write
  int64_t direct_ = -1;       // the output that the last instruction may write in place
  int64_t bytes_per_element_ = 0;
  std::vector<float> constants_;
  std::vector<Instruction> code_;
  std::vector<Edge> inputs_;
  std::vector<Edge> outputs_;
  std::shared_ptr<const code::PointwiseCode> generated_;
  std::string interpreted_because_;
  Level level_ = Level::kBaseline;  // of the generated code
  bool is_one_row_ = false;         // generated code runs once over all of it
  bool in_tiles_ = false;           // generated code runs over tiles, and not where the edges lie
  int64_t code_tiles_ = 0;          // the first tile of those that it writes, one for each output
};

}  // namespace tenon::onednn::kernels
