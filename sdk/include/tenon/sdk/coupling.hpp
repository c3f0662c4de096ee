// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node states about its axes: where the terms of its row stand, and the family and the keys
// of the column `coupling` of its operator's row (abi/quant.md), each key an attribute of the node
// or one of its inputs.

#include <optional>
#include <string_view>
#include <vector>

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/match.hpp"

namespace tenon {

// Where the terms of a row's axes stand in this node; nothing where its operands do not fit them.
inline std::optional<std::vector<tn_axes_place>> axes_places(Node node) {
  std::vector<tn_axes_place> places;
  uint64_t n = 0;
  for (int round = 0; round < 2; ++round) {  // first how many there are
    places.resize(n);
    Status laid(services.columns->layout(node.graph, node.id, places.data(), places.size(), &n));
    if (!laid.ok()) return std::nullopt;
  }
  return places;
}

class Stated {
 public:
  explicit Stated(Node node) : node_(node), columns_(node.columns()) {}

  uint32_t family() const { return columns_ ? columns_->coupling : TN_COUPLING_NONE; }

  bool names(std::string_view key) const { return find(key) != nullptr; }  // the row does
  // Whether the row has the key and the node the attribute or the input.
  bool has(std::string_view key) const {
    const tn_coupling_key* at = find(key);
    if (!at) return false;
    return at->input < 0 ? node_.attr(view(at->attribute)).tag != TN_ANY_NONE
                         : static_cast<bool>(value(*at));
  }
  // Nothing where the node lacks it, or an input is no constant.
  std::optional<std::vector<int64_t>> ints(std::string_view key) const {
    if (!has(key)) return std::nullopt;
    const tn_coupling_key& at = *find(key);
    if (at.input >= 0) return constant_ints(value(at));
    tn_any any = node_.attr(view(at.attribute));
    return any.tag == TN_ANY_I64 ? std::vector<int64_t>{any.v.i} : ints_of(any);
  }
  // Empty where the node lacks the attribute.
  std::string_view text(std::string_view key) const {
    const tn_coupling_key* at = find(key);
    return at && at->input < 0 ? node_.attr_text(view(at->attribute)) : std::string_view();
  }
  int64_t integer(std::string_view key, int64_t fallback) const {
    auto all = ints(key);
    return all && all->size() == 1 ? all->front() : fallback;
  }
  Value input(std::string_view key) const {
    const tn_coupling_key* at = find(key);
    return at && at->input >= 0 ? value(*at) : Value{};
  }
  // Puts other numbers in their place, with int64 for inputs; as it was where the row lacks the
  // key.
  Status set(EditView edit, std::string_view key, const std::vector<int64_t>& numbers) const {
    const tn_coupling_key* at = find(key);
    if (!at) return {};
    if (at->input < 0) return edit.set_attr(node_, {view(at->attribute), numbers});
    TN_TRY(made, edit.ints(numbers, cat(node_.name(), "_", key)));
    return edit.set_input(node_, static_cast<uint64_t>(at->input), made);
  }
  Status set(EditView edit, std::string_view key, int64_t number) const {
    const tn_coupling_key* at = find(key);
    if (!at || at->input >= 0) return set(edit, key, std::vector<int64_t>{number});
    return edit.set_attr(node_, {view(at->attribute), number});
  }
  Status drop(EditView edit, std::string_view key) const {
    const tn_coupling_key* at = find(key);
    return at && at->input < 0 ? edit.set_attr(node_, {view(at->attribute), tn_any{}}) : Status();
  }

 private:
  const tn_coupling_key* find(std::string_view key) const {
    for (uint64_t i = 0; columns_ && i < columns_->n_coupling_keys; ++i)
      if (view(columns_->coupling_keys[i].key) == key) return &columns_->coupling_keys[i];
    return nullptr;
  }
  Value value(const tn_coupling_key& key) const {
    return node_.input(static_cast<uint64_t>(key.input));
  }

  Node node_;
  const tn_op_columns* columns_;
};

}  // namespace tenon
