// SPDX-License-Identifier: Apache-2.0
// "layers.zeros": every number is 0.
#include "draws.hpp"

namespace tenon::layers {
namespace {

struct Zeros {
  static Result<Zeros> create(tn_ctx*, const Options&) { return Zeros{}; }
  Status fill(const tn_initial&, std::span<float> out) const {
    std::fill(out.begin(), out.end(), 0.0F);
    return {};
  }
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(zeros,
                  tenon::layers::Zeros,
                  "layers.zeros",
                  "zeros; for the last scale of a residual branch (zero-gamma)",
                  R"({"properties": {}})")
