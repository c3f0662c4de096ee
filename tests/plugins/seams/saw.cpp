// SPDX-License-Identifier: Apache-2.0
// "seams.saw": the numbers of a list, again and again.
#include "tenon/sdk/role/schedule.hpp"

namespace tenon::test {
namespace {

struct Saw {
  std::vector<double> values;
  static Result<Saw> create(tn_ctx*, const Options& options) {
    Saw made{floats_of(options.get("values"))};
    if (made.values.empty()) return invalid("option values: expected numbers, got none");
    return made;
  }
  Result<double> value(uint64_t step, uint64_t) const { return values[step % values.size()]; }
};

}  // namespace
}  // namespace tenon::test

TENON_SCHEDULE(saw,
               tenon::test::Saw,
               "seams.saw",
               "the numbers of a list, again and again",
               R"({"properties": {"values": {"type": "array", "items": {"type": "number"},
                                             "default": [1.0], "description": "by step"}}})")
