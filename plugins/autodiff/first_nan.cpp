// SPDX-License-Identifier: Apache-2.0
// autodiff.first_nan: the graph gets one more output, which of its values has a NaN first. The
// report lists the values in that order: inputs and constants, then the results of nodes as they
// are computed.
#include <nlohmann/json.hpp>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

struct Watched {
  Value value;
  std::string who;
};

// What sequences and optional values hold is watched where nodes put it in.
bool is_watched(Value value) {
  return value && value.raw_type().kind == TN_KIND_TENSOR && is_float(value.dtype());
}

std::vector<Watched> watched(const Graph& graph) {
  std::vector<Watched> out;
  for (Value input : graph.inputs())
    if (is_watched(input)) out.push_back({input, cat("input ", input.name())});
  for (Node node : nodes_behind(graph.outputs())) {
    for (Value input : node.inputs())
      if (is_watched(input) && input.is_constant())
        out.push_back({input, cat("constant ", input.name())});
    for (Value output : node.outputs())
      if (is_watched(output)) out.push_back({output, described(node)});
  }
  return out;
}

// f32[1]: how many NaNs.
Value count_of(Builder& b, Value value) {
  Value marks = b.cast(b.op("IsNaN", {value}), TN_F32);
  return b.op("Reshape", {b.op("ReduceSum", {marks}, {{"keepdims", 0}}), b.ints({1})});
}

class FirstNan {
 public:
  static Result<FirstNan> create(tn_ctx*, const Options&) { return FirstNan{}; }

  Status run(tn_graph* graph, const Cancel&, Sink& report) {
    TN_TRY(edit, Edit::begin(graph));
    std::vector<Watched> all = watched(edit.graph());
    Builder b(edit);
    std::vector<Value> counts;
    nlohmann::json names = nlohmann::json::array();
    for (const Watched& one : all) {
      counts.push_back(count_of(b, one.value));
      names.push_back(one.who);
    }
    // The last stands for none; of equal ones ArgMax gives the first.
    counts.push_back(b.reshape(b.number(1, TN_F32), {1}));
    Value any = b.cast(
        b.op("Greater", {b.op("Concat", counts, {{"axis", 0}}), b.number(0, TN_F32)}), TN_F32);
    Value first = b.op("ArgMax", {any}, {{"axis", 0}, {"keepdims", 0}});
    TN_CHECK(b.status());
    TN_CHECK(edit.output("first_nan", first));
    TN_CHECK(edit.commit());
    return report.write(nlohmann::json{{"values", names}}.dump());
  }
};

}  // namespace
}  // namespace tenon::autodiff

TENON_PASS(first_nan,
           tenon::autodiff::FirstNan,
           "autodiff.first_nan",
           "one more output: the place, in the report's values, of the first that has a NaN",
           R"({"properties": {}})")
