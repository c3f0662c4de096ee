// SPDX-License-Identifier: Apache-2.0
#include "threads/service.hpp"

#include <algorithm>
#include <limits>

#include "threads/team.hpp"

namespace tenon::host {
namespace {

int count(uint32_t n) {
  return static_cast<int>(std::min<uint32_t>(n, std::numeric_limits<int>::max()));
}

}  // namespace

const tn_host_team* team_service() {
  static const tn_host_team table{
      sizeof table,
      1,
      [](uint32_t threads) { return team::enter(count(threads)); },
      team::leave,
      [](int32_t ids_meet) { team::set_ids_meet(ids_meet != 0); },
      [] { return team::has_all_threads() ? 1 : 0; },
      [] { return static_cast<uint32_t>(team::max_threads()); },
      [](uint32_t n, void (*body)(void*), void* arg) { team::begin(body, arg, count(n)); },
      team::end,
      [] { return static_cast<uint32_t>(team::id()); },
      [] { return static_cast<uint32_t>(team::size()); },
      [] { return team::is_inside() ? 1 : 0; },
      team::barrier,
  };
  return &table;
}

}  // namespace tenon::host
