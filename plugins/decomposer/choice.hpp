// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which layers are replaced: where the error is small, and small beside the one that a random
// weight would have, and where the smaller layers are less work, or measured to be faster.

#include <string>
#include <vector>

#include "tenon/sdk/pattern.hpp"

#include "method.hpp"
#include "timing.hpp"
#include "whitening.hpp"

namespace tenon::decomposer {

struct Choice {
  Selected selected;
  bool leaves_unsuited = false;  // what `selected` names but the method cannot take is no error
  double max_error = 1;
  double max_ratio = 0.6;  // of the error to that of a random weight
  bool measure = true, allow_slower = false;
  std::vector<std::string> backends;
  uint64_t seed = 0;
  bool is_dry = false;
  double budget = 0;  // share of all layers' FLOPs that may be left, by one energy; 0: no budget
  double time = 0;    // share of each layer's measured time that may be left; 0: not asked

  FeedOptions inputs;  // none: errors are those of weights

  static Result<Choice> read(tn_ctx* ctx, const Options& options);
};

// What became of a node.
struct Verdict {
  Node node;
  std::string why;           // not empty: it is left as it is
  std::string suited = {};   // the pass that is for layers of its form, where `why` is another's
  bool is_misfit = false;    // because of its form or the ranks asked for, not of figures
  bool is_factored = false;  // the figures below are there
  Layer layer;               // its weight is dropped when the verdict is made
  Factors factors;
  double random_error = 0;
  Cost before, after;
  Times times;                  // zeros when not measured
  std::string unmeasured = {};  // why not, where that was asked
};

// All but the measurement. whitening: of the layer's input, or nullptr: the error that counts is
// that of the weights.
Verdict judge(const Method& method,
              const Choice& choice,
              Node node,
              const Whitening* whitening = nullptr);
// By the FLOPs, where times are not known.
void judge_cost(const Choice& choice, Verdict* verdict);
// The same for times that have been measured.
void judge_times(const Choice& choice, Verdict* verdict);

// These options in a component's schema, JSON without braces.
#define TENON_CHOICE_OPTIONS \
  R"("max_error": {"type": "number", "exclusiveMinimum": 0, "default": 1,)"                          \
  R"("description": "layers with a larger relative error are left alone"},)"                         \
  R"("max_ratio": {"type": "number", "exclusiveMinimum": 0, "default": 0.6,)"                        \
  R"("description": "layers are left alone when the error is more than this share )"                 \
  R"(of a random weight's"},)"                                                                       \
  R"("measure": {"type": "boolean", "default": true,)"                                              \
  R"("description": "refuse by measured time where sizes are known, else by FLOPs"},)"                                      \
  R"("allow_slower": {"type": "boolean", "default": false,)"                                         \
  R"("description": "replace layers even when that is slower or more work"},)"                       \
  R"("backend": {"type": ["array", "string"], "items": {"type": "string"},)" \
  R"("needs": [{"measure": [true]}, {"time": "given"}, {"data": "given"}],)"                         \
  R"("description": "measures: the first that is there; default: what this machine is best with"},)" \
  TENON_SELECTED_OPTIONS("layers to decompose") ","                                                  \
  R"("unsuited": {"type": "string", "enum": ["refuse", "leave"], "default": "refuse",)"              \
  R"("description": "leave: a layer that only names and that is for another method is no error"},)"  \
  R"("dry_run": {"type": "boolean", "default": false,)"                                              \
  R"("description": "only report what would be replaced and what it would save"},)"                  \
  R"("budget": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1,)"                    \
  R"("description": "share of the FLOPs of all layers that may be left: ranks by the )"              \
  R"(largest share of energy, the same for all layers, that meets it; instead of rank"},)"           \
  R"("time": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "needs": {"budget": "absent"},)"                      \
  R"("description": "share of each layer's measured time that may be left: its ranks by )"           \
  R"(the largest share of energy that meets it; instead of rank"},)"                                 \
  R"("data": {"type": "component", "role": "tenon.dataset/1",)"                                      \
  R"("description": "inputs, without labels: errors count as what the layer makes of )"              \
  R"(them, and no longer as those of its weight"},)"                                                 \
  R"("samples": {"type": "integer", "minimum": 1, "default": 256, "needs": {"data": "given"},)"                                  \
  R"("description": "samples of data, at most"},)"                                                   \
  R"("batch": {"type": "integer", "minimum": 1, "default": 16, "needs": {"data": "given"},)"                                     \
  R"("description": "batch size of data"},)"                                                         \
  R"("seed": {"type": "integer", "minimum": 0, "default": 0,)"                                       \
  R"("description": "seed of the random weights that are compared with"})"

}  // namespace tenon::decomposer
