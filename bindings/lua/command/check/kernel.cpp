// SPDX-License-Identifier: Apache-2.0
// A fused kernel, by the sites of its own sample: a plan that names it runs them by it, and what
// comes out is what `reference` makes of the same nodes one by one. The same nodes with other types
// and shapes, which models also have, it computes as well or does not claim.
#include "tenon/role/kernel.h"

#include "edit.hpp"
#include "guarded.hpp"

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

// A partition of the last run was the kernel's.
void require_used(const Json& described, const std::string& id, uint64_t seed) {
  for (const Json& one : described["partitions"])
    if (one.value("kernels", Json::object()).contains(id)) return;
  std::string why = "none fits its pattern";
  for (const Json& one : described["fallback_nodes"])
    if (std::string reason = one.value("why", ""); reason.find(id) != reason.npos) why = reason;
  broken(cat("sample ", seed, ": expected a site that it claims: ", why));
}

// The sample with its float32 as another type, as far as its operators take that.
void add_types(const cxx::Model& model, std::vector<cxx::Model>* out) {
  cxx::TextSink sink;
  cxx::check(model.services().print(model.get(), TN_PRINT_DATA, sink.get()));
  for (const char* other : {"f64", "f16", "bf16", "i32"}) {
    std::string text = sink.text();
    for (size_t at = text.find("f32["); at != std::string::npos; at = text.find("f32[", at))
      text.replace(at, 3, other);
    try {
      out->push_back(parse_model(model.session(), text));
    } catch (const cxx::Error&) {
    }
  }
}

using Dims = std::vector<int64_t>;

Dims changed(Dims dims, int how) {
  if (how == 0) dims.insert(dims.begin(), 2);
  if (how == 1) dims.insert(dims.begin(), 1);
  if (how == 2) dims.clear();
  if (dims.empty()) return dims;
  if (how == 3) dims.back() = 1;
  if (how == 4) dims.back() += 3;
  if (how == 5) dims.front() = 0;
  return dims;
}

// The sample with other shapes of all its inputs, and of each alone: more axes, fewer, broadcast.
void add_shapes(const cxx::Model& model, std::vector<cxx::Model>* out) {
  std::vector<cxx::Port> ports = model.inputs();
  for (int how = 0; how < 6; ++how) {
    for (size_t alone = 0; alone <= ports.size(); ++alone) {
      std::vector<cxx::Tensor> given;
      for (size_t i = 0; i < ports.size(); ++i) {
        bool stays = alone < ports.size() && i != alone;
        given.push_back(cxx::Tensor::zeros(model.session(), ports[i].dtype,
                                           stays ? ports[i].dims : changed(ports[i].dims, how)));
      }
      try {
        out->push_back(model.bind(given));
      } catch (const cxx::Error&) {
      }
    }
  }
}

// What reference cannot run counts as no model.
std::vector<cxx::Tensor> expected(const cxx::Model& model, const std::vector<cxx::Tensor>& in) {
  try {
    return cxx::Plan(model, {{"backend", "reference"}}).run(in);
  } catch (const cxx::Error&) {
    return {};
  }
}

void other_sites(const Sites& sites, uint64_t seed) {
  std::vector<cxx::Model> models;
  cxx::Model sample = sites.sample(seed);
  add_types(sample, &models);
  add_shapes(sample, &models);
  for (const cxx::Model& model : models) {
    std::vector<cxx::Tensor> in = sites.inputs(model, seed), want = expected(model, in);
    if (want.empty()) continue;
    std::string given;
    for (const cxx::Tensor& one : in)
      given += cat(given.empty() ? "" : ", ", one.text());
    std::vector<cxx::Tensor> got = sites.fused(model).run(in);
    same_numbers(got[0], want[0], cat("its sample with inputs ", given),
                 tolerance_of(want[0].dtype()));
  }
}

void buffers(const Sites& sites, uint64_t seed) {
  cxx::Model model = sites.sample(seed);
  std::vector<cxx::Tensor> in = sites.inputs(model, seed);
  std::vector<std::unique_ptr<GuardedTensor>> guarded;
  std::vector<const DLTensor*> views;
  for (const cxx::Tensor& one : in) {
    guarded.push_back(std::make_unique<GuardedTensor>(*one.view()));
    views.push_back(guarded.back()->view());
  }
  GuardedResults results;
  cxx::Plan plan = sites.fused(model);
  cxx::check(sites.subject.session->eval->run(plan.raw(), views.data(), views.size(), results.get(),
                                              nullptr));
  results.require_whole(cat("sample ", seed, ": "));
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
      require_used(fused.describe(), subject.id, seed);
      same_numbers(got[0], want[0], cat("sample ", seed), tolerance_of(want[0].dtype()));
    }
  });
  report.check("other types and shapes", [&] {
    Sites sites(subject);
    for (uint64_t seed = subject.seed; seed < subject.seed + kSeeds; ++seed)
      other_sites(sites, seed);
  });
  report.check("buffers", [&] {
    Sites sites(subject);
    for (uint64_t seed = subject.seed; seed < subject.seed + kSeeds; ++seed)
      buffers(sites, seed);
  });
  report.check("from many threads", [&] {
    Sites sites(subject);
    cxx::Model model = sites.sample(subject.seed);
    std::vector<cxx::Tensor> in = sites.inputs(model, subject.seed);
    cxx::Plan fused = sites.fused(model);
    cxx::Tensor want = fused.run(in)[0];
    beside_others(kThreads,
                  [&](size_t) { same_numbers(fused.run(in)[0], want, "a run beside others", 0); });
  });
}

}  // namespace tenon::command::check
