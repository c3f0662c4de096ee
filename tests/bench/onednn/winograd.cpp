// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 by kernels/winograd.h beside oneDNN's direct ones, each pass of training, or
// with weights that are packed once: the least milliseconds of alternating runs.
//   bench_onednn_winograd [fp32|bf16] [threads] [rounds] [channels|kept]

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

struct Geometry {
  int64_t images, side, in, out;
};

// ResNet-18's layers on images of 32x32, ResNet-50's on 224x224.
constexpr Geometry kLayers[] = {
    {64, 32, 64, 64}, {64, 16, 128, 128}, {64, 8, 256, 256},  {64, 4, 512, 512},
    {16, 56, 64, 64}, {16, 28, 128, 128}, {16, 14, 256, 256}, {16, 7, 512, 512},
};

// Image sides, channels of networks for inference: ResNet, VGG, DenseNet, AlexNet, detectors.
constexpr int64_t kKept[][3] = {
    {112, 16, 16},  {112, 32, 32},  {56, 16, 64},   {56, 48, 48},   {56, 64, 64},  {28, 128, 128},
    {14, 256, 256}, {12, 512, 512}, {7, 512, 512},  {7, 256, 256},  {28, 128, 32}, {14, 128, 32},
    {7, 128, 32},   {13, 256, 384}, {13, 384, 384}, {17, 192, 192}, {35, 96, 96},  {20, 32, 32},
    {20, 128, 128}, {10, 128, 128}, {10, 256, 256}, {9, 256, 256},  {8, 256, 256}, {6, 128, 128},
    {224, 64, 64},  {112, 64, 128}, {28, 512, 512}, {40, 160, 160},
};

// One of a few blocks that all layers share, full of bf16 near 1.
void* memory_of(int place, int64_t bytes) {
  constexpr size_t kWords = size_t{40} << 20;
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
  Layer(const Geometry& layer, bool bf16, int threads)
      : type_(bf16 ? memory::data_type::bf16 : memory::data_type::f32),
        n_(layer.images),
        side_(layer.side),
        in_(layer.in),
        out_(layer.out),
        shape_{n_, side_, side_, side_, side_, 1, 1, in_, out_},
        ours_(shape_, bf16 ? ElementType::kBf16 : ElementType::kF32, threads),
        image_({n_, in_, side_, side_}, type_, memory::format_tag::nhwc),
        result_({n_, out_, side_, side_}, type_, memory::format_tag::nhwc),
        weights_({out_, in_, 3, 3}, type_, memory::format_tag::any) {}

  double flops() const { return 18.0 * static_cast<double>(n_ * side_ * side_ * in_ * out_); }

  Direct convolution() {
    dnnl::convolution_forward::primitive_desc made(engine_, dnnl::prop_kind::forward_inference,
                                                   kDirect, image_, weights_, result_, kOne, kPad,
                                                   kPad);
    return {dnnl::convolution_forward(made),
            {{DNNL_ARG_SRC, at(0, image_)},
             {DNNL_ARG_WEIGHTS, at(2, made.weights_desc())},
             {DNNL_ARG_DST, at(1, result_)}}};
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
  // Weights lie channels-last, as training keeps them.
  void pack(const Context& context, bool is_flipped) {
    const WinogradWeights last{9 * in_, 1, in_};
    const WinogradWeights first{1, 9 * in_, in_};
    ours_.pack(context, static_cast<float*>(memory_of(2, 36 * in_ * out_)),
               is_flipped ? first : last, is_flipped, memory_of(3, ours_.packed_bytes()));
  }
  void convolve(const Context& context) {
    ours_.convolve(context,
                   {.src = memory_of(0, bytes(image_)),
                    .packed = memory_of(3, ours_.packed_bytes()),
                    .dst = memory_of(1, bytes(result_))},
                   memory_of(4, ours_.convolve_bytes()));
  }
  void gradient(const Context& context) {
    ours_.weight_gradient(context, memory_of(0, bytes(image_)), memory_of(1, bytes(result_)),
                          static_cast<float*>(memory_of(2, 36 * in_ * out_)), {9 * in_, 1, in_},
                          memory_of(4, ours_.gradient_bytes()));
  }
  void run(const Direct& direct) {
    direct.primitive.execute(stream_, direct.arguments);
    stream_.wait();
  }

 private:
  static constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  static inline const memory::dims kOne{1, 1}, kPad{1, 1};
  static int64_t bytes(const memory::desc& desc) { return static_cast<int64_t>(desc.get_size()); }
  memory at(int place, const memory::desc& desc) {
    return {desc, engine_, memory_of(place, bytes(desc))};
  }

  memory::data_type type_;
  int64_t n_, side_, in_, out_;
  WinogradShape shape_;
  Winograd ours_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  memory::desc image_, result_, weights_;
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

void print(const Geometry& g) {
  const auto number = [](int64_t n) { return static_cast<long long>(n); };
  std::printf("%lld x %lldx%lld, %lld -> %lld channels\n", number(g.images), number(g.side),
              number(g.side), number(g.in), number(g.out));
}

void compare_kept(const Context& context, bool bf16, int threads, int rounds) {
  for (const int64_t images : {1, 8}) {
    for (const auto& [side, in, out] : kKept) {
      const Geometry geometry{images, side, in, out};
      Layer layer(geometry, bf16, threads);
      print(geometry);
      const Direct direct = layer.convolution();
      layer.pack(context, false);
      compare(
          "kept weights", rounds, layer.flops(), [&] { layer.run(direct); },
          [&] { layer.convolve(context); });
    }
  }
}

void compare_training(
    const Context& context, bool bf16, int threads, int rounds, int64_t channels) {
  for (const Geometry& each : kLayers) {
    if (channels != 0 && channels != each.in) continue;
    Layer layer(each, bf16, threads);
    print(each);
    const Direct forward = layer.convolution();
    const Direct backward = layer.source_gradient();
    const Direct weights = layer.weight_gradient();
    const double flops = layer.flops();
    const auto pack_and_convolve = [&](bool is_flipped) {
      layer.pack(context, is_flipped);
      layer.convolve(context);
    };
    compare(
        "convolution", rounds, flops, [&] { layer.run(forward); },
        [&] { pack_and_convolve(false); });
    compare(
        "source gradient", rounds, flops, [&] { layer.run(backward); },
        [&] { pack_and_convolve(true); });
    compare(
        "weight gradient", rounds, flops, [&] { layer.run(weights); },
        [&] { layer.gradient(context); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool bf16 = argc < 2 || std::string(argv[1]) == "bf16";
  int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 10;
  const std::string what = argc > 4 ? argv[4] : "0";
  if (!tenon::onednn::team::why_not_on_team().empty()) return 1;
  const tenon::onednn::team::Hold team(threads);
  if (!Winograd::is_fast(bf16 ? ElementType::kBf16 : ElementType::kF32, best_level())) {
    std::printf("this CPU has no products of that type\n");
    return 1;
  }
  const Context context = make_context(best_level(), tenon::onednn::team_pool(&threads));
  if (what == "kept") {
    compare_kept(context, bf16, threads, rounds);
  } else {
    compare_training(context, bf16, threads, rounds, std::atoi(what.c_str()));
  }
}
