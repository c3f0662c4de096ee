// SPDX-License-Identifier: Apache-2.0
#include "gradient.hpp"

#include "tenon/sdk/component.hpp"

namespace tenon::fuzz {
namespace {

constexpr uint64_t kSamples = 4;  // that are looked at for one that can be differentiated

bool floats(const Type& type) {
  return type.kind == TN_KIND_TENSOR && type.is_static() && type.elements() > 0 &&
         (type.dtype == TN_F32 || type.dtype == TN_F64 || type.dtype == TN_F16 ||
          type.dtype == TN_BF16);
}

// mean(tanh(value) * weights), in float32: numbers that are neither infinite nor NaN have a bounded
// part in the loss, and each element another slope.
Result<Value> part_of_loss(EditView edit, Value value, Random& random) {
  TN_TRY(wide, edit.op("Cast", {value}, {{"to", any_dtype(TN_F32)}}));
  TN_TRY(bounded, edit.op("Tanh", {wide}));
  TN_TRY(numbers, filled(edit.ctx(), Type(TN_F32, value.type().dims), random));
  TN_TRY(weights, edit.constant(numbers));
  TN_TRY(product, edit.op("Mul", {bounded, weights}));
  return edit.op("ReduceMean", {product}, {{"keepdims", 0}});
}

// Puts the loss in front of the other outputs.
Status add_loss(tn_graph* graph, Random& random) {
  TN_TRY(edit, Edit::begin(graph));
  Value loss{};
  std::vector<std::pair<std::string, Value>> outputs;
  for (size_t i = 0; i < edit.graph().outputs().size(); ++i)
    outputs.emplace_back(edit.graph().output_name(i), edit.graph().outputs()[i]);
  for (const auto& [name, value] : outputs) {
    if (!floats(value.type())) continue;
    TN_TRY(part, part_of_loss(edit, value, random));
    if (!loss) {
      loss = part;
      continue;
    }
    TN_TRY(sum, edit.op("Add", {loss, part}));
    loss = sum;
  }
  if (!loss) return invalid("no output floats");
  TN_CHECK(edit.output("loss", loss));
  return edit.commit();
}

// ["x0", ...]: what the gradient is by.
std::string names_of_floats(Graph graph) {
  std::string out = "[";
  std::vector<Value> inputs = graph.inputs();
  for (Value input : inputs)
    if (floats(input.type())) out += cat(out.size() > 1 ? ", " : "", "\"", input.name(), "\"");
  return out + "]";
}

// Half of the gradients go through another pass: computed again in segments, of several examples
// at once, or differentiated once more along a direction. names: what the gradient is by.
Status transform(tn_ctx* ctx, tn_graph* step, const std::string& names, Random& random) {
  switch (random.below(6)) {
    case 0:
      return run_pass(ctx, step, "autodiff.recompute", {}, nullptr);
    case 1:
      return run_pass(ctx, step, "autodiff.vmap", R"({"axis_size": 3})", nullptr);
    case 2:
      return run_pass(ctx, step, "autodiff.jvp", cat(R"({"wrt": )", names, "}"), nullptr);
    default:
      return {};
  }
}

}  // namespace

Result<OwnedGraph> gradient_of(tn_ctx* ctx, const tn_graph* graph, Random& random) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->clone(graph, &raw));
  OwnedGraph step = OwnedGraph::take(raw);
  TN_CHECK(add_loss(raw, random));
  std::string names = names_of_floats(step.view());
  if (names == "[]") return invalid("no input floats");
  std::string options = cat(R"({"output": "loss", "has_aux": )",
                            random.one_in(2) ? "true" : "false", R"(, "wrt": )", names, "}");
  TN_CHECK(run_pass(ctx, raw, "autodiff.value_and_grad", options, nullptr));
  TN_CHECK(transform(ctx, raw, names, random));
  return Result<OwnedGraph>(std::move(step));
}

std::vector<const tn_op*> differentiable_rows(const Recipe& recipe) {
  std::vector<const tn_op*> out;
  for (const tn_op* row : recipe.rows) {
    Random random(1);
    Recipe alone{.ctx = recipe.ctx, .rows = {row}};
    auto is_differentiable = [&] {
      std::map<std::string, uint64_t> used;
      Result<OwnedGraph> sample = grow(alone, 1, random, used);
      return sample.ok() && gradient_of(recipe.ctx, sample->get(), random).ok();
    };
    for (uint64_t i = 0; i < kSamples; ++i)
      if (is_differentiable()) {
        out.push_back(row);
        break;
      }
  }
  return out;
}

}  // namespace tenon::fuzz
