// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is compared of two graphs, and what came of it.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/sdk/graph.hpp"

namespace tenon::metrics {

// Sums over all elements of one value.
struct Difference {
  std::string name, op, node;
  Value in_a, in_b;
  double signal = 0, noise = 0, dot = 0, other = 0, max_error = 0;
  std::string trouble = {};  // shapes that differ

  Status add(const DLTensor& a, const DLTensor& b);
  double ratio() const;  // noise to signal, the figure behind the decibels
  double cosine() const;
};

class Comparison {
 public:
  // with_layers: all values that both have; else those alone that the outputs' figures need.
  Comparison(Graph a, Graph b, bool with_layers);
  std::vector<Difference>& rows() { return rows_; }
  nlohmann::json report(uint64_t samples) const;

 private:
  void consider(Node node, Value value);
  void add_outputs();
  void keep_ends();
  void mark(Value value, std::set<size_t>* kept, int depth = 0) const;
  const Difference* row_of(Value value) const;
  std::optional<double> ancestral(Value value, int depth = 0) const;
  double inherited(Value value) const { return ancestral(value).value_or(0); }
  std::string why_no_figure(size_t i) const;
  nlohmann::json outputs() const;
  nlohmann::json layers() const;

  Graph a_, b_;
  std::vector<Difference> rows_;
  std::map<tn_value_id, size_t> row_of_;
};

}  // namespace tenon::metrics
