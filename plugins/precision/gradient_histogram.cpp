// SPDX-License-Identifier: Apache-2.0
// "precision.gradient_histogram": what float16 would make of the gradients: how many numbers are
// zero anyway, would become zero, lose digits, fit, or overflow; and the largest of them.
#include <cmath>

#include <nlohmann/json.hpp>

#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "scaler.hpp"

namespace tenon::precision {
namespace {

// Where classes begin: |g| <= 2^-25 is rounded to zero (to the even one of 0 and 2^-24), below
// 2^-14 numbers are subnormal, from 65520 on infinite. Counts are of what is beyond each; a NaN is
// beyond none, and a step that has one is skipped.
struct Bound {
  const char* op;
  double at;
};
const Bound kBounds[] = {{"Greater", 0},
                         {"Greater", std::ldexp(1.0, -25)},
                         {"GreaterOrEqual", std::ldexp(1.0, -14)},
                         {"GreaterOrEqual", 65520}};

class GradientHistogram {
 public:
  static Result<GradientHistogram> create(tn_ctx*, const Options& options) {
    GradientHistogram out;
    out.gradients_ = options.texts("gradients");
    if (out.gradients_.empty()) out.gradients_ = {"grad/*"};
    return out;
  }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    TN_TRY(edit, Edit::begin(raw));
    Builder b(edit);
    std::vector<Value> rows, largest;
    double total = 0;
    std::vector<Value> outputs = edit.graph().outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (matched_by(gradients_, edit.graph().output_name(i)).empty()) continue;
      total += static_cast<double>(b.fixed(outputs[i], "precision.gradient_histogram").elements());
      rows.push_back(counts(b, outputs[i], &largest));
      TN_CHECK(b.status());
    }
    if (rows.empty())
      return invalid(cat("option gradients: no output fits '", gradients_.front(), "'"));
    Value sums = rows.size() == 1 ? rows[0] : b.op("Sum", rows);
    Value most = largest.size() == 1 ? largest[0] : b.op("Max", largest);
    Value all = b.op("Concat", {sums, b.reshape(most, {1})}, {{"axis", 0}});
    TN_CHECK(b.status());
    TN_CHECK(edit.output(kHistogram, all));
    TN_CHECK(edit.commit());
    return sink.write(nlohmann::json{{"gradients", rows.size()}, {"numbers", total}}.dump());
  }

 private:
  // f64 [4]: how many are beyond each bound.
  static Value counts(Builder& b, Value gradient, std::vector<Value>* largest) {
    Value size = b.op("Abs", {b.cast(gradient, TN_F32)});
    largest->push_back(b.cast(b.op("ReduceMax", {size}, {{"keepdims", 0}}), TN_F64));
    std::vector<Value> out;
    for (const Bound& bound : kBounds) {
      Value is_beyond = b.op(bound.op, {size, b.number(bound.at, TN_F32)});
      Value count = b.op("ReduceSum", {b.cast(is_beyond, TN_F64)}, {{"keepdims", 0}});
      out.push_back(b.reshape(count, {1}));
    }
    return b.op("Concat", out, {{"axis", 0}});
  }

  std::vector<std::string> gradients_;
};

}  // namespace
}  // namespace tenon::precision

TENON_PASS(gradient_histogram,
           tenon::precision::GradientHistogram,
           "precision.gradient_histogram",
           "counts what float16 would make of gradients: a new output",
           R"({
  "properties": {
    "gradients": {"type": ["array", "string"], "items": {"type": "string"},
                  "description": "patterns of outputs that are gradients; grad/* when absent"}}})")
