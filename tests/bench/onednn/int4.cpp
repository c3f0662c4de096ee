// SPDX-License-Identifier: Apache-2.0
// Products with 4-bit weights by kernels/int4_product.h: GB/s of the packed bytes beside what the
// same threads reach when they only read as many, on weights of four times the last cache; then the
// same product in fp32 and in int8 by oneDNN.
//   bench_onednn_int4 [threads] [rounds] [group] [cache MiB] [peers]
//   bench_onednn_int4 2 9 32 32 peers

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>
#include <unistd.h>

#include "kernels/int4_product.h"
#include "lowering/weight_store.hpp"
#include "team/openmp.hpp"
#include "team/team.hpp"
#include "team_pool.hpp"

using namespace tenon::onednn::kernels;
using dnnl::memory;
using tenon::onednn::aligned_bytes;

namespace {

constexpr int64_t kK = 4096;
constexpr int64_t kMostM = 128;

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
double median_of(int rounds, const std::function<void()>& run) {
  std::vector<double> seconds;
  run();
  for (int i = 0; i < rounds; ++i)
    seconds.push_back(seconds_of(run));
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[static_cast<size_t>(rounds / 2)];
}

std::shared_ptr<void> filled(int64_t bytes, int value) {
  std::shared_ptr<void> made = aligned_bytes(bytes);
  std::memset(made.get(), value, static_cast<size_t>(bytes));
  return made;
}

// Reads all bytes once, each thread its own stretch; lines are asked for ahead, as the kernel does.
void read_once(const Parallel& pool, const void* data, int64_t bytes) {
  constexpr int64_t kWords = 32, kAheadWords = 1024;
  const auto* words = static_cast<const uint64_t*>(data);
  static uint64_t kept;  // so that reading is not left out
  parallel_for(pool, bytes / (kWords * 8), 1024, [&](int64_t lo, int64_t hi) {
    uint64_t sums[kWords] = {};
    for (const uint64_t* at = words + lo * kWords; at < words + hi * kWords; at += kWords) {
      for (int64_t line = 0; line < kWords; line += 8)
        __builtin_prefetch(at + line + kAheadWords);
      for (int64_t i = 0; i < kWords; ++i)
        sums[i] += at[i];
    }
    for (uint64_t sum : sums)
      __atomic_fetch_add(&kept, sum, __ATOMIC_RELAXED);
  });
}

double middle(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

struct Operands {
  int64_t n, group;
  std::shared_ptr<void> quantized, scales, a, scratch, dst, row;
  int64_t scale_bytes;

  Operands(int64_t columns, int64_t of_group) : n(columns), group(of_group) {
    quantized = filled(int4_packed_bytes(kK, n, group), 0x5a);
    scale_bytes = int4_columns(n) * int4_groups(kK, group) * element_bytes(ElementType::kF16);
    scales = filled(scale_bytes, 0x11);
    a = filled(kMostM * kK * 4, 0x3c);
    scratch = filled(int4_scratch_bytes(kMostM, kK, group, false), 0);
    dst = filled(kMostM * n * 4, 0);
    row = filled(n * 4, 0);
  }
  int64_t bytes() const { return int4_packed_bytes(kK, n, group) + scale_bytes; }

  Int4ProductArgs args(int64_t m) const {
    Int4ProductArgs made;
    made.a = {a.get()};
    made.a_stride = made.k = kK;
    made.m = m;
    made.n = made.dst_stride = n;
    made.b = {.quantized = static_cast<const uint8_t*>(quantized.get()),
              .scales = scales.get(),
              .scale_type = ElementType::kF16,
              .group = group,
              .n_groups = int4_groups(kK, group)};
    made.scratch = scratch.get();
    made.dst = {dst.get()};
    made.scales = made.bias = static_cast<const float*>(row.get());
    return made;
  }
};

// Each product beside a reading of its quantized values, in turn: the bandwidth of a shared machine
// moves.
void run_ours(const Operands& operands, const Parallel& pool, int rounds) {
  const int64_t quantized_bytes = int4_packed_bytes(kK, operands.n, operands.group);
  std::printf("%9s %8s %5s %9s %8s %8s %6s\n", "level", "form", "rows", "ms", "GB/s", "reading",
              "share");
  for (int level = static_cast<int>(best_level()); level >= static_cast<int>(Level::kAvx2);
       --level) {
    const Context context = make_context(static_cast<Level>(level), pool);
    for (const char* form : {"vnni", "bytes", "reals"}) {
      for (int64_t m : {1, 2, 3, 4, 6, 8, 16, 128}) {
        Int4ProductArgs args = operands.args(m);
        args.as_int8 = form != std::string("reals");
        args.with_vnni = form == std::string("vnni");
        std::vector<double> seconds, reads, shares;
        for (int round = 0; round < (m > 8 ? 3 : rounds); ++round) {
          const double read =
              seconds_of([&] { read_once(pool, operands.quantized.get(), quantized_bytes); });
          seconds.push_back(seconds_of([&] { int4_product(context, args); }));
          reads.push_back(static_cast<double>(quantized_bytes) / read);
          shares.push_back(static_cast<double>(operands.bytes()) / seconds.back() / reads.back());
        }
        std::printf("%9s %8s %5lld %9.3f %8.2f %8.2f %5.0f%%\n",
                    level_name(static_cast<Level>(level)), form, static_cast<long long>(m),
                    middle(seconds) * 1e3,
                    static_cast<double>(operands.bytes()) / middle(seconds) * 1e-9,
                    middle(reads) * 1e-9, 100 * middle(shares));
      }
    }
  }
}

// oneDNN's product of the same size in its own layout.
void run_peer(const Operands& operands,
              memory::data_type left,
              memory::data_type right,
              int rounds) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  for (int64_t m : {1, 8, 128}) {
    const memory::desc a({m, kK}, left, memory::format_tag::ab);
    const memory::desc b({kK, operands.n}, right, memory::format_tag::any);
    const memory::desc c({m, operands.n}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc pd(engine, a, b, c);
    const auto bytes = static_cast<int64_t>(pd.weights_desc().get_size());
    const std::shared_ptr<void> weights = filled(bytes, 1);
    std::unordered_map<int, memory> arguments = {
        {DNNL_ARG_SRC, memory(a, engine, operands.a.get())},
        {DNNL_ARG_WEIGHTS, memory(pd.weights_desc(), engine, weights.get())},
        {DNNL_ARG_DST, memory(c, engine, operands.dst.get())}};
    const dnnl::matmul product(pd);
    const double s = median_of(rounds, [&] {
      product.execute(stream, arguments);
      stream.wait();
    });
    std::printf("%9s %8s %5lld %9.3f %8.2f\n", "oneDNN",
                right == memory::data_type::f32 ? "fp32" : "int8", static_cast<long long>(m),
                s * 1e3, static_cast<double>(bytes) / s * 1e-9);
  }
}

}  // namespace

int main(int count, char** words) {
  const int threads = count > 1 ? std::atoi(words[1]) : 2;
  const int rounds = count > 2 ? std::atoi(words[2]) : 9;
  const int64_t group = count > 3 ? std::atoi(words[3]) : 32;
  const int64_t stated = count > 4 ? std::atoi(words[4]) : 0;
  const int64_t cache =
      stated > 0 ? stated << 20 : std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 1 << 20);
  if (!tenon::onednn::team::why_not_on_team().empty()) return 1;
  const tenon::onednn::team::Hold team(threads);
  const Parallel pool = tenon::onednn::team_pool(&threads);
  const Operands operands(4 * cache * 2 / kK, group);
  std::printf("%s, %d threads; %lld -> %lld, groups of %lld, f16 scales: %.1f MB packed\n",
              level_name(best_level()), threads, static_cast<long long>(kK),
              static_cast<long long>(operands.n), static_cast<long long>(group),
              static_cast<double>(operands.bytes()) * 1e-6);
  run_ours(operands, pool, rounds);
  if (count <= 5) return 0;
  run_peer(operands, memory::data_type::s8, memory::data_type::s8, rounds);
  run_peer(operands, memory::data_type::f32, memory::data_type::f32, rounds);
}
