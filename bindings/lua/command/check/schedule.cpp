// SPDX-License-Identifier: Apache-2.0
// A schedule is a pure function of the step: finite, the same each time, from any thread.
#include "tenon/cxx/schedule.hpp"

#include <cmath>
#include <cstring>

#include "check.hpp"

namespace tenon::command::check {
namespace {

constexpr uint64_t kTotal = 1000;

std::vector<double> values(const cxx::Schedule& schedule, const std::vector<uint64_t>& steps) {
  std::vector<double> out;
  for (uint64_t step : steps)
    out.push_back(schedule.value(step, kTotal));
  return out;
}

std::vector<uint64_t> some_steps() {
  std::vector<uint64_t> steps{kTotal, kTotal + 1, uint64_t{1} << 40};
  for (uint64_t step = 0; step < kTotal; step += 7)
    steps.push_back(step);
  return steps;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// It may need to know how long it is, or to be longer.
void finite_or_refused(const cxx::Schedule& schedule, uint64_t step, uint64_t total) {
  void* self = nullptr;
  const auto* table = schedule.component().table<tn_schedule>(cxx::Schedule::kRole, &self);
  double out = 0;
  if (tn_status* answer = table->value(self, step, total, &out)) return must_fail(answer, "value");
  require(std::isfinite(out), cat("expected a finite number or a failure, got ", out));
}

}  // namespace

void check_schedule(Subject& subject, Report& report) {
  std::vector<uint64_t> steps = some_steps();
  auto made = [&] { return cxx::Schedule(subject.make()); };
  report.check("finite", [&] {
    cxx::Schedule schedule = made();
    for (uint64_t step : steps) {
      double value = schedule.value(step, kTotal);
      require(std::isfinite(value), cat("step ", step, ": expected a finite number, got ", value));
    }
  });
  report.check("no end in sight", [&] { finite_or_refused(made(), 3, TN_STEPS_UNKNOWN); });
  report.check("one step in all", [&] { finite_or_refused(made(), 0, 1); });
  report.check("pure", [&] {
    cxx::Schedule one = made(), other = made();
    std::vector<double> first = values(one, steps), again = values(one, steps);
    require(same_bits(first, again), "the same steps asked twice: expected the same bits");
    std::vector<uint64_t> backwards(steps.rbegin(), steps.rend());
    std::vector<double> reversed = values(other, backwards);
    std::vector<double> second(reversed.rbegin(), reversed.rend());
    require(same_bits(first, second),
            "another object, asked backwards: expected the same bits: does it keep state?");
  });
  report.check("threads", [&] {
    cxx::Schedule schedule = made();
    std::vector<double> want = values(schedule, steps);
    beside_others(4, [&](size_t) {
      require(same_bits(values(schedule, steps), want),
              "asked from four threads at once: expected the same bits");
    });
  });
}

}  // namespace tenon::command::check
