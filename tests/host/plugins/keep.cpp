// SPDX-License-Identifier: Apache-2.0
// A pass that changes nothing, or fails in the way that its option names.
#include <fstream>
#include <stdexcept>

#include "tenon/sdk/role/pass.hpp"

namespace {

// Code that runs when the library is loaded leaves a file behind: listing must not.
const bool kStarted = [] {
  const char* file = std::getenv("TENON_TEST_STARTED");
  if (file) std::ofstream(file) << "started";
  return true;
}();

class Keep {
 public:
  static tenon::Result<Keep> create(tn_ctx*, const tenon::Options& options) {
    return Keep(std::string(options.text("fail", "")));
  }
  tenon::Status run(tn_graph*, const tenon::Cancel&, tenon::Sink& report) {
    if (fail_ == "throw") throw std::runtime_error("thrown by the test plugin");
    if (fail_ == "status") return {TN_OUT_OF_RANGE, "refused by the test plugin"};
    return report.write(R"({"kept": true})");
  }

 private:
  explicit Keep(std::string fail) : fail_(std::move(fail)) {}
  std::string fail_;
};

}  // namespace

TENON_PASS(keep,
           Keep,
           "test.keep",
           "changes nothing",
           R"({"properties": {"fail": {"type": "string", "enum": ["", "throw", "status"],
                                       "default": ""}}})")
