// SPDX-License-Identifier: Apache-2.0
// "quantizer.integers": a model with QuantizeLinear and DequantizeLinear nodes computed in integers
// between the first and the last of them, by standard operators (integer_values.hpp). A function of
// one value is a table over its 256 numbers; behind a sum, over as many as its result's steps
// need (integer_tables.cpp). "quantizer.check_integers" names what is float there.
#include "tenon/sdk/role/pass.hpp"

#include "float_nodes.hpp"
#include "integer_rewriting.hpp"

namespace tenon::quantizer {
namespace {

class IntegersPass {
 public:
  static Result<IntegersPass> create(tn_ctx* ctx, const Options& options) {
    IntegersPass out;
    out.ctx_ = ctx;
    out.refuses_ = options.text("floats") == "refuse";
    return out;
  }
  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    TN_TRY(edit, Edit::begin(raw));
    TN_TRY(refused, rewrite_in_integers(ctx_, edit));
    TN_CHECK(edit.commit());
    std::vector<Node> left = floats_between({raw});
    if (refuses_ && !left.empty())
      return {TN_FAILED_PRECONDITION,
              cat("left in float between the first QuantizeLinear and the last DequantizeLinear: ",
                  first_names(left), "; ", refused.dump(), "; floats = \"allow\" keeps them")};
    return sink.write(nlohmann::ordered_json{{"float", named(left)}, {"refused", refused}}.dump());
  }

 private:
  tn_ctx* ctx_ = nullptr;
  bool refuses_ = true;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(integers,
           tenon::quantizer::IntegersPass,
           "quantizer.integers",
           "a quantized model without floats between its first and its last rounding",
           R"({"properties": {
    "floats": {"type": "string", "enum": ["refuse", "allow"], "default": "refuse", "description": "nodes that stay in float between the first QuantizeLinear and the last DequantizeLinear: an error that names them, or a list in the report"}}})")
