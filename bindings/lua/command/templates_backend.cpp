// SPDX-License-Identifier: Apache-2.0
// The template of a backend.
#include "templates.hpp"

namespace tenon::command {

const char* const kBackendTemplate = R"code(@include@ <algorithm>
@include@ <memory>

@include@ "tenon/sdk/role/backend.hpp"

namespace {

// A part as it runs: for each Relu where its number comes from and where it goes.
constexpr uint64_t kInside = UINT64_MAX;  // for other steps of the part only
struct Executable {
  struct Step {
    uint64_t input, output;
    bool from_step;  // input counts steps, not inputs of the part
  };
  std::vector<Step> steps;
};

// Runs Relu on float32, and nothing else: what a backend does not claim runs elsewhere.
struct @Class@ {
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }

  tenon::Status devices(tenon::Sink& out) {
    return out.write(R"([{"id": 0, "type": 1, "name": "@name@ on the CPU", "memory_bytes": 0}])");
  }
  tenon::Status prepare(tenon::Sink&) { return {}; }

  tenon::Status claim(const tn_graph* raw, int32_t, const tn_claims& claims) {
    for (tenon::Node node : tenon::Graph{raw}.nodes()) {
      if (node.is("Relu") && node.input(0).dtype() == TN_F32)
        claims.take(claims.ctx, &node.id, 1);
      else
        claims.refuse(claims.ctx, node.id, tenon::str("it runs Relu of float32 only"));
    }
    return {};
  }
  tenon::Result<void*> compile(const tn_graph* part, int32_t, const tenon::Options&) {
    tenon::Graph graph{part};
    std::vector<tenon::Value> inputs = graph.inputs(), outputs = graph.outputs();
    std::vector<tenon::Node> nodes = graph.nodes();
    auto exe = std::make_unique<Executable>();
    auto index_in = [](const auto& list, auto&& same) {
      uint64_t i = 0;
      while (i < list.size() && !same(list[i]))
        ++i;
      return i;
    };
    for (tenon::Node node : nodes) {
      tenon::Value x = node.input(0), y = node.output(0);
      uint64_t step = index_in(nodes, [&](tenon::Node n) { return n.output(0).id == x.id; });
      bool from_step = step < nodes.size();
      uint64_t in =
          from_step ? step : index_in(inputs, [&](tenon::Value v) { return v.id == x.id; });
      if (!from_step && in == inputs.size())
        return tenon::unsupported(tenon::cat("node ", node.name(), ": expected no constants"));
      uint64_t out = index_in(outputs, [&](tenon::Value v) { return v.id == y.id; });
      exe->steps.push_back({in, out < outputs.size() ? out : kInside, from_step});
    }
    return static_cast<void*>(exe.release());
  }
  uint64_t workspace(void*) { return 0; }
  tenon::Status run(void* raw,
                    void*,
                    const DLTensor* const* in,
                    uint64_t,
                    const tn_outputs* given,
                    const tn_exec*) {
    const auto& exe = *static_cast<const Executable*>(raw);
    std::vector<std::vector<float>> kept(exe.steps.size());
    std::vector<const DLTensor*> shapes;
    for (size_t i = 0; i < exe.steps.size(); ++i) {
      const Executable::Step& step = exe.steps[i];
      const DLTensor* x = step.from_step ? shapes[step.input] : in[step.input];
      const float* from =
          step.from_step ? kept[step.input].data() : tenon::data_of<const float>(*x);
      shapes.push_back(x);
      for (int64_t k = 0; k < tenon::element_count(*x); ++k)
        kept[i].push_back(from[k] < 0 ? 0 : from[k]);
    }
    for (size_t i = 0; i < exe.steps.size(); ++i) {
      if (exe.steps[i].output == kInside) continue;
      TN_TRY(out, tenon::Outputs(given).get(exe.steps[i].output, TN_F32, tenon::shape_of(*shapes[i])));
      std::copy(kept[i].begin(), kept[i].end(), tenon::data_of<float>(out));
    }
    return {};
  }
  void exe_free(void* exe) { delete static_cast<Executable*>(exe); }
  tenon::Status describe(void* exe, tenon::Sink& out) {
    return out.write(
        tenon::cat("{\"steps\": ", static_cast<Executable*>(exe)->steps.size(), "}"));
  }
  tenon::Status profile(void*, tenon::Sink& out) { return out.write("[]"); }
};

}  // namespace

TENON_BACKEND(@name@, @Class@, "@id@", "runs Relu", "{}")
)code";

}  // namespace tenon::command
