// SPDX-License-Identifier: Apache-2.0
#include "concat_elision.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::onednn {
namespace {

constexpr int64_t kAlign = 64;  // of the start of a buffer, on which kernels and oneDNN may count

template <class AnyStep, class Each>
void for_each_place(AnyStep& step, const Each& each) {
  for (auto& argument : step.arguments)
    each(argument.place);
  for (auto& place : step.places)
    each(place);
}

// Whether steps in front of the Concat that fill these buffers run as often as it does. In a loop's
// body, what is made once would not survive a step that overwrites the result.
bool run_as_often(const Plan& plan, const std::map<int, int64_t>& buffers, size_t index) {
  bool is_so = true;
  for (size_t i = 0; i < index; ++i)
    for_each_place(plan.steps[i], [&](const Place& place) {
      if (buffers.contains(place.buffer))
        is_so = is_so && plan.steps[i].is_invariant == plan.steps[index].is_invariant;
    });
  return is_so;
}

// Where the buffers of the inputs lie in the result; empty where the step must copy. A buffer that
// later steps touch stays apart: they may write their own result there.
std::map<int, int64_t> places_in_result(const Plan& plan,
                                        const backend::Lives& lives,
                                        size_t index) {
  const Step& step = plan.steps[index];
  auto is_arena = [&](const Place& place) {
    return plan.buffers[static_cast<size_t>(place.buffer)].kind == Buffer::Kind::kArena;
  };
  const Place& whole = step.places.back();
  if (!is_arena(whole) || lives.first(whole.buffer) < index) return {};
  std::map<int, int64_t> places;
  int64_t at = whole.offset;
  for (size_t i = 0; i + 1 < step.places.size(); ++i) {
    const Place& piece = step.places[i];
    if (piece.buffer == kNone || piece.offset != 0 || !is_arena(piece) || at % kAlign != 0)
      return {};
    const bool is_whole =
        plan.buffers[static_cast<size_t>(piece.buffer)].bytes == step.end_to_end[i];
    if (!is_whole || lives.last(piece.buffer) > index || !places.emplace(piece.buffer, at).second)
      return {};
    at += step.end_to_end[i];
  }
  return run_as_often(plan, places, index) ? places : std::map<int, int64_t>();
}

}  // namespace

void elide_concats(Plan& plan) {
  // From the last on, as a result may be an input of a later Concat. Lives of the buffers that are
  // left apart do not change, but for results, which begin with their first input.
  for (size_t i = plan.steps.size(); i-- > 0;) {
    if (plan.steps[i].end_to_end.empty()) continue;
    const std::map<int, int64_t> places = places_in_result(plan, lives_of(plan), i);
    if (places.empty()) continue;
    const int whole = plan.steps[i].places.back().buffer;
    plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(i));
    if (plan.first_commit != SIZE_MAX && plan.first_commit > i) --plan.first_commit;
    for (size_t before = 0; before < i; ++before)
      for_each_place(plan.steps[before], [&](Place& place) {
        const auto found = places.find(place.buffer);
        if (found != places.end()) place = {whole, found->second + place.offset};
      });
  }
}

}  // namespace tenon::onednn
