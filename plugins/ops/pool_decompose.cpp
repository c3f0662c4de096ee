// SPDX-License-Identifier: Apache-2.0
#include "pool_decompose.hpp"

#include "batching_rules.hpp"
#include "roots.hpp"
#include "window.hpp"

namespace tenon::ops {

Result<std::vector<Value>> lp_pool_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type x = node.input(0).type();
  if (!x.is_static() || x.rank() < 3) return unsupported("LpPool: composite with known sizes");
  std::vector<int64_t> kernel = node.attr_ints("kernel_shape"), dims{x.dims[1], 1};
  TN_TRY(w, window_of(node, std::span<const int64_t>(x.dims).subspan(2), kernel));
  // Padding as far as the last window reaches, also where ceil_mode lets it reach further.
  std::vector<int64_t> begin, end, strides, dilations;
  for (size_t a = kMaxSpatial - w.rank; a < kMaxSpatial; ++a) {
    int64_t reach = (w.out[a] - 1) * w.stride[a] + (w.kernel[a] - 1) * w.dilation[a] + 1;
    begin.push_back(w.pad_begin[a]);
    end.push_back(std::max<int64_t>(reach - w.in[a] - w.pad_begin[a], 0));
    strides.push_back(w.stride[a]);
    dilations.push_back(w.dilation[a]);
    dims.push_back(w.kernel[a]);
  }
  begin.insert(begin.end(), end.begin(), end.end());
  auto p = static_cast<double>(node.attr_int("p", 2));
  Value powers = b.op("Pow", {b.op("Abs", {node.input(0)}), b.number(p, x.dtype)});
  Value ones = b.op("Expand", {b.number(1, x.dtype), b.ints(dims)});
  Value sums =
      b.op("Conv", {powers, ones},
           {{"group", x.dims[1]}, {"pads", begin}, {"strides", strides}, {"dilations", dilations}});
  Value y = root(b, sums, p);
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Status max_pool_batch(Batching& b) {
  if (b.of().n_outputs() < 2 || !b.of().output(1)) return unsupported("by axes");
  Type one = b.fixed(b.of().input(0), "MaxPool");
  TN_CHECK(b.status());
  Node made = again(b, b.of(), {examples_as_rows(b, 0)});
  if (!made) return {};
  Value indices = rows_as_examples(b, made.output(1), 1);
  b.set(0, rows_as_examples(b, made.output(0)));
  b.set(1, b.sub(indices, example_offsets(b, one.elements(), one.rank())));
  return {};
}

Status average_grad_batch(Batching& b) {
  int64_t n = known_example_count(b);
  TN_TRY(shape, stated_ints(b, 1));
  if (n < 0 || shape.empty()) return unsupported("a count of examples that is not known");
  shape[0] *= n;
  Node made = again(b, b.of(), {examples_as_rows(b, 0), b.ints(shape)});
  if (made) b.set(0, rows_as_examples(b, made.output()));
  return {};
}

}  // namespace tenon::ops
