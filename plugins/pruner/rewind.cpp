// SPDX-License-Identifier: Apache-2.0
// "pruner.rewind": gives weights that survived pruning the values that they had in an earlier state
// of the same model, zeros stay zeros: the step between two rounds of the lottery ticket procedure
// (Frankle and Carbin 2019; to step k: Frankle et al. 2020).
#include <algorithm>

#include "tenon/sdk/role/pass.hpp"

#include "masks.hpp"
#include "removal.hpp"
#include "report.hpp"

namespace tenon::pruner {
namespace {

class Rewind {
 public:
  static Result<Rewind> create(tn_ctx* ctx, const Options& options) {
    Rewind out;
    out.ctx_ = ctx;
    tn_any given = options.get("to");
    auto* graph = static_cast<tn_graph*>(const_cast<void*>(given.v.p));
    services.graph->retain(graph);
    out.to_ = OwnedGraph::take(graph);
    out.as_nodes_ = options.text("apply") == "nodes";
    return out;
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_TRY(folded, Edit::begin(raw));
    const std::vector<NamedMask> masks = masks_of(folded.graph());
    TN_CHECK(fold_masks(folded));
    TN_CHECK(folded.commit());
    Groups groups = Groups::of(Graph{raw});
    TN_TRY(edit, Edit::begin(raw));
    std::vector<std::string> unmatched;
    int64_t rewound = 0, zeros = 0;
    for (Value constant : edit.graph().constants()) {
      TN_CHECK(cancel.check());
      if (!is_float(constant.dtype())) continue;
      Value earlier = to_.view().find(constant.name());
      if (!earlier || !earlier.is_constant()) {
        unmatched.emplace_back(constant.name());
        continue;
      }
      TN_CHECK(check_same(constant, earlier));
      Mask mask(static_cast<size_t>(constant.type().elements()), 1);
      bool pruned = is_weight(groups, constant);
      if (pruned) {
        TN_TRY(stays, mask_of(constant, masks));
        mask = std::move(stays);
      }
      int64_t gone = std::count(mask.begin(), mask.end(), 0);
      TN_CHECK(write(edit, constant, earlier, mask, pruned && gone > 0));
      zeros += gone;
      ++rewound;
    }
    if (rewound == 0)
      return {TN_FAILED_PRECONDITION,
              "option to: expected an earlier state of this model, got one without a constant of "
              "the same name"};
    TN_CHECK(edit.commit());
    nlohmann::ordered_json report{{"rewound", rewound}, {"zeros", zeros}, {"left", unmatched}};
    return sink.write(report.dump());
  }

 private:
  // Of nodes, where there are some: what regrows begins with zeros that are not pruned.
  static Result<Mask> mask_of(Value weight, const std::vector<NamedMask>& masks) {
    auto stated = std::ranges::find(masks, weight.name(), &NamedMask::weight);
    return stated == masks.end() ? mask_of_zeros(weight.constant()) : stated->mask;
  }
  static bool is_weight(const Groups& groups, Value constant) {
    for (const Weight& weight : groups.weights())
      if (weight.value == constant) return true;
    return false;
  }
  static Status check_same(Value now, Value earlier) {
    Type a = now.type(), b = earlier.type();
    if (a.dtype == b.dtype && a.dims == b.dims) return {};
    auto text = [](const Type& type) {
      std::string out = dtype_name(type.dtype);
      for (int64_t dim : type.dims)
        out += cat(" ", dim);
      return out;
    };
    return invalid(cat("option to: ", now.name(), ": expected ", text(a), ", got ", text(b),
                       " (rewinding needs the same shapes: prune with masks)"));
  }
  Status write(EditView edit, Value now, Value earlier, const Mask& mask, bool masked) const {
    if (!masked) return replace_constant(edit, now, earlier.constant());
    if (!as_nodes_) {
      TN_TRY(zeroed, apply_mask(ctx_, earlier.constant(), mask));
      return replace_constant(edit, now, zeroed);
    }
    std::string name(now.name());
    TN_CHECK(replace_constant(edit, now, earlier.constant()));
    return insert_mask(edit, edit.graph().find(name), mask);
  }

  tn_ctx* ctx_ = nullptr;
  OwnedGraph to_;
  bool as_nodes_ = false;
};

}  // namespace
}  // namespace tenon::pruner

TENON_PASS(rewind,
           tenon::pruner::Rewind,
           "pruner.rewind",
           "gives surviving weights the values of an earlier state, zeros stay",
           R"({
  "properties": {
    "to": {"type": "graph", "description": "the model as it was, with constants of the same names"},
    "apply": {"type": "string", "enum": ["zero", "nodes"], "default": "zero",
              "description": "nodes: multiply by masks in the graph, which training keeps"}},
  "required": ["to"]})")
