// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 by kernels/winograd.h beside oneDNN's direct ones, each pass of training:
// the least milliseconds of alternating runs.
//   bench_onednn_winograd [fp32|bf16] [threads] [rounds] [channels]

#include "kernels/winograd.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "team/openmp.hpp"
#include "team/team.hpp"
#include "team_pool.hpp"

using namespace tenon::onednn::kernels;
using dnnl::memory;

namespace {

// ResNet-18's layers on images of 32x32, ResNet-50's on 224x224.
constexpr int64_t kLayers[][3] = {
    // images, pixels a side, channels
    {64, 32, 64}, {64, 16, 128}, {64, 8, 256},  {64, 4, 512},
    {16, 56, 64}, {16, 28, 128}, {16, 14, 256}, {16, 7, 512},
};

// One of a few blocks that all layers share, full of bf16 near 1.
void* memory_of(int place, int64_t bytes) {
  constexpr size_t kWords = size_t{16} << 20;
  static std::vector<std::vector<uint32_t>> held(5);
  std::vector<uint32_t>& words = held[static_cast<size_t>(place)];
  if (words.empty()) {
    words.resize(kWords + 16);
    for (size_t i = 0; i < words.size(); ++i)
      words[i] = 0x3f803f90U + static_cast<uint32_t>(i % 32);
  }
  if (static_cast<size_t>(bytes) > kWords * 4) {
    std::fprintf(stderr, "a layer needs %lld bytes\n", static_cast<long long>(bytes));
    std::exit(1);
  }
  const uintptr_t at = (reinterpret_cast<uintptr_t>(words.data()) + 63) & ~uintptr_t{63};
  return reinterpret_cast<void*>(at);
}

struct Direct {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
};

class Layer {
 public:
  Layer(const int64_t (&layer)[3], bool bf16, int threads)
      : type_(bf16 ? memory::data_type::bf16 : memory::data_type::f32),
        n_(layer[0]),
        side_(layer[1]),
        channels_(layer[2]),
        shape_{n_, side_, side_, side_, side_, 1, 1, channels_, channels_},
        ours_(shape_, bf16 ? ElementType::kBf16 : ElementType::kF32, threads),
        image_({n_, channels_, side_, side_}, type_, memory::format_tag::nhwc),
        weights_({channels_, channels_, 3, 3}, type_, memory::format_tag::any) {}

  double flops() const {
    return 18.0 * static_cast<double>(n_ * side_ * side_ * channels_ * channels_);
  }

  Direct convolution() {
    dnnl::convolution_forward::primitive_desc made(engine_, dnnl::prop_kind::forward_inference,
                                                   kDirect, image_, weights_, image_, kOne, kPad,
                                                   kPad);
    return {dnnl::convolution_forward(made),
            {{DNNL_ARG_SRC, at(0, image_)},
             {DNNL_ARG_WEIGHTS, at(2, made.weights_desc())},
             {DNNL_ARG_DST, at(1, image_)}}};
  }
  Direct source_gradient() {
    dnnl::deconvolution_forward::primitive_desc made(engine_, dnnl::prop_kind::forward_inference,
                                                     dnnl::algorithm::deconvolution_direct, image_,
                                                     weights_, image_, kOne, kPad, kPad);
    return {dnnl::deconvolution_forward(made),
            {{DNNL_ARG_SRC, at(1, image_)},
             {DNNL_ARG_WEIGHTS, at(2, made.weights_desc())},
             {DNNL_ARG_DST, at(0, image_)}}};
  }
  Direct weight_gradient() {
    dnnl::convolution_forward::primitive_desc forward(engine_, dnnl::prop_kind::forward_training,
                                                      kDirect, image_, weights_, image_, kOne, kPad,
                                                      kPad);
    const memory::desc sums(weights_.get_dims(), memory::data_type::f32, memory::format_tag::any);
    dnnl::convolution_backward_weights::primitive_desc made(engine_, kDirect, image_, sums, image_,
                                                            kOne, kPad, kPad, forward);
    return {dnnl::convolution_backward_weights(made),
            {{DNNL_ARG_SRC, at(0, image_)},
             {DNNL_ARG_DIFF_DST, at(1, image_)},
             {DNNL_ARG_DIFF_WEIGHTS, at(2, made.diff_weights_desc())}}};
  }
  // Weights lie channels-last, as training keeps them; each run packs them.
  void convolve(const Context& context, bool is_flipped) {
    void* packed = memory_of(3, ours_.packed_bytes());
    const WinogradWeights last{9 * channels_, 1, channels_};
    const WinogradWeights first{1, 9 * channels_, channels_};
    ours_.pack(context, static_cast<float*>(memory_of(2, 36 * channels_ * channels_)),
               is_flipped ? first : last, is_flipped, packed);
    ours_.convolve(
        context,
        {.src = memory_of(0, image_bytes()), .packed = packed, .dst = memory_of(1, image_bytes())},
        memory_of(4, ours_.convolve_bytes()));
  }
  void gradient(const Context& context) {
    ours_.weight_gradient(context, memory_of(0, image_bytes()), memory_of(1, image_bytes()),
                          static_cast<float*>(memory_of(2, 36 * channels_ * channels_)),
                          {9 * channels_, 1, channels_}, memory_of(4, ours_.gradient_bytes()));
  }
  void run(const Direct& direct) {
    direct.primitive.execute(stream_, direct.arguments);
    stream_.wait();
  }

 private:
  static constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  static inline const memory::dims kOne{1, 1}, kPad{1, 1};
  int64_t image_bytes() const { return static_cast<int64_t>(image_.get_size()); }
  memory at(int place, const memory::desc& desc) {
    return {desc, engine_, memory_of(place, static_cast<int64_t>(desc.get_size()))};
  }

  memory::data_type type_;
  int64_t n_, side_, channels_;
  WinogradShape shape_;
  Winograd ours_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  memory::desc image_, weights_;
};

double milliseconds(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

void compare(const char* pass,
             int rounds,
             double flops,
             const std::function<void()>& direct,
             const std::function<void()>& ours) {
  double least[2] = {1e30, 1e30};
  for (int i = 0; i < rounds; ++i) {
    least[0] = std::min(least[0], milliseconds(direct));
    least[1] = std::min(least[1], milliseconds(ours));
  }
  std::printf("  %-16s direct %7.2f ms %5.0f GF/s   winograd %7.2f ms %5.0f GF/s   %5.2fx\n", pass,
              least[0], flops / least[0] / 1e6, least[1], flops / least[1] / 1e6,
              least[0] / least[1]);
}

}  // namespace

int main(int argc, char** argv) {
  const bool bf16 = argc < 2 || std::string(argv[1]) == "bf16";
  int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 10;
  const int64_t channels = argc > 4 ? std::atoi(argv[4]) : 0;
  if (!tenon::onednn::team::why_not_on_team().empty()) return 1;
  const tenon::onednn::team::Hold team(threads);
  if (!Winograd::is_fast(bf16 ? ElementType::kBf16 : ElementType::kF32)) {
    std::printf("this CPU has no products of that type\n");
    return 1;
  }
  const Context context = make_context(best_level(), tenon::onednn::team_pool(&threads));
  for (const auto& each : kLayers) {
    if (channels != 0 && channels != each[2]) continue;
    Layer layer(each, bf16, threads);
    std::printf("%lld x %lldx%lld, %lld channels\n", static_cast<long long>(each[0]),
                static_cast<long long>(each[1]), static_cast<long long>(each[1]),
                static_cast<long long>(each[2]));
    const Direct forward = layer.convolution();
    const Direct backward = layer.source_gradient();
    const Direct weights = layer.weight_gradient();
    const double flops = layer.flops();
    compare(
        "convolution", rounds, flops, [&] { layer.run(forward); },
        [&] { layer.convolve(context, false); });
    compare(
        "source gradient", rounds, flops, [&] { layer.run(backward); },
        [&] { layer.convolve(context, true); });
    compare(
        "weight gradient", rounds, flops, [&] { layer.run(weights); },
        [&] { layer.gradient(context); });
  }
}
