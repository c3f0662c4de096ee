// SPDX-License-Identifier: Apache-2.0
// A metric: a finite number of what fits together, an answer to what does not, borrowed data left
// alone.
#include "tenon/role/metric.h"

#include <cmath>
#include <cstring>

#include "check.hpp"
#include "guarded.hpp"

namespace tenon::command::check {
namespace {

using Measuring = Made<tn_metric>;

struct Pair {
  cxx::Tensor out, label;
};

// Scores of ten classes, and what they are held against, as the schema's "against" says.
Pair sample(const Subject& subject, uint64_t seed) {
  std::mt19937_64 random(seed);
  Pair pair{random_tensor(subject.session, TN_F32, {6, 10}, random), {}};
  if (subject.schema.value("against", "labels") == "outputs") {
    pair.label = random_tensor(subject.session, TN_F32, {6, 10}, random);
    return pair;
  }
  pair.label = cxx::Tensor::zeros(subject.session, TN_I64, {6});
  for (int64_t i = 0; i < 6; ++i)
    pair.label.set(i, static_cast<double>(random() % 10));
  return pair;
}

tn_status* update(const Measuring& metric, const Pair& pair) {
  const DLTensor* out = pair.out.view();
  const DLTensor* label = pair.label.view();
  return metric.table->update(metric.self, &out, 1, &label, 1);
}

std::string bytes_of(const cxx::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), tensor.bytes()};
}

}  // namespace

void check_metric(Subject& subject, Report& report) {
  report.check("a number of batches", [&] {
    Measuring metric(subject);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Pair pair = sample(subject, seed);
      std::string out = bytes_of(pair.out), label = bytes_of(pair.label);
      if (tn_status* failed = update(metric, pair)) {
        must_fail(failed, "update");
        throw Skipped{"it is not for six samples of ten scores"};
      }
      require(bytes_of(pair.out) == out && bytes_of(pair.label) == label, "it wrote to its input");
    }
    double value = NAN;
    int32_t higher = -1;
    cxx::check(metric.table->value(metric.self, &value, &higher));
    require(std::isfinite(value), cat("value: expected a finite number, got ", value));
    require(higher == 0 || higher == 1, cat("higher_is_better: expected 0 or 1, got ", higher));
    if (!metric.table->details) return;
    cxx::TextSink text;
    cxx::check(metric.table->details(metric.self, text.get()));
    require(text.text().empty() || Json::parse(text.text(), nullptr, false).is_object(),
            cat("details: expected a JSON object, got ", text.text()));
  });
  report.check("buffers", [&] {
    Measuring metric(subject);
    Pair pair = sample(subject, 5);
    GuardedTensor out(*pair.out.view()), label(*pair.label.view());
    const DLTensor *outs = out.view(), *labels = label.view();
    if (tn_status* failed = metric.table->update(metric.self, &outs, 1, &labels, 1)) {
      must_fail(failed, "update");
      throw Skipped{"it is not for six samples of ten scores"};
    }
  });
  report.check("nothing seen", [&] {
    Measuring metric(subject);
    double value = 0;
    int32_t higher = 0;
    must_fail(metric.table->value(metric.self, &value, &higher), "the value before any batch");
  });
  report.check("what does not fit together", [&] {
    Pair pair = sample(subject, 4);
    Pair shorter{pair.out, cxx::Tensor::zeros(subject.session, pair.label.dtype(), {3})};
    Pair truth{cxx::Tensor::zeros(subject.session, TN_BOOL, {6, 10}), pair.label};
    Pair scalar{cxx::Tensor::zeros(subject.session, TN_F32, {}), pair.label};
    for (const Pair* odd : {&shorter, &truth, &scalar}) {
      Measuring metric(subject);
      if (tn_status* failed = update(metric, *odd)) must_fail(failed, "update");
    }
    Measuring metric(subject);
    const DLTensor* out = pair.out.view();
    must_fail(metric.table->update(metric.self, &out, 1, nullptr, 0), "no labels");
    const DLTensor* label = pair.label.view();
    must_fail(metric.table->update(metric.self, nullptr, 0, &label, 1), "no outputs");
  });
}

}  // namespace tenon::command::check
