// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a product of quantized values takes along of what follows it: all of an epilogue, or only
// the bias.

#include <array>
#include <limits>
#include <vector>

#include "int8_product.hpp"

namespace tenon::onednn {

// What an epilogue op combines sums with, and how it is read.
struct GemmOperand {
  int value = kNone;  // kNone: the op has none
  View view = {};
  bool is_read = false;  // brought into the view's strides first; else it lies so
  int node = kNone;      // of the op
};
// What the kernel takes of an epilogue.
struct GemmEpilogue {
  Epilogue epilogue;
  float low = -std::numeric_limits<float>::infinity();  // in units
  float high = std::numeric_limits<float>::infinity();
  double unit = 1;  // of scales, bias and bounds: the result's scale, or 1 where there are ops
  std::vector<kernels::EpilogueOp> ops = {};
  std::vector<GemmOperand> others = {};  // by op
};
// [groups, padded] f32: what sums are multiplied with, and what is added; zeros behind the columns.
struct EpilogueRows {
  View scales;
  View bias;
};
EpilogueRows epilogue_rows(Lowering& lowering,
                           const GemmStep& step,
                           const GemmEpilogue& taken,
                           int64_t padded);
// GELU and a factor behind it as one cheaper operation, where the result's steps are coarse.
void shorten_gelu(std::vector<kernels::EpilogueOp>& ops, const kernels::Target& dst);
// The same in a kernel on tiles, where there may be a known factor for each column as well; before
// the operands are bound.
void tabulate_gelu(const Lowering& lowering, ElementType type, GemmEpilogue* taken);

GemmEpilogue gemm_epilogue_of(const Lowering& lowering,
                              const GemmStep& step,
                              const Epilogue& epilogue);
// Whether what is taken is all of the epilogue, and acts on each number alone.
bool is_whole_and_alone(const GemmEpilogue& taken, const Epilogue& epilogue);
// The type, rounding and bounds of a result that is stored as `dst`; of what the kernel is given
// when it runs nothing is set.
void set_result(const GemmEpilogue& taken,
                const View& dst,
                int64_t dst_stride,
                kernels::ProductResult* to);
// The operations of an epilogue with the operands of one run, while this lives.
class BoundOps {
 public:
  // others: where the operand of each operation lies, from the result's column `first` on.
  BoundOps(const std::vector<kernels::EpilogueOp>& ops,
           void* const* others,
           kernels::ProductResult* to,
           int64_t first = 0) {
    for (size_t i = 0; i < ops.size(); ++i) {
      ops_[i] = ops[i];
      const int64_t bytes = kernels::element_bytes(ops[i].other.type);
      ops_[i].other.data =
          static_cast<const char*>(others[i]) + first * ops[i].column_stride * bytes;
    }
    to->ops = ops_.data();
    to->n_ops = static_cast<int>(ops.size());
  }
  BoundOps(const BoundOps&) = delete;
  BoundOps& operator=(const BoundOps&) = delete;

 private:
  std::array<kernels::EpilogueOp, kernels::kMostEpilogueOps> ops_;
};
// Where the others lie, by op; may add steps that bring them into the result's layout.
std::vector<Place> bind(Lowering& lowering, const GemmEpilogue& taken);
// Memory for a result whose kernel reads each element of the others before it stores that element:
// the memory of a summand that lies as the result does, where nothing else needs it, or new memory.
// operands: of the product, as far as they are computed.
int result_memory(Lowering& lowering,
                  const GemmEpilogue& taken,
                  const std::vector<Place>& others,
                  const std::vector<Place>& operands,
                  const View& dst);

}  // namespace tenon::onednn
