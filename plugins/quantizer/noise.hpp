// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much each node of an assignment suffers alone: one graph computes every node as it is, once
// more with rounded weights and once more with rounded activations, all of them on the float
// model's own numbers, and sums up the squares of the differences. So one pass over the data
// measures every node, weights and activations apart, whatever the number of nodes.

#include <string>
#include <vector>

#include "tenon/sdk/feed.hpp"

#include "assignment.hpp"
#include "insertion.hpp"
#include "padded.hpp"
#include "scale.hpp"

namespace tenon::quantizer {

struct NodeNoise {
  std::string node, op;
  bool is_stored = false;  // its weights are kept in 8 bits, and it computes in float
  bool is_compute = false;
  uint64_t weight_elements = 0;
  double signal = 0;                    // sum of squares of the node's result
  double weights = 0, activations = 0;  // of what their rounding does to the result

  // Noise to signal of the result: what a model loses by this node alone, in the end about as much
  // (noises of nodes add up; Nagel et al. 2021, section 4). Not finite counts as the largest.
  double ratio() const;
};

class Noise {
 public:
  // params: one per group of the assignment. graph: outlives the assignment only. padded: of the
  // nodes' results.
  static Result<Noise> make(Graph graph,
                            const Assignment& assignment,
                            const std::vector<Params>& params,
                            const InsertionPlan& plan,
                            const Selected& selected,
                            Padded padded);
  // What is measured of a node: the first of its results in float, or none.
  static Value result_of(Node node);
  // Runs the float model once on all batches of the feed.
  Status measure(tn_ctx* ctx,
                 Feed* feed,
                 const std::vector<std::string>& backends,
                 const Cancel& cancel);
  const std::vector<NodeNoise>& nodes() const { return nodes_; }

 private:
  struct Tap {  // a scalar of the graph, and where its sum goes
    Value value;
    size_t node;
    double NodeNoise::* sum;
  };
  OwnedGraph graph_;
  std::vector<NodeNoise> nodes_;
  std::vector<Tap> taps_;
  Padded padded_;
  friend class NoiseBuilder;
};

}  // namespace tenon::quantizer
