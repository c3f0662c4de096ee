// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "tenon/sdk/fields.hpp"

#include "loop.hpp"

namespace tenon::trainer {

// Models are often traced or exported for a batch of 1.
Result<OwnedGraph> with_free_batch(const tn_graph* model, uint64_t* fixed) {
  *fixed = 0;
  std::vector<Type> given, types;
  for (Value input : Graph{model}.inputs())
    given.push_back(input.type());
  for (const Type& one : given) {
    TN_TRY(axis, sample_axis(one, given));
    if (axis > 0)
      return unsupported(cat("an input takes samples along axis ", axis, " of ", type_text(one),
                             ": training expects them along axis 0 of every input"));
    Type type = one;
    if (type.ranked && type.rank() > 0 && type.dims[0] >= 0) {
      *fixed = static_cast<uint64_t>(type.dims[0]);
      type.dims[0] = TN_DIM_UNKNOWN;
      type.symbols.resize(type.rank());
      type.symbols[0] = "batch";
    }
    types.push_back(type);
  }
  tn_graph* raw = nullptr;
  if (*fixed > 0) {
    std::vector<std::unique_ptr<TypeView>> views;
    std::vector<const tn_type*> bound_to;
    for (const Type& type : types) {
      views.push_back(std::make_unique<TypeView>(type));
      bound_to.push_back(views.back()->get());
    }
    Status bound(services.graph->bind(model, bound_to.data(), bound_to.size(), &raw));
    OwnedGraph freed = OwnedGraph::take(raw);
    bool free = bound.ok();
    for (Value output : free ? freed.view().outputs() : std::vector<Value>{}) {
      Type type = output.type();
      free = free && type.ranked && type.rank() > 0 && type.dims[0] < 0;
    }
    if (free) {
      *fixed = 0;
      return freed;
    }
  }
  return OwnedGraph::copy_of(model);
}

}  // namespace tenon::trainer
