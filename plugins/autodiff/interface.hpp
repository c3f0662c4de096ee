// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the passes have in common: which inputs and outputs are meant, and how the graph's own list
// of outputs changes.

#include <string>
#include <unordered_map>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/pass.hpp"

namespace tenon::autodiff {

// With respect to what. Names are of inputs or constants; argnums are positions of inputs.
struct Wrt {
  std::vector<std::string> names;
  std::vector<int64_t> argnums;
  static Result<Wrt> from(const Options& options);
};
#define AUTODIFF_WRT_OPTIONS                                                   \
  R"("wrt": {"type": "array", "items": {"type": "string"},)"                   \
  R"("description": "names of the inputs or constants to differentiate by"},)" \
  R"("argnums": {"type": ["integer", "array"], "items": {"type": "integer"},)" \
  R"("description": "the same as positions of inputs; 0 when neither is given"})"

struct Named {
  std::string name;
  Value value;
};
Result<std::vector<Named>> find_wrt(const EditView& edit, const Wrt& wrt);
// The outputs with these names, as positions; all of float type that are no state when empty.
Result<std::vector<uint64_t>> find_outputs(const EditView& edit,
                                           const std::vector<std::string>& names);
Status expect_float(Value value, std::string_view what);

// Makes constants of computed sizes (fusion.shapes), for rules that ask for them: files compute
// them node by node. Without the plugin fusion the graph stays as it is.
Status fold_shapes(tn_ctx* ctx, tn_graph* graph, const Cancel& cancel);

bool is_state_output(const EditView& edit, Value value);
// Adds `prefix/name`, or a free name after it, as outputs; a gradient that is zero becomes zeros.
Status add_outputs(const EditView& edit,
                   std::string_view prefix,
                   const std::vector<Named>& names,
                   const std::vector<Value>& values);
// An input of the type of `like`, called `name` or the free name after it.
Result<Value> add_input(const EditView& edit, const std::string& name, Value like);
// Erases nodes that nothing needs. Stateful ones are needed, but where what
// stands for their outputs is in `replaced`.
Status drop_dead_nodes(const EditView& edit,
                       const std::unordered_map<tn_value_id, Value>& replaced = {});
// Puts bodies in the place of calls, now that their own gradients have been taken: backends run
// operators.
Status inline_calls(const EditView& edit);

}  // namespace tenon::autodiff
