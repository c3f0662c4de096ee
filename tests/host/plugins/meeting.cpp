// SPDX-License-Identifier: Apache-2.0
// A pass that says it is reentrant, and waits in its call until there are two.
#include <atomic>
#include <thread>

#include "tenon/sdk/role/pass.hpp"

namespace {

std::atomic<int> inside{0};

class Meeting {
 public:
  static tenon::Result<Meeting> create(tn_ctx*, const tenon::Options&) { return Meeting(); }
  tenon::Status run(tn_graph*, const tenon::Cancel&, tenon::Sink& report) {
    ++inside;
    for (int i = 0; inside < 2 && i < 10'000'000; ++i)  // in the end it says that nobody came
      std::this_thread::yield();
    return report.write(std::to_string(inside.load()));
  }
};

}  // namespace

TENON_COMPONENT_(meeting,
                 tenon::PassRole<Meeting>,
                 "tenon.pass/1",
                 "turns.meeting",
                 "waits for another call",
                 "",
                 TN_COMP_REENTRANT)
