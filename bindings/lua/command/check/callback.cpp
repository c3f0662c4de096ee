// SPDX-License-Identifier: Apache-2.0
// A callback: answers each step and epoch, also odd ones, with a stop or not, and leaves the model
// alone.
#include "tenon/role/callback.h"

#include "check.hpp"

namespace tenon::command::check {
namespace {

using Listening = Made<tn_callback>;

constexpr tn_progress_point kPoints[] = {
    {sizeof(tn_progress_point), 0, 1, 1, 2.5, 0.1},
    {sizeof(tn_progress_point), 1, 2, 1, INFINITY, 0},
    {sizeof(tn_progress_point), 0, 900, 7, -1e300, 1e-12},
    {sizeof(tn_progress_point), 0, 3, 1, NAN, 0.1},  // earlier than before: a run that was resumed
};

constexpr const char* kRecords[] = {
    R"({"epoch": 1, "steps": 4, "loss": 0.5, "rate": 0.1, "seconds": 1.5, "samples_per_second": 9.0})",
    R"({"epoch": 2, "steps": 8, "loss": 0.25, "rate": 0, "validation_loss": 1e9, "accuracy": 1,
        "not_yet_known": {"by": ["anyone"]}})",
    "{}",
};

}  // namespace

void check_callback(Subject& subject, Report& report) {
  report.check("notified of something", [&] {
    Listening one(subject);
    require(one.table->step || one.table->epoch, "expected step or epoch, both are NULL");
  });
  Listening probe(subject);
  if (probe.table->step) {
    report.check("steps", [&] {
      Listening one(subject);
      for (const tn_progress_point& at : kPoints) {
        int32_t stop = 0;
        if (tn_status* failed = one.table->step(one.self, &at, &stop))
          must_fail(failed, cat("step ", at.step));
      }
    });
  } else {
    report.skip("steps", "it is not notified of steps");
  }
  if (!probe.table->epoch) return report.skip("epochs", "it is not notified of epochs");
  report.check("epochs", [&] {
    for (const auto& [name, text] : zoo()) {
      cxx::Model model = parse_model(subject.session, text);
      std::string before = model.text();
      Listening one(subject);
      for (const char* record : kRecords) {
        int32_t stop = 0;
        if (tn_status* failed = one.table->epoch(one.self, cxx::str(record), model.get(), &stop))
          must_fail(failed, cat(name, ", record ", record));
      }
      require(model.text() == before, cat(name, ": the model was changed"));
    }
  });
}

}  // namespace tenon::command::check
