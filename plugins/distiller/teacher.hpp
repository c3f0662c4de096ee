// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model to learn from, and how it comes into the graph of the student: a copy under the scope
// "teacher", fed with what the student reads, its results behind StopGradient.

#include <string>
#include <vector>

#include "tenon/sdk/role/loss.hpp"

namespace tenon::distiller {

class Teacher {
 public:
  Teacher() = default;
  static Result<Teacher> from(const Options& options);
  // The model that the student was made of, where no other is named.
  static Result<Teacher> original(Graph student);
  explicit operator bool() const { return graph_.get() != nullptr; }
  Graph view() const { return graph_.view(); }

  // The output of this name, or the first when it is empty.
  Result<Value> output(const std::string& name) const;
  // The value of this name; says which there are when there is none.
  Result<Value> value(const std::string& name) const;
  // Copies what these values need into the graph; their counterparts there, in the same order.
  Result<std::vector<Value>> join(EditView edit,
                                  const Objective& objective,
                                  const std::vector<Value>& wanted) const;

 private:
  static Result<Teacher> share(const tn_graph* raw, std::string_view whose);
  OwnedGraph graph_;
};

// The value of this name that nodes of the graph make, of a float type. whose: "the student".
Result<Value> named_value(Graph graph, const std::string& name, std::string_view whose);

// What goes into a final Softmax or LogSoftmax, else the value itself: softening by a temperature
// is for scores.
Value scores_of(Value answer);

// Whether two shapes may be the same when the sizes that are open become known.
bool may_equal(const Type& a, const Type& b);

}  // namespace tenon::distiller
