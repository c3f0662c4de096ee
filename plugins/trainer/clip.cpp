// SPDX-License-Identifier: Apache-2.0
// "trainer.clip": bounds gradients (outputs grad/NAME). value: each number to [-value, value]
// (PyTorch's clip_grad_value_). norm: all of them by min(1, norm / (|g| + 1e-6)), |g| the Euclidean
// norm of all together (Pascanu et al. 2013, "On the difficulty of training recurrent neural
// networks", algorithm 1; the 1e-6 is PyTorch's). With both the values come first. New output, of
// the norm as it was before it was clipped: gradient_norm.
#include <algorithm>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "gradients.hpp"

namespace tenon::trainer {
namespace {

class Clip {
 public:
  static Result<Clip> create(tn_ctx*, const Options& options) {
    Clip out{options.number("norm"), options.number("value")};
    if (out.norm_ == 0 && out.value_ == 0)
      return invalid("expected option norm or value, got none");
    return out;
  }

  Status run(tn_graph* raw, const Cancel&, Sink& report) {
    TN_TRY(edit, Edit::begin(raw));
    TN_TRY(gradients, gradients_of(edit.graph()));
    Builder b(edit);
    if (value_ > 0) by_value(b, gradients);
    Value norm = norm_ > 0 ? by_norm(b, gradients) : Value{};
    TN_CHECK(b.status());
    for (const Gradient& one : gradients)
      TN_CHECK(Status(services.edit->set_output(edit.raw, one.place, one.value.id)));
    if (norm) TN_CHECK(edit.output("gradient_norm", norm));
    TN_CHECK(edit.commit());
    return report.write(cat("{\"gradients\": ", gradients.size(), "}"));
  }

  void by_value(Builder& b, std::vector<Gradient>& gradients) const {
    for (Gradient& one : gradients) {
      uint32_t dtype = one.value.dtype();
      one.value = b.op("Clip", {one.value, b.number(-value_, dtype), b.number(value_, dtype)});
    }
  }

  Value by_norm(Builder& b, std::vector<Gradient>& gradients) const {
    Value squares;
    auto is_double = [](const Gradient& one) { return one.value.dtype() == TN_F64; };
    const uint32_t type = std::ranges::all_of(gradients, is_double) ? TN_F64 : TN_F32;
    for (const Gradient& one : gradients) {
      Value g = b.cast(one.value, type);
      Value sum = b.op("ReduceSum", {b.mul(g, g)}, {{"keepdims", 0}});
      squares = squares ? b.add(squares, sum) : sum;
    }
    Value norm = b.op("Sqrt", {squares});
    Value share = b.div(b.number(norm_, type), b.add(norm, b.number(1e-6, type)));
    Value factor = b.op("Min", {b.number(1, type), share});
    for (Gradient& one : gradients)
      one.value = b.mul(one.value, b.cast(factor, one.value.dtype()));
    return norm;
  }

  double norm_, value_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_PASS(clip,
           tenon::trainer::Clip,
           "trainer.clip",
           "bounds gradients, each number or the norm of all together",
           R"({
  "properties": {
    "norm": {"type": "number", "minimum": 0, "default": 0, "description": "maximum of the global gradient norm; 0: no limit"},
    "value": {"type": "number", "minimum": 0, "default": 0, "description": "maximum of the absolute value of each element; 0: no limit"}}})")
