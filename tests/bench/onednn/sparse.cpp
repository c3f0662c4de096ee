// SPDX-License-Identifier: Apache-2.0
// Products with weights that are mostly zeros by kernels/sparse_product.h, beside the fastest dense
// product of oneDNN (a matmul, and a convolution of 1x1 where the rows are an image's), on shapes
// of MobileNetV2, ResNet-50 and MiniLM: medians in us, and how many times faster ours is, with the
// 95 % interval of runs in turns.
//   bench_onednn_sparse [fp32|bf16|int8] [threads] [rounds] [avx2|avx512] [part of a name]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/sparse_product.h"
#include "lowering/weight_store.hpp"
#include "team/openmp.hpp"
#include "team/team.hpp"
#include "team_pool.hpp"

using namespace tenon::onednn::kernels;
using dnnl::memory;
using tenon::onednn::aligned_bytes;

namespace {

struct Shape {
  const char* name;
  int64_t side, m, k, n;  // side 0: rows of a matrix
};
constexpr Shape kShapes[] = {
    {"mobilenet 112", 112, 12544, 32, 16},   {"mobilenet 112 up", 112, 12544, 16, 96},
    {"mobilenet 56", 56, 3136, 96, 24},      {"mobilenet 56 up", 56, 3136, 24, 144},
    {"mobilenet 28", 28, 784, 144, 32},      {"mobilenet 28 up", 28, 784, 32, 192},
    {"mobilenet 14", 14, 196, 384, 64},      {"mobilenet 14 up", 14, 196, 64, 384},
    {"mobilenet 14 up", 14, 196, 96, 576},   {"mobilenet 7", 7, 49, 576, 160},
    {"mobilenet 7 up", 7, 49, 160, 960},     {"mobilenet last", 7, 49, 320, 1280},
    {"mobilenet classes", 0, 1, 1280, 1000}, {"resnet 56", 56, 3136, 256, 64},
    {"resnet 56 up", 56, 3136, 64, 256},     {"resnet 28", 28, 784, 512, 128},
    {"resnet 28 up", 28, 784, 128, 512},     {"resnet 14", 14, 196, 1024, 256},
    {"resnet 14 up", 14, 196, 256, 1024},    {"resnet 7", 7, 49, 2048, 512},
    {"resnet 7 up", 7, 49, 512, 2048},       {"resnet classes", 0, 1, 2048, 1000},
    {"minilm qkv", 0, 128, 384, 384},        {"minilm up", 0, 128, 384, 1536},
    {"minilm down", 0, 128, 1536, 384},      {"minilm one row", 0, 1, 384, 1536},
    {"minilm 16", 0, 2048, 384, 1536},
};

// What the pruner makes: so many zeros, one by one or in blocks.
struct Zeros {
  double share;
  int64_t of_n, of_k;  // a block
  int64_t n_of, m_of;  // N:M along k; 0: none
};
constexpr Zeros kZeros[] = {
    {0.9, 1, 1, 0, 0},  {0.8, 1, 1, 0, 0}, {0.7, 1, 1, 0, 0}, {0.5, 1, 1, 0, 0}, {0.8, 4, 1, 0, 0},
    {0.8, 16, 1, 0, 0}, {0.9, 1, 4, 0, 0}, {0.8, 1, 4, 0, 0}, {0.5, 1, 1, 2, 4},
};

enum class Type { kF32, kBf16, kInt8 };

std::shared_ptr<void> filled(int64_t bytes, int value) {
  std::shared_ptr<void> made = aligned_bytes(bytes);
  std::memset(made.get(), value, static_cast<size_t>(bytes));
  return made;
}

// [k, n] numbers, of which as many are zeros.
template <class T>
std::vector<T> weights_of(const Shape& shape, const Zeros& zeros) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> chance(0, 1);
  std::vector<T> made(static_cast<size_t>(shape.k * shape.n));
  auto at = [&](int64_t k, int64_t n) -> T& { return made[static_cast<size_t>(k * shape.n + n)]; };
  if (zeros.m_of > 0) {
    for (int64_t n = 0; n < shape.n; ++n)
      for (int64_t k = 0; k < shape.k; k += zeros.m_of) {
        const int64_t first = static_cast<int64_t>(random() % static_cast<uint64_t>(zeros.m_of));
        for (int64_t i = 0; i < zeros.n_of; ++i)
          at(std::min(shape.k - 1, k + (first + i) % zeros.m_of), n) = 1;
      }
    return made;
  }
  for (int64_t k = 0; k < shape.k; k += zeros.of_k)
    for (int64_t n = 0; n < shape.n; n += zeros.of_n) {
      if (chance(random) < zeros.share) continue;
      for (int64_t i = k; i < std::min(shape.k, k + zeros.of_k); ++i)
        for (int64_t j = n; j < std::min(shape.n, n + zeros.of_n); ++j)
          at(i, j) = 1;
    }
  return made;
}

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
double middle(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

struct Ratio {
  double mean = 0, low = 0, high = 0;
};
// Of pairs, by their logarithms; the outer tenths, in which somebody else ran, are left out.
Ratio ratio_of(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> logs;
  for (size_t i = 0; i < over.size(); ++i)
    logs.push_back(std::log(over[i] / under[i]));
  std::sort(logs.begin(), logs.end());
  const size_t cut = logs.size() / 10;
  const std::vector<double> kept(logs.begin() + static_cast<std::ptrdiff_t>(cut),
                                 logs.end() - static_cast<std::ptrdiff_t>(cut));
  const auto n = static_cast<double>(kept.size());
  double mean = 0, square = 0;
  for (double each : kept)
    mean += each / n;
  for (double each : kept)
    square += (each - mean) * (each - mean);
  const double error = 2.1 * std::sqrt(square / (n - 1) / n);
  return {std::exp(mean), std::exp(mean - error), std::exp(mean + error)};
}

// oneDNN's, with operands of its own; whichever of both primitives is faster.
class Dense {
 public:
  Dense(const Shape& shape, Type type) : shape_(shape) {
    const auto left = type == Type::kF32    ? memory::data_type::f32
                      : type == Type::kBf16 ? memory::data_type::bf16
                                            : memory::data_type::u8;
    const auto right = type == Type::kInt8 ? memory::data_type::s8 : left;
    add_product(left, right);
    if (shape.side > 0) add_convolution(left, right);
    if (ways_.size() < 2) return;
    std::vector<double> seconds[2];
    for (int i = 0; i < 9; ++i)
      for (size_t way = 0; way < 2; ++way)
        seconds[way].push_back(seconds_of([&] { run(way); }));
    fastest_ = middle(seconds[0]) < middle(seconds[1]) ? 0 : 1;
  }
  void run() { run(fastest_); }

 private:
  struct Way {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;
  };
  void run(size_t way) {
    ways_[way].primitive.execute(stream_, ways_[way].arguments);
    stream_.wait();
  }
  memory place(const memory::desc& desc) {
    held_.push_back(filled(static_cast<int64_t>(desc.get_size()), 0));
    return {desc, engine_, held_.back().get()};
  }
  void add_product(memory::data_type left, memory::data_type right) {
    const memory::desc a({shape_.m, shape_.k}, left, memory::format_tag::ab);
    const memory::desc b({shape_.k, shape_.n}, right, memory::format_tag::any);
    const memory::desc c({shape_.m, shape_.n}, left, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc pd(engine_, a, b, c);
    ways_.push_back({dnnl::matmul(pd),
                     {{DNNL_ARG_SRC, place(a)},
                      {DNNL_ARG_WEIGHTS, place(pd.weights_desc())},
                      {DNNL_ARG_DST, place(c)}}});
  }
  void add_convolution(memory::data_type left, memory::data_type right) {
    const memory::desc a({1, shape_.k, shape_.side, shape_.side}, left, memory::format_tag::nhwc);
    const memory::desc b({shape_.n, shape_.k, 1, 1}, right, memory::format_tag::any);
    const memory::desc c({1, shape_.n, shape_.side, shape_.side}, left, memory::format_tag::nhwc);
    const dnnl::convolution_forward::primitive_desc pd(
        engine_, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, a, b, c,
        memory::dims{1, 1}, memory::dims{0, 0}, memory::dims{0, 0});
    ways_.push_back({dnnl::convolution_forward(pd),
                     {{DNNL_ARG_SRC, place(a)},
                      {DNNL_ARG_WEIGHTS, place(pd.weights_desc())},
                      {DNNL_ARG_DST, place(c)}}});
  }

  Shape shape_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<std::shared_ptr<void>> held_;
  std::vector<Way> ways_;
  size_t fastest_ = 0;
};

class Sparse {
 public:
  Sparse(const Context& context, const Shape& shape, const Zeros& zeros, Type type, int64_t width)
      : context_(context),
        reals_(type == Type::kInt8 ? std::vector<float>{} : weights_of<float>(shape, zeros)),
        quantized_(type == Type::kInt8 ? weights_of<int8_t>(shape, zeros) : std::vector<int8_t>{}) {
    const ElementType stored = type == Type::kF32    ? ElementType::kF32
                               : type == Type::kBf16 ? ElementType::kBf16
                                                     : ElementType::kU8;
    SparseWeights weights{.data = reals_.data(),
                          .are_quantized = type == Type::kInt8,
                          .k = shape.k,
                          .n = shape.n,
                          .k_stride = shape.n,
                          .n_stride = 1};
    if (weights.are_quantized) weights.data = quantized_.data();
    const int64_t n_blocks = count_sparse_blocks(weights, width);
    const int64_t bytes = packed_sparse_bytes(weights, width, n_blocks);
    share_ = static_cast<double>(n_blocks * width) /
             static_cast<double>(sparse_steps(shape.k, weights.are_quantized) * shape.n);
    packed_ = filled(bytes, 0);
    pack_sparse(weights, width, n_blocks, packed_.get());
    args_.b = unpacked_sparse(weights, width, n_blocks, packed_.get());
    args_.m = shape.m;
    args_.n = args_.dst_stride = shape.n;
    args_.k = args_.a.stride = shape.k;
    args_.a.src.type = args_.dst.type = stored;
    const int64_t size = element_bytes(stored);
    left_ = filled(shape.m * shape.k * size, 0);
    dst_ = filled(shape.m * shape.n * size, 0);
    scratch_ = filled(sparse_scratch_bytes(shape.m, shape.k, weights.are_quantized), 0);
    row_ = filled(sparse_columns(shape.n) * 4, 0);
    args_.a.src.data = left_.get();
    args_.dst.data = dst_.get();
    args_.scratch = scratch_.get();
    args_.scales = args_.bias = static_cast<const float*>(row_.get());
  }
  void run() { sparse_product(context_, args_); }
  double share() const { return share_; }

 private:
  Context context_;
  std::vector<float> reals_;
  std::vector<int8_t> quantized_;
  SparseProductArgs args_;
  std::shared_ptr<void> left_, packed_, scratch_, dst_, row_;
  double share_ = 0;
};

void compare(const Context& context, const Shape& shape, Type type, int rounds) {
  Dense dense(shape, type);
  std::printf("%-18s %5lld x %4lld -> %4lld\n", shape.name, static_cast<long long>(shape.m),
              static_cast<long long>(shape.k), static_cast<long long>(shape.n));
  for (const Zeros& zeros : kZeros) {
    const int64_t width = zeros.of_n > 1 ? zeros.of_n : 1;
    Sparse sparse(context, shape, zeros, type, width);
    std::vector<double> theirs, ours;
    dense.run(), sparse.run();
    for (int i = 0; i < rounds; ++i) {
      theirs.push_back(seconds_of([&] { dense.run(); }));
      ours.push_back(seconds_of([&] { sparse.run(); }));
    }
    const Ratio ratio = ratio_of(theirs, ours);
    char pattern[32];
    if (zeros.m_of > 0)
      std::snprintf(pattern, sizeof pattern, "%lld:%lld", static_cast<long long>(zeros.n_of),
                    static_cast<long long>(zeros.m_of));
    else
      std::snprintf(pattern, sizeof pattern, "%.0f%% %lldx%lld", 100 * zeros.share,
                    static_cast<long long>(zeros.of_n), static_cast<long long>(zeros.of_k));
    std::printf("  %-9s kept %3.0f%%  dense %8.1f  sparse %8.1f  %5.2fx [%.2f, %.2f]\n", pattern,
                100 * sparse.share(), middle(theirs) * 1e6, middle(ours) * 1e6, ratio.mean,
                ratio.low, ratio.high);
  }
}

}  // namespace

int main(int count, char** words) {
  const std::string precision = count > 1 ? words[1] : "fp32";
  int threads = count > 2 ? std::atoi(words[2]) : 2;
  const int rounds = count > 3 ? std::atoi(words[3]) : 15;
  const bool is_avx2 = count > 4 && words[4] == std::string("avx2");
  const std::string part = count > 5 ? words[5] : "";
  if (!tenon::onednn::team::why_not_on_team().empty()) return 1;
  const tenon::onednn::team::Hold team(threads);
  const Level level = is_avx2 ? Level::kAvx2 : best_level();
  const Context context = make_context(level, tenon::onednn::team_pool(&threads));
  const Type type = precision == "int8"   ? Type::kInt8
                    : precision == "bf16" ? Type::kBf16
                                          : Type::kF32;
  if (type == Type::kInt8 && !multiplies_sparse_int8(context)) {
    std::printf("this CPU has no VNNI\n");
    return 1;
  }
  std::printf("%s, %s, %d threads; us of the dense and the sparse product\n", precision.c_str(),
              level_name(level), threads);
  for (const Shape& shape : kShapes)
    if (std::string(shape.name).find(part) != std::string::npos)
      compare(context, shape, type, rounds);
}
