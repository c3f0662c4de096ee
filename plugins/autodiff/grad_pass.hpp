// SPDX-License-Identifier: Apache-2.0
#pragma once
// autodiff.grad and autodiff.value_and_grad: the graph of a scalar becomes the graph of its
// gradient. Outputs that stay come first, in their order; then one gradient for each of wrt.

#include "interface.hpp"

namespace tenon::autodiff {

class ScalarGradient {
 public:
  Status run(tn_graph* graph, const Cancel& cancel, Sink& report);

 protected:
  ScalarGradient(tn_ctx* ctx, Wrt wrt, const Options& options, bool keeps_value)
      : ctx_(ctx),
        wrt_(std::move(wrt)),
        output_(options.text("output")),
        has_aux_(options.flag("has_aux")),
        keeps_value_(keeps_value) {}

 private:
  Result<uint64_t> chosen(const EditView& edit) const;
  bool stays(const EditView& edit, uint64_t i, uint64_t which) const;

  tn_ctx* ctx_;
  Wrt wrt_;
  std::string output_;
  bool has_aux_;
  bool keeps_value_;
};

template <bool kKeepsValue>
class Grad : public ScalarGradient {
 public:
  static Result<Grad> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(wrt, Wrt::from(options));
    return Grad(ctx, wrt, options);
  }

 private:
  Grad(tn_ctx* ctx, Wrt wrt, const Options& options)
      : ScalarGradient(ctx, std::move(wrt), options, kKeepsValue) {}
};
using GradOnly = Grad<false>;
using ValueAndGrad = Grad<true>;

}  // namespace tenon::autodiff

#define GRAD_OPTIONS                                                                          \
  "{\"properties\": {" AUTODIFF_WRT_OPTIONS R"(,)"                                            \
  R"("output": {"type": "string", "description": "the scalar to differentiate; the first"},)" \
  R"("has_aux": {"type": "boolean", "default": false,)"                                       \
  R"("description": "keep the other outputs, before the gradients"}}})"
