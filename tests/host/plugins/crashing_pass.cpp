// SPDX-License-Identifier: Apache-2.0
// A pass that ends the process, or throws.
#include <cstdlib>
#include <stdexcept>

#include "tenon/sdk/role/pass.hpp"

namespace {

struct Crash {
  bool throws;
  static tenon::Result<Crash> create(tn_ctx*, const tenon::Options& options) {
    return Crash{options.text("how") == "throw"};
  }
  tenon::Status run(tn_graph*, const tenon::Cancel&, tenon::Sink&) const {
    if (throws) throw std::runtime_error("thrown by the test pass");
    std::abort();
  }
};

}  // namespace

TENON_PASS(
    crashing_pass,
    Crash,
    "crashing.pass",
    "ends the process",
    R"({"properties": {"how": {"type": "string", "enum": ["abort", "throw"], "default": "abort"}}})")
