// SPDX-License-Identifier: Apache-2.0
#pragma once
// In which type a node computes under mixed precision: from the user's lists, a note on the node,
// or the column `cast` of its operator's row (tenon/role/op.h).

#include <cstdint>
#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::precision {

enum class Category {
  kLow,      // the low type
  kFp32,     // f32
  kPromote,  // the widest type of its inputs
  kFollow,   // the type of its first float input
  kKeep,     // what it had: nothing is known of the operator
  kBanned,
};
std::string_view category_name(Category category);

struct Rule {
  Category category = Category::kKeep;
  uint64_t own = 0;  // bit i: input i may have a type of its own and is never cast
  std::string by;    // who said so: "row", "note", "option low"
};

struct Lists {
  std::string device = "cpu", dtype = "bfloat16";
  // "O1": by notes and rows. "O2": the low type everywhere but in BatchNormalization and where
  // notes say otherwise; "O3": everywhere but where notes say otherwise.
  std::string level = "O1";
  std::vector<std::string> low, fp32, follow;
  // Operators that the low type is not defined for where the model goes; it need not have them.
  std::vector<std::string> lacking;

  static Lists read(const Options& options);
};

// A note with this key on a node, with a category's name, goes before its row: losses that are made
// of several nodes say so with it. Words behind it are of one low type: "fp32 float16=banned".
inline constexpr std::string_view kCastNote = "cast";

// An error when lists contradict each other or the note is not a category.
Result<Rule> rule_of(Node node, const Lists& lists);
// An error when a pattern of the lists fits none of the nodes.
Status check_lists(const Lists& lists, const std::vector<Node>& nodes);

}  // namespace tenon::precision
