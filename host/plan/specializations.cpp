// SPDX-License-Identifier: Apache-2.0
// The specializations of a plan by the shapes of its inputs; the most recently used ones are kept.
// Compiling one does not hold the plan's lock, so that runs of known shapes continue; runs that
// need the same one wait for it.
#include <algorithm>

#include "plan/partition.hpp"
#include "services/trace.hpp"
#include "values/tensor.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

// Of one shape in a row.
constexpr uint32_t kMostOpenRuns = 8;

bool fits(const Compiled& compiled, Inputs in) {
  const Shapes& key = compiled.key;
  for (uint64_t i = 0; i < in.size(); ++i) {
    if (key[i][0] == kAnyShape && dtype_of(in[i]->dtype) == TN_U8 && in[i]->ndim == 1) continue;
    if (key[i][0] != dtype_of(in[i]->dtype)) return false;
    auto is_size = [](int64_t ours, int64_t theirs) { return ours == theirs || ours == kOpenSize; };
    if (!std::equal(key[i].begin() + 1, key[i].end(), in[i]->shape, in[i]->shape + in[i]->ndim,
                    is_size))
      return false;
  }
  return !compiled.is_open || compiled.plan->symbols->agree(in);
}

std::string text_of(const Shapes& shapes) {
  std::string out;
  for (const std::vector<int64_t>& one : shapes)
    out += cat(out.empty() ? "" : ", ", dtype_name(static_cast<uint32_t>(one[0])),
               shape_text({one.begin() + 1, one.end()}));
  return out;
}

// Under the plan's lock. One of just these sizes is faster than one of any.
CompiledRef kept_specialization(tn_plan* plan, Inputs in, bool may_open) {
  auto& cache = plan->cache;
  size_t found = cache.size();
  for (size_t i = 0; i < cache.size(); ++i) {
    if (cache[i]->is_open && (!may_open || found < i)) continue;
    if (!fits(*cache[i], in)) continue;
    found = i;
    if (!cache[i]->is_open) break;
  }
  if (found == cache.size()) return nullptr;
  std::rotate(cache.begin(), cache.begin() + found, cache.begin() + found + 1);
  return cache[0];
}

// Whether it has open sizes and has run with just these for a while, so that they get a
// specialization of their own. Under the plan's lock.
bool is_steady(Compiled& compiled, Inputs in) {
  if (!compiled.is_open) return false;
  Shapes shapes = shapes_of(in);
  if (shapes != compiled.met) compiled.times_met = 0;
  compiled.met = std::move(shapes);
  return ++compiled.times_met > kMostOpenRuns;
}

// The right to compile one specialization: other runs that need it wait until this is destroyed.
class Turn {
 public:
  Turn(tn_plan* plan, const Shapes& shapes) : plan_(plan), shapes_(shapes) {
    plan_->compiling.push_back(shapes_);
  }
  ~Turn() {
    std::lock_guard lock(plan_->mutex);
    std::erase(plan_->compiling, shapes_);
    plan_->compiled.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  tn_plan* plan_;
  const Shapes& shapes_;
};

}  // namespace

Shapes shapes_of(Inputs in) {
  Shapes out;
  for (const DLTensor* one : in) {
    out.push_back({dtype_of(one->dtype)});
    out.back().insert(out.back().end(), one->shape, one->shape + one->ndim);
  }
  return out;
}

Result<CompiledRef> specialization_for(tn_plan* plan, Inputs in) {
  std::unique_lock lock(plan->mutex);
  CompiledRef found = kept_specialization(plan, in, true);
  if (found && !is_steady(*found, in)) return found;
  const bool may_open = !found;
  const Shapes shapes = shapes_of(in);
  while (std::ranges::count(plan->compiling, shapes)) {
    plan->compiled.wait(lock);
    if (CompiledRef kept = kept_specialization(plan, in, may_open)) return kept;
  }
  Turn turn(plan, shapes);
  lock.unlock();
  Span span(plan->trace(), "compile", text_of(shapes));
  TN_TRY(made, compile_for(plan, in, may_open));
  CompiledRef dropped;  // freed without the lock
  std::lock_guard again(plan->mutex);
  // One may serve several shapes; another thread may have compiled it meanwhile.
  if (CompiledRef kept = kept_specialization(plan, in, may_open)) return kept;
  if (plan->cache.size() >= plan->cache_limit) {
    dropped = std::move(plan->cache.back());
    plan->cache.pop_back();
  }
  plan->cache.insert(plan->cache.begin(), made);
  return made;
}

CompiledRef last_used(tn_plan* plan) {
  std::lock_guard lock(plan->mutex);
  return plan->cache.empty() ? nullptr : plan->cache[0];
}

std::vector<Fallback> fallbacks_of(tn_plan* plan) {
  std::vector<Fallback> out;
  CompiledRef compiled = last_used(plan);
  if (!compiled) return out;
  out = compiled->fallbacks;
  for (const Step& step : compiled->steps) {
    for (const auto& [name, body] : step.bodies) {
      std::vector<Fallback> inner = fallbacks_of(body.get());
      out.insert(out.end(), inner.begin(), inner.end());
    }
  }
  return out;
}

}  // namespace tenon::host
