// SPDX-License-Identifier: Apache-2.0
#include "graph/attributes.hpp"

#include <algorithm>

#include "graph/graph.hpp"

namespace tenon::host {

Result<AnyRef> own(const tn_any& value, std::string_view what) {
  tn_any stored = value;
  std::shared_ptr<tn_graph> body;
  if (value.tag == TN_ANY_NONE || value.tag == TN_ANY_COMPONENT)
    return invalid(
        cat(what, ": expected a number, text, list, tensor or graph, got ", any_text(value)));
  if (const tn_graph* graph = graph_in(value)) {
    body = snapshot(*graph);
    stored.v.p = body.get();
  }
  Result<Any> copy = Any::copy_of(stored);
  if (!copy) return Status(TN_INVALID_ARGUMENT, what, "host", copy.status());
  return std::make_shared<const Any>(std::move(*copy));
}

const tn_graph* graph_in(const tn_any& value) {
  return value.tag == TN_ANY_GRAPH ? static_cast<const tn_graph*>(value.v.p) : nullptr;
}

namespace {

template <class List>
auto lower(List& list, std::string_view name) {
  return std::lower_bound(list.begin(), list.end(), name,
                          [](const NamedAny& a, std::string_view b) { return a.name < b; });
}

}  // namespace

const NamedAny* find(const NamedAnys& list, std::string_view name) {
  auto at = lower(list, name);
  return at != list.end() && at->name == name ? &*at : nullptr;
}

AnyRef assign(NamedAnys& list, std::string_view name, AnyRef value) {
  auto at = lower(list, name);
  bool present = at != list.end() && at->name == name;
  if (!value) {
    if (!present) return nullptr;
    AnyRef before = at->value;
    list.erase(at);
    return before;
  }
  if (present) {
    std::swap(at->value, value);
    return value;
  }
  list.insert(at, {std::string(name), std::move(value)});
  return nullptr;
}

}  // namespace tenon::host
