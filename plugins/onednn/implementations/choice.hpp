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

#include <algorithm>
#include <cassert>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "lowering/lowering.hpp"

namespace tenon::onednn {

// How an implementation would compute the node, or why it does not.
struct Offer {
  std::string why_not;          // empty: it applies
  std::function<void()> build;  // adds its steps, sets the views of results, marks what it took
};
inline Offer refused(std::string why) {
  return {std::move(why), {}};
}
inline Offer accepted(std::function<void()> build) {
  return {{}, std::move(build)};
}

template <class Site>
struct Implementation {
  const char* name;
  Offer (*offer)(const Site&);
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

// Throws CompileError with all reasons where none applies. An implementation may have a list of its
// own, from which it chooses when it is built: then that one's name and refusals count as well.
template <class Site>
void choose(Lowering& lowering, const Site& site, std::span<const Implementation<Site>> list) {
  Choice& choice = lowering.choice();
  check_listed(list);
  for (const Implementation<Site>& each : list) {
    [[maybe_unused]] const size_t n_steps = lowering.plan().steps.size();
    Offer offer = is_left_out(lowering, each.name) ? refused(kLeftOut) : each.offer(site);
    assert(lowering.plan().steps.size() == n_steps);
    if (offer.why_not.empty()) {
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
