// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes run in 8 bits, which values are stored in 8 bits, and which of these share a scale.
//
// Compute nodes (convolution, product with a constant weight) are taken first. A joiner (same
// scale, table, requant) is taken when everything that it reads is 8-bit and something 8-bit reads
// its result, so that between two compute nodes that only joiners separate nothing is float. A
// result is not stored between a node and the pointwise node that alone reads it (convolution,
// residual, activation are one kernel, rounded once); every other value between taken nodes is.

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/sdk/any.hpp"
#include "tenon/sdk/pattern.hpp"

#include "role.hpp"

namespace tenon::quantizer {

// Of two activations: those whose result a Softmax reads, as in attention, or all of them.
enum class Products : uint8_t { kNone, kScores, kAll };

struct Choices {
  Selected selected = {};
  Products products = Products::kNone;
  bool weights_only = false;     // compute nodes alone, for passes that need no activations
  bool among_quantized = false;  // a model with nodes in 8 bits, which stay, is no error

  static Choices from(const Options& options);  // of TENON_STORAGE_OPTIONS
};

// The values whose ranges decide under any choice of products, each once.
Result<std::vector<Value>> observed_under_any_products(Graph graph, Choices choices);

struct Decision {
  Node node;
  Role role;
  bool taken = false;
  bool is_float = false;  // has a float result: worth a line in the report
  std::string why = {};   // when it is not taken
};

class Assignment {
 public:
  // graph: outlives this and is not edited meanwhile.
  static Result<Assignment> make(Graph graph, const Choices& choices);

  const std::vector<Decision>& nodes() const { return nodes_; }
  // Values stored in 8 bits, in topological order, and the group of each: one scale per group.
  const std::vector<Value>& values() const { return values_; }
  bool is_stored(Value v) const { return groups_.contains(v.id); }
  size_t group_of(Value v) const { return groups_.at(v.id); }
  size_t group_count() const { return group_count_; }
  // Values whose ranges decide: those that no node of the same group made from another.
  const std::vector<Value>& observed() const { return observed_; }
  bool is_taken(Node node) const;
  // Whether a taken node multiplies values that are both computed.
  bool has_product_of_activations() const;
  // Whether this taken node reads this input as a value in 8 bits.
  bool reads(Node node, uint64_t input) const;
  size_t taken_count() const;

 private:
  Status decide(Graph graph, const Choices& choices);
  std::string refuse_compute(const Decision& one, const Choices& choices) const;
  std::string refuse_product(Node node, const Product& product, const Choices& choices) const;
  std::string refuse_joiner(const Decision& one) const;
  bool drop_unjoined();
  void fuse();
  void collect();
  void share_scales();
  const Decision* maker(Value v) const;
  bool feeds_compute(Value v) const;
  bool is_made_for(const Decision& one, Value source) const;

  std::vector<Decision> nodes_;
  std::unordered_map<tn_node_id, size_t> index_;
  std::unordered_set<tn_value_id> inner_;  // results that are not stored
  std::vector<Value> values_, observed_;
  std::unordered_map<tn_value_id, size_t> groups_;
  size_t group_count_ = 0;
};

// Whether a normalizer alone reads the result, behind pointwise nodes (a factor, a mask) at most.
bool is_scores(Node product);

// Inputs that carry data: float, present, and no constants.
std::vector<uint64_t> data_inputs(Node node);

}  // namespace tenon::quantizer
