// SPDX-License-Identifier: Apache-2.0
// "quantizer.check_integers": which nodes compute with floats between the first QuantizeLinear and
// the last DequantizeLinear. The model stays as it is.
#include "tenon/sdk/role/pass.hpp"

#include "float_nodes.hpp"

namespace tenon::quantizer {
namespace {

class CheckIntegers {
 public:
  static Result<CheckIntegers> create(tn_ctx*, const Options& options) {
    CheckIntegers out;
    out.refuses_ = options.text("floats") == "refuse";
    return out;
  }
  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    std::vector<Node> left = floats_between({raw});
    if (refuses_ && !left.empty())
      return {TN_FAILED_PRECONDITION,
              cat("float between the first QuantizeLinear and the last DequantizeLinear: ",
                  first_names(left))};
    return sink.write(nlohmann::ordered_json{{"float", named(left)}}.dump());
  }

 private:
  bool refuses_ = true;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(check_integers,
           tenon::quantizer::CheckIntegers,
           "quantizer.check_integers",
           "names what is computed in float between the first and the last rounding",
           R"({"properties": {
    "floats": {"type": "string", "enum": ["refuse", "allow"], "default": "refuse", "description": "nodes that stay in float between the first QuantizeLinear and the last DequantizeLinear: an error that names them, or a list in the report"}}})")
