// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loss of a model on batches of a data set, for scores that need to know it.

#include <map>
#include <string>
#include <string_view>

#include "tenon/sdk/feed.hpp"

namespace tenon::pruner {

inline constexpr std::string_view kLoss = "pruner/loss";  // the output of with_loss

struct BatchPlan {
  FeedOptions data;
  std::string label;              // field of the data set
  std::string loss;               // "cross_entropy" or "mse"
  int64_t axis = 1;               // of the classes, from the end where negative
  uint64_t orders = 1, seed = 0;  // how often a batch takes the channels of a group out
};

// By the options below.
Result<BatchPlan> batch_plan(tn_ctx* ctx, const Options& options);

// needs: `,"needs": ...` or nothing, of all but the data.
// clang-format off
#define PRUNER_LOSS_OPTIONS(needs) \
  R"("data": {"type": "component", "role": "tenon.dataset/1", "description": "for scores by gradients (with labels) or activations: a data set, an id or a file"},)" \
  R"("label": {"type": "string", "default": "label")" needs R"(, "description": "field of the data set that the first output should be"},)" \
  R"("loss": {"type": "string", "enum": ["cross_entropy", "mse"], "default": "cross_entropy")" needs R"(, "description": "of the first output, whose gradients are used"},)" \
  R"("axis": {"type": "integer", "default": 1)" needs R"(, "description": "of the classes in the first output, for cross_entropy; negative: from the end"},)" \
  R"("samples": {"type": "integer", "minimum": 1, "default": 256)" needs R"(, "description": "calibration samples, at most"},)" \
  R"("batch": {"type": "integer", "minimum": 1, "default": 16)" needs R"(, "description": "batch size; scores are averaged over batches"})"
// clang-format on

// A feed of the plan's data set for the model. fields: of inputs whose field has another name.
// what: why there must be one, for messages.
Result<Feed> feed_of(tn_ctx* ctx,
                     const BatchPlan& plan,
                     Graph model,
                     std::map<std::string, std::string> fields,
                     std::string_view what);

// What the inputs of a batch have to be, or scores mean nothing: finite numbers, and labels that
// are classes.
struct BatchRules {
  static BatchRules of(Graph graph);  // the model, or what with_loss makes of it
  Status check(std::span<const DLTensor> inputs) const;

  std::vector<std::string> names = {};  // of the inputs
  int64_t classes = -1;                 // of the labels, which are the last input; -1: none
};

// A copy of the model whose last output is the loss of its first one against a further last input,
// and the feed that gives it labels.
Result<OwnedGraph> with_loss(tn_ctx* ctx, const tn_graph* graph, const BatchPlan& plan, Feed* feed);

}  // namespace tenon::pruner
