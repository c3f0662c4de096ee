// SPDX-License-Identifier: Apache-2.0
#pragma once
// autodiff.vjp and autodiff.jvp: products of a vector with the Jacobian of the whole graph. The
// vectors are new inputs, the products new outputs behind those that are there.

#include "interface.hpp"

namespace tenon::autodiff {

struct Function {
  std::vector<Named> wrt, outputs;
  std::vector<uint64_t> positions;  // of the outputs
};
Status vjp_of(const EditView& edit, const Function& f);
Status jvp_of(const EditView& edit, const Function& f);

Result<Function> function_of(const EditView& edit,
                             const Wrt& wrt,
                             const std::vector<std::string>& names);

template <Status (*kProduct)(const EditView&, const Function&)>
class Product {
 public:
  static Result<Product> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(wrt, Wrt::from(options));
    return Product(ctx, wrt, options.texts("outputs"));
  }
  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    TN_CHECK(fold_shapes(ctx_, graph, cancel));
    TN_TRY(edit, Edit::begin(graph));
    TN_TRY(f, function_of(edit, wrt_, outputs_));
    TN_CHECK(kProduct(edit, f));
    TN_CHECK(drop_dead_nodes(edit));
    TN_CHECK(inline_calls(edit));
    TN_CHECK(edit.commit());
    return report.write(cat("{\"outputs\": ", f.outputs.size(), ", \"wrt\": ", f.wrt.size(), "}"));
  }

 private:
  Product(tn_ctx* ctx, Wrt wrt, std::vector<std::string> outputs)
      : ctx_(ctx), wrt_(std::move(wrt)), outputs_(std::move(outputs)) {}
  tn_ctx* ctx_;
  Wrt wrt_;
  std::vector<std::string> outputs_;
};

using Vjp = Product<vjp_of>;
using Jvp = Product<jvp_of>;

}  // namespace tenon::autodiff

#define PRODUCT_OPTIONS                                          \
  "{\"properties\": {" AUTODIFF_WRT_OPTIONS R"(,)"               \
  R"("outputs": {"type": "array", "items": {"type": "string"},)" \
  R"("description": "names of the outputs; all of float type when absent"}}})"
