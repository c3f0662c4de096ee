// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which implementation computes a node. An operator with more than one has a list of them, the one
// that is preferred first; the first that does not refuse is built. A site is what all of a list
// look at: the node, what it may take along, and what was found out about them once.
//
//   constexpr Implementation<ConvSite> kConv[] = {{"winograd", offer_winograd_conv}, ...};
//   Names conv_names() { return names_of(kConv); }   // also in lists.hpp and choice.cpp
//   choose<ConvSite>(lowering, site, kConv);
//
// An offer changes nothing but what costs nothing (views): steps are added when it is built. So the
// reason of each refusal is known without an exception, and nothing of a refused one is left.
//
// Which of several that apply is the fastest is a rule of each offer: it is accepted_unless a sweep
// says that another one takes less time. Rows marked kRival are those whose
// order such rules decide; with a chooser (lowering/chooser.hpp) measured times do (rivals.hpp).

#include <algorithm>
#include <cassert>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "lowering/lowering.hpp"
#include "rivals.hpp"

namespace tenon::onednn {

// How an implementation would compute the node, or why it does not.
struct Offer {
  std::string why_not;          // empty: it applies
  std::function<void()> build;  // adds its steps, sets the views of results, marks what it took
  bool is_asked_for = false;    // by an option: it has no rivals
  std::string traits = {};      // of the weights' numbers, that its time depends on
};
inline Offer refused(std::string why) {
  return {std::move(why), {}};
}
inline Offer accepted(std::function<void()> build) {
  return {{}, std::move(build)};
}
inline Offer asked_for(std::function<void()> build) {
  return {{}, std::move(build), true};
}
// It applies, but where there is a reason, which is a rule of sweeps, another one is faster.
inline Offer accepted_unless(std::string why_slower, std::function<void()> build) {
  return {std::move(why_slower), std::move(build)};
}

constexpr bool kRival = true;

template <class Site>
struct Implementation {
  const char* name;
  Offer (*offer)(const Site&);
  bool is_rival = false;
};

using Names = std::set<std::string, std::less<>>;
template <class Site, size_t n>
Names names_of(const Implementation<Site> (&list)[n]) {
  Names names;
  for (const Implementation<Site>& each : list)
    names.insert(each.name);
  return names;
}

// Of all lists; the option `without` is checked against them.
const Names& implementation_names();

template <class Site>
void check_listed(std::span<const Implementation<Site>> list) {
  for (const Implementation<Site>& each : list)
    if (!implementation_names().contains(each.name))
      throw CompileError(std::string(each.name) + ": its list is not in choice.cpp");
}

inline bool is_left_out(const Lowering& lowering, const char* implementation) {
  const std::vector<std::string>& without = lowering.without();
  return std::find(without.begin(), without.end(), implementation) != without.end();
}

template <class Site>
Offer offer_of(const Lowering& lowering, const Site& site, const Implementation<Site>& each) {
  return is_left_out(lowering, each.name) ? refused(kLeftOut) : each.offer(site);
}

// The rivals of list[ruled] that apply, as rules see them or not, behind that one itself.
template <class Site>
std::vector<Rival> rivals_of(Lowering& lowering,
                             const Site& site,
                             std::span<const Implementation<Site>> list,
                             size_t ruled) {
  std::vector<Rival> rivals;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_rival) continue;
    const Offer offer = offer_of(lowering, site, list[i]);
    if (!offer.build) continue;
    // Made anew: an offer is built once.
    const auto build = [&lowering, &site, &each = list[i]] {
      lowering.choice().implementation = each.name;
      offer_of(lowering, site, each).build();
    };
    rivals.insert(i == ruled ? rivals.begin() : rivals.end(), {list[i].name, offer.traits, build});
  }
  return rivals;
}

// Throws CompileError with all reasons where none applies. An implementation may have a list of its
// own, from which it chooses when it is built: then that one's name and refusals count as well.
template <class Site>
void choose(Lowering& lowering, const Site& site, std::span<const Implementation<Site>> list) {
  Choice& choice = lowering.choice();
  check_listed(list);
  for (size_t i = 0; i < list.size(); ++i) {
    const Implementation<Site>& each = list[i];
    [[maybe_unused]] const size_t n_steps = lowering.plan().steps.size();
    Offer offer = offer_of(lowering, site, each);
    assert(lowering.plan().steps.size() == n_steps);
    if (offer.why_not.empty()) {
      if (each.is_rival && !offer.is_asked_for && lowering.options().chooser != nullptr) {
        const std::vector<Rival> rivals = rivals_of(lowering, site, list, i);
        if (rivals.size() > 1) return build_fastest(lowering, rivals);
      }
      choice.implementation = each.name;
      return offer.build();
    }
    choice.refusals.push_back({each.name, std::move(offer.why_not)});
  }
  std::string why;
  for (const Refusal& refusal : choice.refusals)
    why.append(why.empty() ? "" : "; ")
        .append(refusal.implementation)
        .append(": ")
        .append(refusal.why);
  throw CompileError("no implementation applies (" + why + ")");
}

}  // namespace tenon::onednn
