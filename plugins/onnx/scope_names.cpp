// SPDX-License-Identifier: Apache-2.0
#include "scope_names.hpp"

namespace tenon::onnx_plugin {

void ScopeNames::bind(Value value, std::string name) {
  used_.insert(name);
  names_[value.id] = std::move(name);
}

bool ScopeNames::taken(std::string_view name) const {
  return used_.count(std::string(name)) || (around_ && around_->taken(name));
}

const std::string& ScopeNames::claim(Value value, std::string_view wanted) {
  std::string name(wanted);
  for (int i = 1; name.empty() || taken(name); ++i)
    name = cat(wanted, "_", i);
  used_.insert(name);
  return names_[value.id] = std::move(name);
}

const std::string& ScopeNames::of(Value value) const {
  static const std::string kNone;
  auto at = names_.find(value.id);
  return at == names_.end() ? kNone : at->second;
}

const std::string* ScopeNames::offered(const tn_tensor* tensor) const {
  auto at = offered_.find(tensor);
  if (at != offered_.end()) return &at->second;
  return around_ ? around_->offered(tensor) : nullptr;
}

}  // namespace tenon::onnx_plugin
