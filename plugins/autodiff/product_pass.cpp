// SPDX-License-Identifier: Apache-2.0
#include "product_pass.hpp"

#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

Result<std::vector<Value>> add_inputs(const EditView& edit,
                                      std::string_view prefix,
                                      const std::vector<Named>& like) {
  std::vector<Value> out;
  for (const Named& named : like) {
    TN_TRY(value, add_input(edit, cat(prefix, "/", named.name), named.value));
    out.push_back(value);
  }
  return out;
}

std::vector<Value> values_of(const std::vector<Named>& list) {
  std::vector<Value> out;
  for (const Named& named : list)
    out.push_back(named.value);
  return out;
}

}  // namespace

Result<Function> function_of(const EditView& edit,
                             const Wrt& wrt,
                             const std::vector<std::string>& names) {
  Function f;
  TN_TRY(inputs, find_wrt(edit, wrt));
  f.wrt = inputs;
  TN_TRY(positions, find_outputs(edit, names));
  f.positions = positions;
  for (uint64_t i : positions)
    f.outputs.push_back({std::string(edit.graph().output_name(i)), edit.graph().outputs()[i]});
  return f;
}

Status vjp_of(const EditView& edit, const Function& f) {
  TN_TRY(cotangents, add_inputs(edit, "cotangent", f.outputs));
  TN_TRY(gradients, reverse(edit, {f.positions, cotangents, values_of(f.wrt)}));
  return add_outputs(edit, "grad", f.wrt, gradients);
}

// J t is the gradient of <u J, t> by u: the vjp, which is linear in its cotangent u, transposed.
Status jvp_of(const EditView& edit, const Function& f) {
  TN_TRY(tangents, add_inputs(edit, "tangent", f.wrt));
  uint64_t n_inputs = edit.graph().inputs().size(), n_outputs = edit.graph().outputs().size();
  TN_TRY(probes, add_inputs(edit, "probe", f.outputs));
  TN_TRY(linear, reverse(edit, {f.positions, probes, values_of(f.wrt)}));
  Request second{{}, {}, probes};
  for (size_t i = 0; i < linear.size(); ++i) {
    if (!linear[i]) continue;
    second.outputs.push_back(edit.graph().outputs().size());
    second.cotangents.push_back(tangents[i]);
    TN_CHECK(edit.output(cat("linear/", i), linear[i]));
  }
  std::vector<Value> products(f.outputs.size());
  if (!second.outputs.empty()) {
    TN_TRY(found, reverse(edit, second));
    products = found;
  }
  while (edit.graph().outputs().size() > n_outputs)
    TN_CHECK(services.edit->remove_output(edit.raw, edit.graph().outputs().size() - 1));
  Builder b(edit);
  std::vector<Named> outputs = f.outputs;       // what was taken apart meanwhile gives other values
  for (size_t i = 0; i < probes.size(); ++i) {  // only shapes can still be read from them
    outputs[i].value = edit.graph().outputs()[f.positions[i]];
    TN_CHECK(edit.replace(probes[i], b.zeros_like(outputs[i].value)));
    if (products[i] == probes[i]) products[i] = {};
  }
  TN_CHECK(b.status());
  TN_CHECK(add_outputs(edit, "tangent", outputs, products));
  TN_CHECK(drop_dead_nodes(edit));
  while (edit.graph().inputs().size() > n_inputs)
    TN_CHECK(services.edit->remove_input(edit.raw, edit.graph().inputs().size() - 1));
  return {};
}

}  // namespace tenon::autodiff
