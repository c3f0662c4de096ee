// SPDX-License-Identifier: Apache-2.0
// An importance score: one finite number per channel, from borrowed data that it leaves alone.
#include "tenon/role/importance.h"

#include <algorithm>
#include <cmath>

#include "check.hpp"
#include "guarded.hpp"

namespace tenon::command::check {
namespace {

constexpr double kCanary = -12345.678;
// tenon/sdk/role/importance.hpp: effects, and what stands in the place of gradients.
constexpr uint32_t kEffect = 4, kEffects = 4, kFlow = 8, kSecondOrder = 16, kGradientFlow = 32;
constexpr uint32_t kAnyGradients = TN_IMPORTANCE_GRADIENTS | kFlow | kSecondOrder | kGradientFlow;
constexpr uint32_t kKnown = TN_IMPORTANCE_ACTIVATIONS | kEffects | kAnyGradients;

// A group of six channels: a weight that makes them, one that reads them (in another order, with
// entries that belong to none), the scale of a normalization, and activations.
struct Group {
  std::vector<float> made, read, vector, active, gradient;
  std::vector<int64_t> order{5, 4, -1, 3, 2, 1, 0, -1};
  std::vector<tn_group_member> members;
  std::vector<const tn_group_member*> pointers;
  tn_channel_group group{};

  Group(uint32_t needs, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> number;
    for (std::vector<float>* one : {&made, &read, &vector, &active, &gradient}) {
      one->resize(60);
      for (float& x : *one)
        x = number(random);
    }
    add(TN_MEMBER_MAKES, "Conv", 1, 6, 10, made, nullptr);
    add(TN_MEMBER_READS, "MatMul", 2, 8, 3, read, order.data());
    add(TN_MEMBER_VECTOR, "BatchNormalization", 1, 6, 1, vector, nullptr);
    if (needs & TN_IMPORTANCE_ACTIVATIONS)
      add(TN_MEMBER_ACTIVATION, "Relu", 2, 6, 5, active, nullptr);
    if (needs & kEffects) add(kEffect, "", 3, 6, 1, active, nullptr);
    for (tn_group_member& member : members) {
      if (needs & kAnyGradients) member.gradient = gradient.data();
      pointers.push_back(&member);
    }
    group = {sizeof group, 0, cxx::str("group"), 0, 6, pointers.size(), pointers.data()};
  }
  // As pruning leaves it.
  void make_zero() {
    for (std::vector<float>* one : {&made, &read, &vector, &active, &gradient})
      std::ranges::fill(*one, 0.0F);
  }
  // Of one channel, the first.
  void keep_one() {
    group.n_channels = 1;
    std::ranges::fill(order, -1);
    order[0] = 0;
    for (tn_group_member& member : members)
      if (!member.channel) member.extent = 1;
  }
  void add(uint32_t kind,
           const char* op,
           uint64_t outer,
           uint64_t extent,
           uint64_t inner,
           const std::vector<float>& data,
           const int64_t* channel) {
    members.push_back({sizeof(tn_group_member), kind, cxx::str("node"), cxx::str(op),
                       cxx::str("value"), outer, extent, inner, data.data(), nullptr, channel});
  }
};

struct Scoring : Made<tn_importance> {
  using Made::Made;
  uint32_t needs() const {
    uint32_t out = 0;
    if (table->needs) cxx::check(table->needs(self, &out));
    return out;
  }
  std::vector<double> score(const Group& group) const {
    std::vector<double> out(group.group.n_channels + 1, kCanary);
    cxx::check(table->score(self, &group.group, out.data()));
    require(out.back() == kCanary, "it wrote behind the last channel");
    out.pop_back();
    for (size_t i = 0; i < out.size(); ++i)
      require(std::isfinite(out[i]) && out[i] != kCanary,
              cat("channel ", i, ": expected a finite score, got ",
                  out[i] == kCanary ? "none" : std::to_string(out[i])));
    return out;
  }
};

// The group's numbers where they cannot be written to and end at a page that cannot be touched.
struct GuardedGroup : Group {
  std::vector<std::unique_ptr<GuardedArray<float>>> numbers;
  GuardedArray<int64_t> entries;

  GuardedGroup(uint32_t needs, uint64_t seed) : Group(needs, seed), entries(order) {
    for (tn_group_member& member : members) {
      member.data = guarded(member.data, member);
      if (member.gradient) member.gradient = guarded(member.gradient, member);
      if (member.channel) member.channel = entries.data();
    }
  }

 private:
  const float* guarded(const float* from, const tn_group_member& of) {
    std::vector<float> copy(from, from + of.outer * of.extent * of.inner);
    numbers.push_back(std::make_unique<GuardedArray<float>>(copy));
    return numbers.back()->data();
  }
};

}  // namespace

void check_importance(Subject& subject, Report& report) {
  report.check("needs", [&] {
    uint32_t needs = Scoring(subject).needs();
    require((needs & ~kKnown) == 0,
            cat("expected a union of TN_IMPORTANCE_* and kImportance*, got ", needs));
  });
  report.check("scores", [&] {
    Scoring one(subject);
    one.score(Group(one.needs(), 1));
  });
  report.check("zeros", [&] {
    Scoring one(subject);
    Group group(one.needs(), 6);
    group.make_zero();
    one.score(group);
  });
  report.check("one channel", [&] {
    Scoring one(subject);
    Group group(one.needs(), 7);
    group.keep_one();
    one.score(group);
  });
  report.check("repeatable", [&] {
    Scoring one(subject), other(subject);
    Group group(one.needs(), 2);
    require(one.score(group) == other.score(group),
            "the same group, two objects of the same options: expected the same scores");
  });
  report.check("leaves its input alone", [&] {
    Scoring one(subject);
    Group group(one.needs(), 3), same(one.needs(), 3);
    one.score(group);
    require(group.made == same.made && group.read == same.read && group.vector == same.vector,
            "expected the weights as they were, they were written to");
  });
  report.check("buffers", [&] {
    Scoring one(subject);
    GuardedGroup group(one.needs(), 5);
    Guarded out(group.group.n_channels * sizeof(double), sizeof(double));
    cxx::check(one.table->score(one.self, &group.group, static_cast<double*>(out.data())));
    out.require_whole("the scores");
  });
  report.check("unknown kinds", [&] {
    Scoring one(subject);
    Group group(one.needs(), 4);
    group.add(77, "Custom", 1, 6, 10, group.made, nullptr);
    group.pointers.clear();
    for (const tn_group_member& member : group.members)
      group.pointers.push_back(&member);
    group.group.members = group.pointers.data();
    group.group.n_members = group.pointers.size();
    one.score(group);
  });
}

}  // namespace tenon::command::check
