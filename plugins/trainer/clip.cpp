// SPDX-License-Identifier: Apache-2.0
// "trainer.clip": scales all gradients (outputs grad/NAME) by min(1, norm / (|g| + 1e-6)), |g| the
// Euclidean norm of all of them together (Pascanu et al. 2013, "On the difficulty of training
// recurrent neural networks", algorithm 1; the 1e-6 is PyTorch's). New output: gradient_norm.
#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/pass.hpp"

namespace tenon::trainer {
namespace {

class Clip {
 public:
  static Result<Clip> create(tn_ctx*, const Options& options) {
    return Clip{options.number("norm")};
  }

  Status run(tn_graph* raw, const Cancel&, Sink& report) {
    TN_TRY(edit, Edit::begin(raw));
    std::vector<uint64_t> places;
    std::vector<Value> outputs = edit.graph().outputs();
    for (uint64_t i = 0; i < outputs.size(); ++i)
      if (edit.graph().output_name(i).starts_with("grad/")) places.push_back(i);
    if (places.empty())
      return {TN_FAILED_PRECONDITION,
              "expected outputs called grad/NAME, got none; apply autodiff.value_and_grad first"};
    Builder b(edit);
    Value squares;
    for (uint64_t i : places) {
      Value g = b.cast(outputs[i], TN_F32);
      Value sum = b.op("ReduceSum", {b.mul(g, g)}, {{"keepdims", 0}});
      squares = squares ? b.add(squares, sum) : sum;
    }
    Value norm = b.op("Sqrt", {squares});
    Value share = b.div(b.number(norm_, TN_F32), b.add(norm, b.number(1e-6, TN_F32)));
    Value factor = b.op("Min", {b.number(1, TN_F32), share});
    for (uint64_t i : places) {
      Value g = outputs[i];
      Value clipped = b.mul(g, b.cast(factor, g.dtype()));
      TN_CHECK(b.status());
      TN_CHECK(Status(services.edit->set_output(edit.raw, i, clipped.id)));
    }
    TN_CHECK(edit.output("gradient_norm", norm));
    TN_CHECK(edit.commit());
    return report.write(cat("{\"gradients\": ", places.size(), "}"));
  }

  double norm_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_PASS(clip,
           tenon::trainer::Clip,
           "trainer.clip",
           "scales gradients down to a norm of all of them together",
           R"({
  "required": ["norm"],
  "properties": {
    "norm": {"type": "number", "exclusiveMinimum": 0, "description": "the largest norm that stays as it is"}}})")
