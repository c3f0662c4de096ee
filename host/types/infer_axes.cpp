// SPDX-License-Identifier: Apache-2.0
#include "types/infer_rules.hpp"

namespace tenon::host {

Result<std::vector<Type>> axes_types(const Axes& axes,
                                     const std::vector<const Type*>& inputs,
                                     size_t n_outputs,
                                     const AxesAttributes& attributes) {
  AxesShapes shapes;
  const uint32_t dtype = !inputs.empty() && inputs[0] ? inputs[0]->dtype : TN_DTYPE_NONE;
  for (const Type* input : inputs) {
    if (input && input->rank == TN_RANK_UNKNOWN) {
      Type open;
      open.dtype = dtype;
      return std::vector<Type>(n_outputs, open);
    }
    shapes.emplace_back();
    if (!input) continue;
    shapes.back().emplace();
    for (uint32_t d = 0; d < input->rank; ++d)
      shapes.back()->push_back({input->dims[d], std::string(input->symbol(d))});
  }
  Parsed<AxesInferred> inferred = axes.infer(shapes, attributes);
  if (!inferred) return invalid(cat("axes ", axes.text(), ": ", inferred.error().text()));
  std::vector<Type> types;
  for (const AxesShape& shape : inferred->outputs) {
    types.emplace_back(dtype, std::vector<int64_t>{});
    for (const AxesDim& dim : shape)
      append(types.back(), dim);
  }
  return types;
}

}  // namespace tenon::host
