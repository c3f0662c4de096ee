// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model for other shapes of its inputs than it declares.

#include <map>

#include "tenon/cxx/model.hpp"

namespace tenon::cxx {

// The model with these shapes in place of the ones that its inputs declare, where the two disagree:
// who gives a shape by name means it. Inference refuses one that the model cannot have.
inline Model with_shapes(const Model& model,
                         const std::map<std::string, std::vector<int64_t>>& shapes) {
  std::vector<Port> ports = model.inputs();
  std::vector<tn_type> types(ports.size());
  std::vector<const tn_type*> given(ports.size(), nullptr);
  std::string contradictions;
  for (size_t i = 0; i < ports.size(); ++i) {
    auto shape = shapes.find(ports[i].name);
    if (shape == shapes.end() || !ports[i].ranked) continue;
    Port wanted = ports[i];
    wanted.dims = shape->second;
    wanted.symbols.assign(wanted.dims.size(), "");
    bool agrees = wanted.dims.size() == ports[i].dims.size();
    for (size_t d = 0; agrees && d < wanted.dims.size(); ++d)
      agrees = ports[i].dims[d] < 0 || ports[i].dims[d] == wanted.dims[d];
    if (agrees) continue;
    contradictions += cat(contradictions.empty() ? "" : "; ", "input ", ports[i].name,
                          ": the model declares ", ports[i].text(), ", taken as ", wanted.text());
    types[i] = {sizeof(tn_type),      TN_KIND_TENSOR,
                ports[i].dtype,       static_cast<uint32_t>(shape->second.size()),
                shape->second.data(), nullptr};
    given[i] = &types[i];
  }
  if (contradictions.empty() || !model.states().empty()) return model.share();
  const Session& session = *model.session();
  session.log->write(session.ctx(), TN_LOG_WARNING, str(contradictions));
  tn_graph* raw = nullptr;
  check(session.graph->bind(model.get(), given.data(), given.size(), &raw));
  return {model.session(), raw};
}

}  // namespace tenon::cxx
