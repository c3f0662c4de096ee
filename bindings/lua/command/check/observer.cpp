// SPDX-License-Identifier: Apache-2.0
// An observer sees finite numbers, counts the others, and can be joined with one of its kind.
#include "tenon/role/observer.h"

#include <cmath>

#include "check.hpp"
#include "guarded.hpp"

namespace tenon::command::check {
namespace {

struct Watching : Made<tn_observer> {
  using Made::Made;
  void observe(const cxx::Tensor& tensor) const { cxx::check(table->observe(self, tensor.view())); }
  tn_range range() const {
    tn_range out{};
    cxx::check(table->range(self, &out));
    require(std::isfinite(out.low) && std::isfinite(out.high) && out.low <= out.high,
            cat("expected a finite range, got ", out.low, " to ", out.high));
    return out;
  }
  std::string saved() const {
    cxx::TextSink sink;
    cxx::check(table->save(self, sink.get()));
    return sink.text();
  }
  tn_status* merge(const std::string& state) const {
    return table->merge(self, {state.data(), state.size()});
  }
};

void expect_near(const tn_range& got, const tn_range& want, const std::string& what) {
  double most = 0.1 * (want.high - want.low);
  require(std::fabs(got.low - want.low) <= most && std::fabs(got.high - want.high) <= most,
          cat(what, ": expected about ", want.low, " to ", want.high, ", got ", got.low, " to ",
              got.high));
}

void same_range(const tn_range& got, const tn_range& want, const std::string& what) {
  require(got.seen == want.seen && got.low == want.low && got.high == want.high,
          cat(what, ": expected ", want.seen, " numbers from ", want.low, " to ", want.high,
              ", got ", got.seen, " from ", got.low, " to ", got.high));
}

// The range of -15/8 to 14/8, which every float type has exactly.
tn_range steps_of(const Subject& subject, uint32_t dtype) {
  Watching one(subject);
  cxx::Tensor steps = cxx::Tensor::zeros(subject.session, dtype, {30});
  for (int64_t i = 0; i < steps.size(); ++i)
    steps.set(i, static_cast<double>(i - 15) / 8);
  one.observe(steps);
  return one.range();
}

void counts(const Subject& subject, std::mt19937_64& random) {
  Watching one(subject);
  cxx::Tensor data = random_tensor(subject.session, TN_F32, {40, 5}, random);
  double most = 0;
  for (int64_t i = 0; i < data.size(); ++i)
    most = std::max(most, std::fabs(data.at(i)));
  data.set(3, NAN);
  data.set(4, INFINITY);
  data.set(5, -INFINITY);
  one.observe(data);
  tn_range range = one.range();
  require(range.seen == 197 && range.not_finite == 3,
          cat("197 finite numbers and 3 others: expected these counts, got ", range.seen, " and ",
              range.not_finite));
  require(range.low >= -1.01 * most && range.high <= 1.01 * most,
          cat("numbers within ", -most, "..", most, ": expected a range within, got ", range.low,
              " to ", range.high));
  require(range.high - range.low >= 0.1 * most,
          cat("numbers within ", -most, "..", most, ": expected a tenth of it at least, got ",
              range.low, " to ", range.high));
}

// Quantizers give these to every observer.
void takes_what_every_one_takes(const Subject& subject) {
  for (int bits : {4, 8})
    for (bool symmetric : {false, true}) {
      Json options = subject.options;
      options.update({{"bits", bits}, {"symmetric", symmetric}});
      subject.make(options);
    }
}

// Of positive numbers, so that a range that takes in the zeros of an empty state shows.
void joined(const Subject& subject, std::mt19937_64& random) {
  Watching whole(subject), first(subject), second(subject);
  cxx::Tensor a = random_tensor(subject.session, TN_F32, {200}, random);
  cxx::Tensor b = random_tensor(subject.session, TN_F32, {300}, random);
  for (cxx::Tensor* one : {&a, &b})
    for (int64_t i = 0; i < one->size(); ++i)
      one->set(i, one->at(i) + 5);
  for (const Watching* one : {&whole, &first})
    one->observe(a);
  for (const Watching* one : {&whole, &second})
    one->observe(b);
  cxx::check(first.merge(second.saved()));
  tn_range want = whole.range(), got = first.range();
  require(got.seen == want.seen,
          cat("two states joined: expected ", want.seen, " numbers, got ", got.seen));
  expect_near(got, want, "two states joined");
  Watching idle(subject), late(subject);
  cxx::check(first.merge(idle.saved()));
  same_range(first.range(), got, "joined with one that saw nothing");
  cxx::check(late.merge(second.saved()));
  expect_near(late.range(), second.range(), "one that saw nothing, joined with another");
}

// Bytes that are no state are refused, and what was seen before stays.
void hostile(const Subject& subject, std::mt19937_64& random) {
  Watching one(subject);
  one.observe(random_tensor(subject.session, TN_F32, {64}, random));
  tn_range before = one.range();
  std::string state = one.saved();
  for (size_t cut : {size_t{0}, state.size() / 2, state.size() - 1})
    if (cut < state.size()) must_fail(one.merge(state.substr(0, cut)), "a state that is cut short");
  std::string longer = state + "x";
  must_fail(one.merge(longer), "a state with a byte too many");
  for (int round = 0; round < 50; ++round) {
    std::string noise(state.size(), '\0');
    for (char& c : noise)
      c = static_cast<char>(random());
    Watching fresh(subject);
    tn_status* answer = fresh.merge(noise);  // may look like a state: then it has to go on
    if (answer) {
      must_fail(answer, "random bytes as a state");
    } else {
      tn_range out{};
      code_of(fresh.table->range(fresh.self, &out));
    }
  }
  same_range(one.range(), before, "a refused state");
}

}  // namespace

void check_observer(Subject& subject, Report& report) {
  std::mt19937_64 random(7);
  report.check("bits and symmetric", [&] { takes_what_every_one_takes(subject); });
  report.check("buffers", [&] {
    Watching one(subject);
    GuardedTensor data(*random_tensor(subject.session, TN_F32, {4, 16}, random).view());
    cxx::check(one.table->observe(one.self, data.view()));
    for (uint32_t dtype : {TN_F16, TN_BF16, TN_F64}) {
      GuardedTensor zeros(*cxx::Tensor::zeros(subject.session, dtype, {4, 16}).view());
      cxx::check(one.table->observe(one.self, zeros.view()));
    }
  });
  report.check("nothing seen", [&] {
    Watching one(subject);
    tn_range out{};
    must_fail(one.table->range(one.self, &out), "the range of an observer that saw nothing");
    one.observe(cxx::Tensor::zeros(subject.session, TN_F32, {0, 3}));
    must_fail(one.table->range(one.self, &out), "the range of an observer that saw no element");
  });
  report.check("counts", [&] { counts(subject, random); });
  report.check("one value", [&] {
    Watching one(subject);
    one.observe(cxx::Tensor::zeros(subject.session, TN_F32, {9}));
    one.range();
  });
  report.check("float types", [&] {
    tn_range want = steps_of(subject, TN_F32);
    for (uint32_t dtype : {TN_F16, TN_BF16, TN_F64}) {
      tn_range got = steps_of(subject, dtype);
      std::string what = cat("30 numbers of ", cxx::dtype_name(dtype));
      require(got.seen == 30, cat(what, ": expected this count, got ", got.seen));
      expect_near(got, want, what);
    }
  });
  report.check("merge", [&] { joined(subject, random); });
  report.check("hostile state", [&] { hostile(subject, random); });
  report.check("deterministic", [&] {
    Watching one(subject), other(subject);
    cxx::Tensor data = random_tensor(subject.session, TN_F32, {500}, random);
    one.observe(data);
    other.observe(data);
    require(one.saved() == other.saved(), "the same numbers: expected the same state");
  });
}

}  // namespace tenon::command::check
