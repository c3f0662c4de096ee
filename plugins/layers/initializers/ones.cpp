// SPDX-License-Identifier: Apache-2.0
// "layers.ones": every number is 1.
#include "draws.hpp"

namespace tenon::layers {
namespace {

struct Ones {
  static Result<Ones> create(tn_ctx*, const Options&) { return Ones{}; }
  Status fill(const tn_initial&, std::span<float> out) const {
    std::fill(out.begin(), out.end(), 1.0F);
    return {};
  }
};

}  // namespace
}  // namespace tenon::layers

TENON_INITIALIZER(ones, tenon::layers::Ones, "layers.ones", "ones", R"({"properties": {}})")
