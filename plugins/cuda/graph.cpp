// SPDX-License-Identifier: Apache-2.0
#include "graph.hpp"

#include "tenon/sdk/number.hpp"

#include "quantization.hpp"

namespace tenon::cuda {

Dims Imported::integers(int index) const {
  if (index == kNone || !value(index).constant) return {};
  Result<Dims> numbers = numbers_as<int64_t>(value(index).constant.dl());
  return numbers.ok() ? *numbers : Dims();
}

void Imported::link() {
  for (ValueInfo& value : values)
    value.producer = kNone;
  std::vector<NodeInfo> ordered = std::move(nodes);
  reorder(std::move(ordered));
}

Result<Imported> import_graph(const tn_graph* source) {
  TN_TRY(made, backend::import_graph<Imported>(source));
  for (NodeInfo& node : made.nodes)
    bind_quantization(made, &node);
  return made;
}

}  // namespace tenon::cuda
