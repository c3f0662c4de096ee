// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cast nodes: at most one for each value and type, those that are already there included.

#include <map>
#include <utility>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::precision {

class Casts {
 public:
  explicit Casts(EditView edit) : edit_(edit) {}

  // The value in this type; itself when it has it.
  Result<Value> to(Value value, uint32_t dtype);
  // Lets all outputs and states of the graph that read `value` read it in the type that they had;
  // its shape is kept where inference finds none.
  Status outputs_to(Value value, const Type& had);
  // Takes out those that nothing reads after all.
  Status erase_unread();
  size_t count() const { return made_.size(); }

 private:
  EditView edit_;
  std::map<std::pair<tn_value_id, uint32_t>, Value> known_;
  std::vector<Node> made_;
};

}  // namespace tenon::precision
