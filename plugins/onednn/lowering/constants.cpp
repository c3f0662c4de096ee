// SPDX-License-Identifier: Apache-2.0
#include "constants.hpp"

#include <utility>

namespace tenon::onednn {

Constants::Constants(Graph& graph) {
  for (Value& value : graph.values)
    if (Tensor held = std::exchange(value.constant, {}); held && value.count() > 0)
      by_data_.insert_or_assign(value.data, std::move(held));
}

void Constants::has_been_packed(const void* data) {
  auto found = by_data_.find(data);
  if (found == by_data_.end()) return;
  services.tensor->unneeded(found->second.get());
  by_data_.erase(found);  // the address may be that of something else from now on
}

uint64_t Constants::identity(const void* data) const {
  auto found = by_data_.upper_bound(data);
  if (found == by_data_.begin()) return 0;
  const auto& [begin, tensor] = *--found;
  const auto offset =
      static_cast<uint64_t>(static_cast<const char*>(data) - static_cast<const char*>(begin));
  return offset < services.tensor->bytes(tensor.get()) ? tensor.identity() : 0;
}

std::vector<Tensor> Constants::read_in_place(const Plan& plan) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    if (!plan.is_read[i]) continue;
    if (auto found = by_data_.find(plan.buffers[i].data); found != by_data_.end())
      out.push_back(found->second);
  }
  by_data_.clear();
  return out;
}

}  // namespace tenon::onednn
