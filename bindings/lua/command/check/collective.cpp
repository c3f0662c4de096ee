// SPDX-License-Identifier: Apache-2.0
// A collective: what one rank does alone; and three ranks on threads, where the schema has the
// options group, rank and ranks.
#include "tenon/role/collective.h"

#include <cmath>

#include "check.hpp"

namespace tenon::command::check {
namespace {

constexpr uint32_t kRanks = 3;
constexpr int64_t kCount = 5;

class Rank {
 public:
  Rank(const Subject& subject, const Json& options)
      : session_(subject.session),
        component_(subject.make(options)),
        table(component_.table<tn_collective>(subject.role, &self)) {
    cxx::check(table->rank(self, &rank, &ranks));
    require(rank < ranks, cat("rank: expected one below ", ranks, ", got ", rank));
  }
  Rank(const Rank&) = delete;

  cxx::Tensor floats(std::vector<int64_t> shape, double first) const {
    cxx::Tensor out = cxx::Tensor::zeros(session_, TN_F32, std::move(shape));
    for (int64_t i = 0; i < out.size(); ++i)
      out.set(i, first + static_cast<double>(i));
    return out;
  }
  // Of what begins with the rank's number; falsy where it failed.
  tn_status* reduce(uint32_t how, int64_t count, cxx::Tensor* out) const {
    cxx::Tensor in = floats({count}, rank);
    *out = floats({count}, -99);
    DLTensor to = *out->view();
    return table->all_reduce(self, cxx::str("reduce"), how, in.view(), &to, nullptr);
  }
  // Of one type, by a name that it may not know.
  tn_status* reduce_as(uint32_t dtype, uint32_t how, cxx::Tensor* out) const {
    cxx::Tensor in = cxx::Tensor::zeros(session_, dtype, {kCount});
    for (int64_t i = 0; i < kCount; ++i)
      in.set(i, static_cast<double>(i + rank));
    *out = cxx::Tensor::zeros(session_, dtype, {kCount});
    DLTensor to = *out->view();
    return table->all_reduce(self, cxx::str("types"), how, in.view(), &to, nullptr);
  }
  tn_status* gather(cxx::Tensor* out) const {
    cxx::Tensor in = floats({kCount}, rank);
    *out = floats({ranks, kCount}, -99);
    DLTensor to = *out->view();
    return table->all_gather(self, cxx::str("gather"), in.view(), &to, nullptr);
  }
  tn_status* send(uint32_t root, cxx::Tensor* out) const {
    *out = floats({kCount}, rank);
    DLTensor buffer = *out->view();
    return table->broadcast(self, cxx::str("send"), root, &buffer, nullptr);
  }

 private:
  SessionPtr session_;
  cxx::Component component_;

 public:
  void* self = nullptr;
  uint32_t rank = 0, ranks = 0;
  const tn_collective* table;
};

void expect(const cxx::Tensor& got, int64_t i, double want, const char* what) {
  require(std::fabs(got.at(i) - want) < 1e-6,
          cat(what, ": element ", i, ": expected ", want, ", got ", got.at(i)));
}

// All functions on a rank of so many, whose numbers begin with theirs.
void works(const Rank& rank) {
  double last = rank.ranks - 1, sum = last * (last + 1) / 2, n = rank.ranks;
  cxx::Tensor out;
  const std::pair<uint32_t, std::pair<double, double>> kCases[] = {
      // how: at element i it is first + i * second
      {TN_REDUCE_SUM, {sum, n}},
      {TN_REDUCE_MEAN, {sum / n, 1}},
      {TN_REDUCE_MIN, {0, 1}},
      {TN_REDUCE_MAX, {last, 1}}};
  for (const auto& [how, line] : kCases) {
    cxx::check(rank.reduce(how, kCount, &out));
    for (int64_t i = 0; i < kCount; ++i)
      expect(out, i, line.first + static_cast<double>(i) * line.second, "all_reduce");
  }
  cxx::check(rank.gather(&out));
  for (int64_t i = 0; i < out.size(); ++i)
    expect(out, i, static_cast<double>(i / kCount + i % kCount), "all_gather");
  cxx::check(rank.send(rank.ranks - 1, &out));
  for (int64_t i = 0; i < kCount; ++i)
    expect(out, i, last + static_cast<double>(i), "broadcast");
}

// A group is broken after a failure, so each type has one of its own.
void each_type(Subject& subject) {
  for (uint32_t dtype : {TN_F64, TN_F16, TN_BF16, TN_I32, TN_I64, TN_U8, TN_BOOL}) {
    Rank rank(subject, subject.options);
    cxx::Tensor out;
    std::string type = cxx::dtype_name(dtype);
    if (tn_status* failed = rank.reduce_as(dtype, TN_REDUCE_MAX, &out)) {
      must_fail(failed, type);
      continue;
    }
    for (int64_t i = 0; i < kCount; ++i)
      expect(out, i, dtype == TN_BOOL ? i > 0 : static_cast<double>(i), type.c_str());
  }
}

// body on a thread for each rank; the first failure is thrown.
void on_threads(Subject& subject,
                const std::string& group,
                const std::function<void(Rank&)>& body) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (uint32_t r = 0; r < kRanks; ++r) {
    Json options = subject.options;
    options.update({{"group", cat("check ", group)}, {"rank", r}, {"ranks", kRanks}});
    ranks.push_back(std::make_unique<Rank>(subject, options));
    require(ranks.back()->rank == r && ranks.back()->ranks == kRanks,
            cat("rank: expected ", r, " of ", kRanks));
  }
  at_once(kRanks, [&](size_t r) {
    try {
      body(*ranks[r]);
    } catch (const std::exception&) {
      ranks[r].reset();  // the others wait for it no longer
      throw;
    }
  });
}

}  // namespace

void check_collective(Subject& subject, Report& report) {
  report.check("one rank", [&] {
    Rank rank(subject, subject.options);
    if (rank.ranks != 1) throw Skipped{cat("it is one of ", rank.ranks, " ranks")};
    works(rank);
    each_type(subject);
  });
  report.check("what cannot be", [&] {
    cxx::Tensor out;
    Rank sender(subject, subject.options);
    must_fail(sender.send(sender.ranks, &out), "broadcast of a rank that there is not");
    Rank reducer(subject, subject.options);
    must_fail(reducer.reduce(99, kCount, &out), "all_reduce by a rule that there is not");
    Rank whole(subject, subject.options);
    must_fail(whole.reduce_as(TN_I32, TN_REDUCE_MEAN, &out), "the mean of integers");
  });
  Json options = subject.schema.value("properties", Json::object());
  bool has_threads =
      options.contains("group") && options.contains("rank") && options.contains("ranks");
  if (!has_threads)
    return report.skip("ranks on threads", "its schema has no options group, rank and ranks");
  report.check("ranks on threads", [&] { on_threads(subject, "all", works); });
  report.check("ranks that disagree", [&] {
    on_threads(subject, "mixed", [](Rank& rank) {
      cxx::Tensor out;
      must_fail(rank.reduce(TN_REDUCE_SUM, kCount + rank.rank, &out), "buffers of other sizes");
      must_fail(rank.reduce(TN_REDUCE_SUM, kCount, &out), "a group that is broken");
    });
  });
}

}  // namespace tenon::command::check
