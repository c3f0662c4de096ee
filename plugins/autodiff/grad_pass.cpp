// SPDX-License-Identifier: Apache-2.0
#include "grad_pass.hpp"

#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

Status expect_scalar(Value value, std::string_view name) {
  Type type = value.type();
  bool one = type.is_static() && type.elements() == 1;
  if (one || !type.ranked) return {};
  std::string dims;
  for (size_t i = 0; i < type.rank(); ++i) {
    bool named = type.dims[i] < 0 && i < type.symbols.size() && !type.symbols[i].empty();
    dims += cat(i ? "," : "", named              ? type.symbols[i]
                              : type.dims[i] < 0 ? "?"
                                                 : std::to_string(type.dims[i]));
  }
  return invalid(cat("output ", name, ": expected a scalar to differentiate, got ",
                     dtype_name(type.dtype), "[", dims,
                     "]; reduce it first (sum or mean), or use autodiff.vjp"));
}

}  // namespace

Status ScalarGradient::run(tn_graph* graph, const Cancel& cancel, Sink& report) {
  TN_CHECK(fold_shapes(ctx_, graph, cancel));
  TN_TRY(edit, Edit::begin(graph));
  TN_TRY(wrt, find_wrt(edit, wrt_));
  TN_TRY(which, chosen(edit));
  std::string name(edit.graph().output_name(which));
  Value value = edit.graph().outputs()[which];
  TN_CHECK(expect_float(value, cat("output ", name)));
  TN_CHECK(expect_scalar(value, name));
  Builder b(edit);
  Value one = b.number(1, value.dtype());
  if (value.type().rank() > 0) one = b.reshape_like(one, value);
  TN_CHECK(b.status());
  Request request{{which}, {one}, {}};
  for (const Named& named : wrt)
    request.wrt.push_back(named.value);
  TN_TRY(gradients, reverse(edit, request));
  for (uint64_t i = edit.graph().outputs().size(); i-- > 0;)
    if (!stays(edit, i, which)) TN_CHECK(services.edit->remove_output(edit.raw, i));
  TN_CHECK(add_outputs(edit, "grad", wrt, gradients));
  TN_CHECK(drop_dead_nodes(edit));
  TN_CHECK(inline_calls(edit));
  TN_CHECK(edit.commit());
  return report.write(cat("{\"output\": ", which, ", \"gradients\": ", wrt.size(), "}"));
}

Result<uint64_t> ScalarGradient::chosen(const EditView& edit) const {
  if (output_.empty()) {
    if (edit.graph().outputs().empty()) return invalid("the graph has no outputs");
    return uint64_t{0};
  }
  TN_TRY(found, find_outputs(edit, {output_}));
  return found[0];
}
bool ScalarGradient::stays(const EditView& edit, uint64_t i, uint64_t which) const {
  if (i == which) return keeps_value_;
  return has_aux_ || is_state_output(edit, edit.graph().outputs()[i]);
}

}  // namespace tenon::autodiff
