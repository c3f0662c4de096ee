// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit quantized values by kernels/int8_product.h beside oneDNN's in int8 and in fp32:
// the least milliseconds of alternating runs. Without VNNI oneDNN's int8 saturates; ours is exact.
//   bench_onednn_int8 [threads] [rounds]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/int8_product.h"
#include "team/openmp.hpp"
#include "team/team.hpp"
#include "team_pool.hpp"

using namespace tenon::onednn::kernels;
using dnnl::memory;

namespace {

using Type = memory::data_type;

// A matrix (window 0: m rows) or a convolution of m images of side x side pixels, same padding.
struct Shape {
  int64_t m, k, n, side, window;
};
// MiniLM's layers (16 x 128 tokens and one sentence of 128), ResNet-50's (batch 4).
constexpr Shape kShapes[] = {
    {2048, 384, 384, 0, 0}, {2048, 384, 1536, 0, 0}, {2048, 1536, 384, 0, 0},
    {128, 384, 1536, 0, 0}, {1, 384, 1536, 0, 0},    {4, 64, 64, 56, 3},
    {4, 256, 64, 56, 1},    {4, 64, 256, 56, 1},     {4, 128, 128, 28, 3},
    {4, 256, 256, 14, 3},   {4, 512, 512, 7, 3},     {4, 512, 2048, 7, 1},
};

// oneDNN's primitive for a shape, over memory of its own.
class Direct {
 public:
  Direct(const Shape& s, Type src, Type weights, Type dst) : engine_(dnnl::engine::kind::cpu, 0) {
    if (s.window == 0)
      multiply(s, src, weights, dst);
    else
      convolve(s, src, weights, dst);
  }
  void run() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  void multiply(const Shape& s, Type src, Type weights, Type dst) {
    const memory::desc a({s.m, s.k}, src, memory::format_tag::ab);
    const memory::desc b({s.k, s.n}, weights, memory::format_tag::any);
    const memory::desc c({s.m, s.n}, dst, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc pd(engine_, a, b, c);
    keep(dnnl::matmul(pd), pd.src_desc(), pd.weights_desc(), pd.dst_desc());
  }
  void convolve(const Shape& s, Type src, Type weights, Type dst) {
    const memory::desc a({s.m, s.k, s.side, s.side}, src, memory::format_tag::nhwc);
    const memory::desc b({s.n, s.k, s.window, s.window}, weights, memory::format_tag::any);
    const memory::desc c({s.m, s.n, s.side, s.side}, dst, memory::format_tag::nhwc);
    const memory::dim pad = s.window / 2;
    const dnnl::convolution_forward::primitive_desc pd(engine_, dnnl::prop_kind::forward_inference,
                                                       dnnl::algorithm::convolution_auto, a, b, c,
                                                       {1, 1}, {pad, pad}, {pad, pad});
    keep(dnnl::convolution_forward(pd), pd.src_desc(), pd.weights_desc(), pd.dst_desc());
  }
  void keep(const dnnl::primitive& primitive,
            const memory::desc& src,
            const memory::desc& weights,
            const memory::desc& dst) {
    primitive_ = primitive;
    arguments_ = {{DNNL_ARG_SRC, filled(src)},
                  {DNNL_ARG_WEIGHTS, filled(weights)},
                  {DNNL_ARG_DST, filled(dst)}};
  }
  memory filled(const memory::desc& desc) {
    memory made(desc, engine_);
    std::fill_n(static_cast<char*>(made.get_data_handle()), desc.get_size(), char{1});
    return made;
  }

  dnnl::engine engine_;
  dnnl::stream stream_{engine_};
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

class Ours {
 public:
  Ours(const Shape& s, int* threads)
      : context_(make_context(best_level(), tenon::onednn::team_pool(threads))) {
    const int64_t taps = std::max<int64_t>(1, s.window * s.window);
    const int64_t places = s.window == 0 ? s.m : s.m * s.side * s.side;
    args_.m = places;
    args_.n = args_.dst_stride = s.n;
    args_.k = s.k * taps;
    quantized_.assign(static_cast<size_t>(places * s.k), 3);
    packed_.assign(static_cast<size_t>(packed_int8_bytes(args_.k, s.n)), 1);
    row_.assign(static_cast<size_t>(packed_columns(s.n)), 0.01F);
    result_.assign(static_cast<size_t>(places * s.n), 0);
    args_.a.quantized = quantized_.data();
    args_.a.zero = 1;
    args_.a.stride = s.k;
    args_.b = packed_.data();
    args_.scales = args_.bias = row_.data();
    args_.dst = {result_.data(), ElementType::kU8, {}};
    if (s.window <= 1) return;
    args_.a.has_windows = true;
    ConvWindows& w = args_.a.windows;
    w.pixel = w.channels = s.k;
    w.height = w.width = w.out_height = w.out_width = s.side;
    w.window_height = w.window_width = s.window;
    w.pad_top = w.pad_left = s.window / 2;
  }
  double operations() const { return 2.0 * static_cast<double>(args_.m * args_.n * args_.k); }
  void run() { int8_product(context_, args_); }

 private:
  Context context_;
  Int8ProductArgs args_;
  std::vector<uint8_t> quantized_, result_;
  std::vector<int8_t> packed_;
  std::vector<float> row_;
};

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void compare(const Shape& s, int threads, int rounds) {
  Ours ours(s, &threads);
  const bool is_matrix = s.window == 0;
  Direct int8(s, Type::u8, Type::s8, is_matrix ? Type::f32 : Type::u8);
  Direct fp32(s, Type::f32, Type::f32, Type::f32);
  double least[3] = {1e9, 1e9, 1e9};
  for (int round = 0; round < rounds; ++round) {
    least[0] = std::min(least[0], seconds_of([&] { ours.run(); }));
    least[1] = std::min(least[1], seconds_of([&] { int8.run(); }));
    least[2] = std::min(least[2], seconds_of([&] { fp32.run(); }));
  }
  std::printf(
      "%5lld x %4lld -> %4lld, side %2lld, window %lld: %7.3f  %7.3f %5.2fx  %7.3f %5.2fx  %6.1f\n",
      static_cast<long long>(s.m), static_cast<long long>(s.k), static_cast<long long>(s.n),
      static_cast<long long>(s.side), static_cast<long long>(s.window), least[0] * 1e3,
      least[1] * 1e3, least[1] / least[0], least[2] * 1e3, least[2] / least[0],
      ours.operations() / least[0] * 1e-9);
}

}  // namespace

int main(int count, char** words) {
  const int threads = count > 1 ? std::atoi(words[1]) : 2;
  const int rounds = count > 2 ? std::atoi(words[2]) : 30;
  if (!tenon::onednn::team::why_not_on_team().empty()) return 1;
  const tenon::onednn::team::Hold team(threads);
  std::printf(
      "%s, %d threads; ms: ours, oneDNN int8 and its ratio, oneDNN fp32 and its ratio; ours in "
      "G/s\n",
      level_name(best_level()), threads);
  for (const Shape& shape : kShapes)
    compare(shape, threads, rounds);
}
