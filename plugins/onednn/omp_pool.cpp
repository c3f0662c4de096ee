// SPDX-License-Identifier: Apache-2.0
#include "omp_pool.hpp"

#include <algorithm>
#include <thread>
#include <vector>

namespace tenon::onednn {
namespace {

void run(void* self, uint64_t n, uint64_t grain, kernels::Parallel::Body body, void* arg) {
  const int threads = *static_cast<const int*>(self);
  uint64_t pieces = std::min<uint64_t>(static_cast<uint64_t>(threads), (n + grain - 1) / grain);
  if (pieces <= 1) return body(arg, 0, n);
  auto run_piece = [=](uint64_t piece) { body(arg, n * piece / pieces, n * (piece + 1) / pieces); };
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer cannot see the barriers of libgomp, so its builds use threads that it knows.
  std::vector<std::jthread> team;
  for (uint64_t piece = 0; piece < pieces; ++piece)
    team.emplace_back(run_piece, piece);
#else
#pragma omp parallel for num_threads(static_cast<int>(pieces)) schedule(static)
  for (uint64_t piece = 0; piece < pieces; ++piece)
    run_piece(piece);
#endif
}

}  // namespace

kernels::Parallel omp_pool(const int* threads) {
  return {run, const_cast<int*>(threads)};
}

}  // namespace tenon::onednn
