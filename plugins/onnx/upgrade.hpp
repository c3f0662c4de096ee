// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the opset of the file to the canonical one, node by node. Each row says what changed in one
// operator at one opset; rows of the opsets after the file's are applied in order. Opsets whose new
// definition only allows more (types, ranks, new attributes with the old meaning as default) have
// no row. Rows of kEveryOpset come last. To add one: a function in upgrades/, declared in
// upgrades/rows.hpp, and a line in kUpgrades.

#include "draft.hpp"

namespace tenon::onnx_plugin {

inline constexpr int64_t kOldestOpset = 7;
inline constexpr int64_t kCanonicalOpset = 28;
// Of rows for what every opset means and Tenon's operators do not.
inline constexpr int64_t kEveryOpset = kCanonicalOpset + 1;

using UpgradeFn = Status (*)(const EditView&, Draft&);

struct UpgradeRow {
  std::string_view type;
  int64_t opset;  // the first one that has the new meaning
  UpgradeFn apply;
};

// node: of ONNX's own domain, as opset `from` means it. Errors do not name the node.
Status upgrade(const EditView& edit, Draft& node, int64_t from);

}  // namespace tenon::onnx_plugin
