// SPDX-License-Identifier: Apache-2.0
#include "padded.hpp"

namespace tenon::quantizer {

Result<OwnedGraph> sized(Graph graph, std::span<const DLTensor> inputs) {
  std::vector<Type> types;
  for (const DLTensor& input : inputs)
    types.emplace_back(dtype_of(input),
                       std::vector<int64_t>(input.shape, input.shape + input.ndim));
  std::vector<TypeView> views(types.begin(), types.end());
  std::vector<const tn_type*> pointers;
  for (const TypeView& one : views)
    pointers.push_back(one.get());
  tn_graph* bound = nullptr;
  TN_CHECK(services.graph->bind(graph.raw, pointers.data(), pointers.size(), &bound));
  return OwnedGraph::take(bound);
}

Result<Padded> Padded::find(Graph graph,
                            const std::string& mask,
                            std::span<const Value> values,
                            Feed* feed) {
  Padded out;
  TN_TRY(found, PaddingMask::find(graph, mask));
  out.mask_ = std::move(found);
  if (!out.mask_ || feed->batches() == 0) return out;
  TN_TRY(batch, feed->load(0));
  TN_CHECK(out.mask_.read(batch.inputs));
  TN_TRY(known, sized(graph, batch.inputs));
  for (Value value : values) {
    const Type type = Value{known.get(), value.id}.type();
    if (type.is_static() && out.mask_.covers(type.dims))
      out.leading_[value.id] = out.mask_.leading(type.dims);
  }
  TN_CHECK(out.mask_.check_covers());
  return out;
}

}  // namespace tenon::quantizer
