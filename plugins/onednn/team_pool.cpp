// SPDX-License-Identifier: Apache-2.0
#include "team_pool.hpp"

#include <algorithm>

#include "team/team.hpp"

namespace tenon::onednn {
namespace {

struct Loop {
  uint64_t n;
  uint64_t pieces;
  kernels::Parallel::Body body;
  void* arg;
};

void run_piece(void* self) {
  const Loop& loop = *static_cast<const Loop*>(self);
  const auto piece = static_cast<uint64_t>(team::id());
  loop.body(loop.arg, loop.n * piece / loop.pieces, loop.n * (piece + 1) / loop.pieces);
}

void run(void* self, uint64_t n, uint64_t grain, kernels::Parallel::Body body, void* arg) {
  const int threads = *static_cast<const int*>(self);
  Loop loop{n, std::min<uint64_t>(static_cast<uint64_t>(threads), (n + grain - 1) / grain), body,
            arg};
  // Inside another loop there is one id, which takes it all.
  if (loop.pieces <= 1 || team::is_inside()) return body(arg, 0, n);
  team::region(run_piece, &loop, static_cast<int>(loop.pieces));
}

}  // namespace

kernels::Parallel team_pool(const int* threads) {
  return {run, const_cast<int*>(threads)};
}

}  // namespace tenon::onednn
