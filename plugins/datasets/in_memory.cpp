// SPDX-License-Identifier: Apache-2.0
// "datasets.arrays": tensors that the caller holds, one field each. They are shared, not copied,
// unless their strides leave gaps.
#include "array_table.hpp"

namespace tenon::datasets {
namespace {

class InMemory : public ArrayTable {
 public:
  static Result<InMemory> create(tn_ctx* ctx, const Options& options) {
    InMemory out;
    const uint64_t n = services.options->count(options.raw());
    for (uint64_t i = 0; i < n; ++i) {
      const std::string name(view(services.options->key_at(options.raw(), i)));
      TN_CHECK(out.take(ctx, name, options.get(name)));
    }
    if (out.list().empty())
      return invalid("expected at least one field, as NAME = tensor, got none");
    return out;
  }

 private:
  Status take(tn_ctx* ctx, const std::string& name, const tn_any& value) {
    auto* given = static_cast<tn_tensor*>(const_cast<void*>(value.v.p));
    Result<Tensor> dense = Tensor::share(given).dense(ctx);
    if (!dense.ok()) return std::move(dense).status().in(cat("field ", name));
    auto tensor = std::make_shared<const Tensor>(std::move(*dense));
    const DLTensor t = tensor->dl();
    std::span<const int64_t> shape = shape_of(t);
    if (shape.empty())
      return invalid(
          cat("field ", name, ": expected an array whose first axis counts samples, got a number"));
    if (TN_DTYPE_BITS(dtype_of(t)) < 8)
      return unsupported(cat("field ", name, ": elements of ", dtype_name(dtype_of(t)),
                             " are packed, so that samples have no bytes of their own; convert "
                             "them to 8 bits"));
    Field field{name, dtype_of(t), {shape.begin() + 1, shape.end()}, {}};
    field.data = {data_of<const char>(t), bytes_of(field.dtype, element_count(shape))};
    return add(std::move(field), static_cast<uint64_t>(shape[0]), tensor);
  }
};

}  // namespace
}  // namespace tenon::datasets

TENON_DATASET(in_memory,
              tenon::datasets::InMemory,
              "datasets.arrays",
              "arrays in memory, one field each",
              R"({
  "properties": {},
  "additionalProperties": {"type": "tensor", "description": "a field of this name; its first axis counts samples"}})")
