// SPDX-License-Identifier: Apache-2.0
// Products of f32 numbers by kernels/float_product.h beside oneDNN's: medians of runs in turn, and
// what oneDNN takes to make its kernel for one number of rows.
//   bench_onednn_float [threads] [rounds] [avx2|avx512] [cold]
// cold: weights come from memory in each run, as in a decoder that makes token after token.
// With avx2 set ONEDNN_MAX_CPU_ISA=AVX2 as well, so that oneDNN's are of that level too.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/float_product.h"
#include "lowering/weight_store.hpp"
#include "team/openmp.hpp"
#include "team/team.hpp"
#include "team_pool.hpp"

using namespace tenon::onednn::kernels;
using dnnl::memory;

namespace {

struct Shape {
  int64_t m, k, n;
  bool gelu;
};
// Layers of MiniLM and BERT by tokens, of classifiers by batch.
constexpr Shape kShapes[] = {
    {128, 384, 384, false}, {128, 384, 1536, true},  {128, 1536, 384, false},
    {437, 384, 384, false}, {437, 384, 1536, true},  {437, 1536, 384, false},
    {13, 384, 1536, false}, {61, 384, 1536, false},  {2048, 384, 1536, true},
    {128, 768, 3072, true}, {128, 3072, 768, false}, {1, 384, 1536, false},
    {1, 2048, 1000, false}, {16, 2048, 1000, false}, {2, 1280, 1000, false},
};
// Of GPT-2 by tokens of a step.
constexpr Shape kColdShapes[] = {
    {1, 768, 2304, false}, {1, 768, 3072, true},  {1, 3072, 768, false}, {2, 768, 2304, false},
    {4, 768, 2304, false}, {4, 768, 768, false},  {4, 768, 3072, true},  {4, 3072, 768, false},
    {8, 768, 3072, true},  {16, 768, 3072, true}, {32, 768, 3072, true}, {64, 768, 3072, true},
};
constexpr int64_t kBeyondCaches = int64_t{256} << 20;

// As many as need more than the caches have, where they are to come from memory in each run.
int copies_of(int64_t bytes, bool is_cold) {
  return is_cold ? static_cast<int>(kBeyondCaches / bytes) + 1 : 1;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Direct {
 public:
  Direct(const Shape& s, bool is_cold) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const auto begin = std::chrono::steady_clock::now();
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.gelu) {
      dnnl::post_ops ops;
      ops.append_eltwise(dnnl::algorithm::eltwise_gelu_erf, 0, 0);
      attr.set_post_ops(ops);
    }
    using Type = memory::data_type;
    using Tag = memory::format_tag;
    const dnnl::matmul::primitive_desc pd(
        engine_, {{s.m, s.k}, Type::f32, Tag::ab}, {{s.k, s.n}, Type::f32, Tag::any},
        {{1, s.n}, Type::f32, Tag::ab}, {{s.m, s.n}, Type::f32, Tag::ab}, attr);
    primitive_ = dnnl::matmul(pd);
    made_ = seconds_since(begin);
    arguments_ = {{DNNL_ARG_SRC, filled(pd.src_desc())},
                  {DNNL_ARG_BIAS, filled(pd.bias_desc())},
                  {DNNL_ARG_DST, filled(pd.dst_desc())},
                  {DNNL_ARG_SCRATCHPAD, memory(pd.scratchpad_desc(), engine_)}};
    const auto bytes = static_cast<int64_t>(pd.weights_desc().get_size());
    for (int copy = copies_of(bytes, is_cold); copy > 0; --copy) {
      blocks_.push_back(tenon::onednn::aligned_bytes(bytes));
      std::fill_n(static_cast<float*>(blocks_.back().get()), bytes / 4, 0.5F);
      weights_.emplace_back(pd.weights_desc(), engine_, blocks_.back().get());
    }
  }
  double made() const { return made_; }
  void run() {
    next_ = (next_ + 1) % weights_.size();
    arguments_.insert_or_assign(DNNL_ARG_WEIGHTS, weights_[next_]);
    primitive_.execute(stream_, arguments_);
  }

 private:
  memory filled(const memory::desc& desc) {
    memory out(desc, engine_);
    std::fill_n(static_cast<float*>(out.get_data_handle()), desc.get_size() / 4, 0.5F);
    return out;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::vector<std::shared_ptr<void>> blocks_;
  std::vector<memory> weights_;
  size_t next_ = 0;
  std::unordered_map<int, memory> arguments_;
  double made_ = 0;
};

class Ours {
 public:
  Ours(const Shape& s, Level level, int* threads, bool is_cold)
      : context_(make_context(level, tenon::onednn::team_pool(threads))),
        a_(static_cast<size_t>(s.m * s.k), 0.5F),
        row_(static_cast<size_t>(float_columns(s.n)), 1.0F),
        result_(static_cast<size_t>(s.m * s.n)) {
    const std::vector<float> b(static_cast<size_t>(s.k * s.n), 0.5F);
    const FloatWeights weights = {b.data(), s.k, s.n, s.n, 1};
    const int64_t panel = float_panel(context_);
    const int64_t bytes = packed_float_bytes(weights, panel);
    for (int copy = copies_of(bytes, is_cold); copy > 0; --copy) {
      packed_.push_back(tenon::onednn::aligned_bytes(bytes));
      pack_floats(weights, panel, static_cast<float*>(packed_.back().get()));
    }
    args_.a = a_.data();
    args_.a_stride = s.k;
    args_.m = s.m;
    args_.n = args_.dst_stride = s.n;
    args_.k = s.k;
    args_.scales = args_.bias = row_.data();
    args_.dst.data = result_.data();
    args_.ops = &gelu_;
    args_.n_ops = s.gelu ? 1 : 0;
  }
  void run() {
    next_ = (next_ + 1) % packed_.size();
    args_.b = static_cast<const float*>(packed_[next_].get());
    float_product(context_, args_);
  }

 private:
  Context context_;
  FloatProductArgs args_;
  EpilogueOp gelu_ = {.kind = EpilogueOp::Kind::kGeluErf};
  std::vector<float> a_, row_, result_;
  std::vector<std::shared_ptr<void>> packed_;
  size_t next_ = 0;
};

double median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void compare(const Shape& s, Level level, int threads, int rounds, bool is_cold) {
  Ours ours(s, level, &threads, is_cold);
  Direct direct(s, is_cold);
  std::vector<double> own, theirs, ratios;
  for (int round = 0; round < rounds; ++round) {
    auto begin = std::chrono::steady_clock::now();
    ours.run();
    own.push_back(seconds_since(begin));
    begin = std::chrono::steady_clock::now();
    direct.run();
    theirs.push_back(seconds_since(begin));
    ratios.push_back(theirs.back() / own.back());
  }
  const double operations = 2.0 * static_cast<double>(s.m * s.k * s.n);
  const auto bytes = static_cast<double>(4 * s.k * s.n);
  std::printf("%5lld x %4lld -> %4lld%s  %8.3f  %8.3f  %5.2fx  %6.1f  %5.1f  %7.3f\n",
              static_cast<long long>(s.m), static_cast<long long>(s.k), static_cast<long long>(s.n),
              s.gelu ? ", gelu" : "      ", median(own) * 1e3, median(theirs) * 1e3, median(ratios),
              operations / median(own) * 1e-9, bytes / median(own) * 1e-9, direct.made() * 1e3);
}

}  // namespace

int main(int count, char** words) {
  const int threads = count > 1 ? std::atoi(words[1]) : 2;
  const int rounds = count > 2 ? std::atoi(words[2]) : 51;
  const bool is_avx2 = count > 3 && std::string_view(words[3]) == "avx2";
  const bool is_cold = count > 4 && std::string_view(words[4]) == "cold";
  const Level level = is_avx2 ? Level::kAvx2 : best_level();
  if (!tenon::onednn::team::why_not_on_team().empty()) return 1;
  const tenon::onednn::team::Hold team(threads);
  std::printf(
      "%s, %d threads; ms: ours, oneDNN and its ratio; ours in GFLOP/s and GB/s of weights; "
      "oneDNN's making\n",
      level_name(level), threads);
  const std::span<const Shape> shapes =
      is_cold ? std::span<const Shape>(kColdShapes) : std::span<const Shape>(kShapes);
  for (const Shape& shape : shapes)
    compare(shape, level, threads, rounds, is_cold);
}
