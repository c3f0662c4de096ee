// SPDX-License-Identifier: Apache-2.0
// A fused kernel, by the sites of its own sample: a plan that names it runs them by it, and what
// comes out is what `reference` makes of the same nodes one by one.
#include "tenon/role/kernel.h"

#include <thread>

#include "edit.hpp"

namespace tenon::command::check {
namespace {

constexpr uint64_t kSeeds = 8;
constexpr int kThreads = 4;

double tolerance_of(uint32_t dtype) {
  if (dtype == TN_F64) return 1e-10;
  return dtype == TN_F32 ? 1e-4 : 2e-2;
}

struct Sites : Made<tn_kernel> {
  explicit Sites(const Subject& from) : Made(from), subject(from) {}

  cxx::Model sample(uint64_t seed) const {
    tn_graph* raw = nullptr;
    cxx::check(subject.session->graph->create(subject.session->ctx(), &raw));
    cxx::Model model(subject.session, raw);
    Edit edit(subject.session, raw);
    tn_value_id out = 0;
    cxx::check(table->sample(self, edit.raw(), seed, &out));
    require(out != 0, cat("sample ", seed, ": expected a value, got 0"));
    edit.output("out", out);
    edit.commit();
    return model;
  }
  std::vector<cxx::Tensor> inputs(const cxx::Model& model, uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::vector<cxx::Tensor> out;
    for (const cxx::Port& port : model.inputs())
      out.push_back(random_tensor(subject.session, port.dtype, port.dims, random));
    return out;
  }
  // By the kernel, and `reference` for what it does not take.
  cxx::Plan fused(const cxx::Model& model) const {
    return {model, {{"backend", "reference"}, {"kernels", subject.id}}};
  }

  const Subject& subject;
};

// Whether a partition of the last run was the kernel's.
bool is_used(const Json& described, const std::string& id) {
  for (const Json& one : described["partitions"])
    if (one.value("kernels", Json::object()).contains(id)) return true;
  return false;
}

}  // namespace

void check_kernel(Subject& subject, Report& report) {
  report.check("pattern", [&] {
    Sites sites(subject);
    cxx::TextSink text;
    cxx::check(sites.table->pattern(sites.self, text.get()));
    require(!text.text().empty(), "expected a pattern by abi/pattern.md, got none");
  });
  report.check("sites", [&] {
    Sites sites(subject);
    for (uint64_t seed = subject.seed; seed < subject.seed + kSeeds; ++seed) {
      cxx::Model model = sites.sample(seed);
      std::vector<cxx::Tensor> in = sites.inputs(model, seed);
      cxx::Plan fused = sites.fused(model);
      std::vector<cxx::Tensor> got = fused.run(in);
      std::vector<cxx::Tensor> want = cxx::Plan(model, {{"backend", "reference"}}).run(in);
      require(is_used(fused.describe(), subject.id),
              cat("sample ", seed, ": expected a site that it claims"));
      same_numbers(got[0], want[0], cat("sample ", seed), tolerance_of(want[0].dtype()));
    }
  });
  report.check("from many threads", [&] {
    Sites sites(subject);
    cxx::Model model = sites.sample(subject.seed);
    std::vector<cxx::Tensor> in = sites.inputs(model, subject.seed);
    cxx::Plan fused = sites.fused(model);
    cxx::Tensor want = fused.run(in)[0];
    std::vector<std::string> failures(kThreads);
    std::vector<std::thread> threads;
    for (std::string& failure : failures)
      threads.emplace_back([&] {
        try {
          same_numbers(fused.run(in)[0], want, "a run beside others", 0);
        } catch (const std::exception& thrown) {
          failure = thrown.what();
        }
      });
    for (std::thread& thread : threads)
      thread.join();
    for (const std::string& failure : failures)
      require(failure.empty(), failure);
  });
}

}  // namespace tenon::command::check
