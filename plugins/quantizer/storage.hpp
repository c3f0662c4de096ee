// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights in 8 bits for nodes that run in float: tables whose rows are looked up, weights of
// recurrent cells, and what stands in the bodies of control-flow nodes.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "insertion.hpp"

namespace tenon::quantizer {

enum class StoredAs : uint8_t {
  kChannels,  // a scale for each entry of the axis
  kColumns,   // the same, with factors of columns where these help
  kTable,     // rows that are looked up, with a scale each
};
struct StoredInput {
  int64_t input = 0, axis = 0;
  StoredAs how = StoredAs::kChannels;
};
// Inputs of a node that computes in float: finite float constants that are large enough to be worth
// it.
std::vector<StoredInput> storable_inputs(const Decision& one);

// What a graph still holds in float32 that is large enough to be worth fewer bits:
// [{"value", "node", "op", "bytes"}], by the first node that reads it.
nlohmann::ordered_json float_constants(Graph graph);

struct RoundedInput {
  Weight weight;
  std::vector<float> factors = {};  // its columns are multiplied by these; empty: by none

  std::vector<float> numbers() const;  // what the node reads then
};
RoundedInput rounded(const DLTensor& tensor, const StoredInput& stored, bool per_channel);

struct StoragePlan {
  Selected selected = {};
  bool per_channel = true;
};

class Storage {
 public:
  explicit Storage(StoragePlan plan) : plan_(std::move(plan)) {}

  // Of the nodes that the assignment left in float.
  Status run(EditView edit, const Assignment& assignment);
  // The weights of a compute node that stays in float.
  Status run_product(EditView edit, const Decision& one);
  // Of all nodes in bodies, of any depth; the graph is edited here.
  Status run_in_bodies(tn_graph* graph);

  // [{"node", "op", "weight_snr_db"}], with "columns" where these have factors
  const nlohmann::ordered_json& notes() const { return notes_; }

 private:
  Status store_weight(EditView edit, Node node, const StoredInput& stored);
  Status store_table(EditView edit, Node node, const StoredInput& stored);
  void note(Node node, double snr_db);
  Status run_in_body(tn_graph* graph, Node node, const std::string& name);

  StoragePlan plan_;
  nlohmann::ordered_json notes_ = nlohmann::ordered_json::array();
};

}  // namespace tenon::quantizer
