// SPDX-License-Identifier: Apache-2.0
// A pass that ends the process.
#include <cstdlib>

#include "tenon/sdk/role/pass.hpp"

namespace {

struct Crash {
  static tenon::Result<Crash> create(tn_ctx*, const tenon::Options&) { return Crash(); }
  tenon::Status run(tn_graph*, const tenon::Cancel&, tenon::Sink&) { std::abort(); }
};

}  // namespace

TENON_PASS(crashing_pass, Crash, "crashing.pass", "ends the process", "")
