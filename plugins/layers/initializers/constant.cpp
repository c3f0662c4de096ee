// SPDX-License-Identifier: Apache-2.0
// "layers.constant": every number is the same.
#include "draws.hpp"

namespace tenon::layers {
namespace {

class Constant {
 public:
  static Result<Constant> create(tn_ctx*, const Options& options) {
    return Constant{options.number("value")};
  }
  Status fill(const tn_initial&, std::span<float> out) const {
    std::fill(out.begin(), out.end(), static_cast<float>(value_));
    return {};
  }

 private:
  explicit Constant(double value) : value_(value) {}
  double value_;
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(constant,
                  tenon::layers::Constant,
                  "layers.constant",
                  "the same number everywhere",
                  R"({
  "properties": {
    "value": {"type": "number", "default": 0, "description": "the number"}}})")
