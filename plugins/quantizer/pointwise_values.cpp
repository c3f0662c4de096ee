// SPDX-License-Identifier: Apache-2.0
#include "pointwise_values.hpp"

#include <cmath>

#include "tenon/sdk/plan.hpp"

#include "repeated.hpp"

namespace tenon::quantizer {

bool is_pointwise_of_one(Node node) {
  const tn_op* row = node.row();
  if (!row || !(row->traits & TN_OP_POINTWISE) || node.n_outputs() != 1) return false;
  for (uint64_t i = 1; i < node.n_inputs(); ++i)
    if (node.input(i) && !node.input(i).is_constant()) return false;
  return !node.input(0).is_constant();
}

std::vector<float> points_of_all_sizes() {
  std::vector<float> points{0};
  for (int power = -32; power <= 32; ++power)
    for (float sign : {-1.3F, 1.3F})
      points.push_back(sign * std::ldexp(1.0F, 2 * power));
  return points;
}

Result<Tensor> values_at(tn_ctx* ctx,
                         std::span<const Node> nodes,
                         const std::vector<float>& numbers,
                         const std::vector<int64_t>& shape) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(ctx, &raw));
  OwnedGraph graph = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(raw));
  TN_TRY(x, edit.input("x", Type(TN_F32, shape)));
  Value last = x;
  for (Node node : nodes) {
    std::vector<Value> inputs{last};
    for (uint64_t i = 1; i < node.n_inputs(); ++i) {
      Value held;
      if (node.input(i)) {
        TN_TRY(made, edit.constant(node.input(i).constant()));
        held = made;
      }
      inputs.push_back(held);
    }
    TN_TRY(same, added_again(edit, node, inputs));
    last = same.output();
  }
  TN_CHECK(edit.output("y", last));
  TN_CHECK(edit.commit());
  TN_TRY(plan, Plan::compile(ctx, graph.view(), {}, R"({"backend": "reference"})"));
  DenseView given(TN_F32, shape, numbers.data());
  std::vector<DLTensor> inputs{*given};
  TN_CHECK(plan.run(inputs));
  return plan.take(0);
}

}  // namespace tenon::quantizer
