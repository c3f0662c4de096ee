// SPDX-License-Identifier: Apache-2.0
// A pass that counts how many calls of it are inside at once: calls take turns, so it is one.
#include <atomic>
#include <thread>

#include "tenon/sdk/role/pass.hpp"

namespace {

std::atomic<int> inside{0};

class Serial {
 public:
  static tenon::Result<Serial> create(tn_ctx*, const tenon::Options&) { return Serial(); }
  tenon::Status run(tn_graph*, const tenon::Cancel&, tenon::Sink& report) {
    int most = 0;
    ++inside;
    for (int i = 0; i < 20; ++i) {  // long enough for another call to come, if it could
      most = std::max(most, inside.load());
      std::this_thread::yield();
    }
    --inside;
    return report.write(std::to_string(most));
  }
};

}  // namespace

TENON_PASS(serial, Serial, "turns.serial", "counts calls that overlap", "")
