// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights in 8 bits for nodes that run in float: tables whose rows are looked up, weights of
// recurrent cells, and what stands in the bodies of control-flow nodes.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "insertion.hpp"

namespace tenon::quantizer {

// A finite float constant that is large enough to be worth it.
bool is_storable(Value value, int64_t axis);

struct StoragePlan {
  Selected selected = {};
  bool per_channel = true;
};

// What convert may store of a model to train, as a note of its graph: what qat left in float
// by its options stays so. A graph without the note (from a file) says nothing, and all is stored.
Status keep_selected(EditView edit, const Selected& selected);
Selected kept_selected(Graph graph);
Status forget_selected(EditView edit);

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
  Status store_weight(EditView edit, Node node, int64_t input, int64_t axis);
  Status store_by_columns(EditView edit, Node node, int64_t input, int64_t axis);
  Status store_table(EditView edit, Node node, uint64_t input);
  void note(Node node, double snr_db);
  Status run_in_body(tn_graph* graph, Node node, const std::string& name);

  StoragePlan plan_;
  nlohmann::ordered_json notes_ = nlohmann::ordered_json::array();
};

}  // namespace tenon::quantizer
