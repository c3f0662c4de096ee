// SPDX-License-Identifier: Apache-2.0
#include "plan_runner.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>

#include <dlfcn.h>

#include "emulate.hpp"
#include "folders.hpp"
#include "kernels/element.cuh"
#include "quantization.hpp"

namespace tenon::cuda::test {
namespace {

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

double element(const void* data, uint32_t dtype, int64_t i) {
  if (dtype == TN_F32) return double{static_cast<const float*>(data)[i]};
  if (dtype == TN_F16) return double{tn::value(static_cast<const tn::F16*>(data)[i])};
  if (dtype == TN_I8) return static_cast<double>(static_cast<const signed char*>(data)[i]);
  if (dtype == kF8E4M3) return double{tn::value(static_cast<const tn::F8E4M3*>(data)[i])};
  if (dtype == kF8E5M2) return double{tn::value(static_cast<const tn::F8E5M2*>(data)[i])};
  return double{tn::value(static_cast<const tn::BF16*>(data)[i])};
}

void put(void* data, uint32_t dtype, int64_t i, double x) {
  if (dtype == TN_F32) static_cast<float*>(data)[i] = static_cast<float>(x);
  if (dtype == TN_I32) static_cast<int*>(data)[i] = static_cast<int>(x);
  if (dtype == TN_F16) static_cast<tn::F16*>(data)[i] = tn::half_of(static_cast<float>(x));
  if (dtype == TN_BF16) static_cast<tn::BF16*>(data)[i] = tn::bfloat_of(static_cast<float>(x));
}

double activated(double x, Activation activation) {
  if (activation == Activation::kRelu) return x > 0 ? x : 0;
  if (activation == Activation::kIdentity) return x;
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

class Runner {
 public:
  Runner(const Plan& plan, const Emulator& emulator) : plan_(plan), emulator_(emulator) {}

  Ran run(const std::vector<Bytes>& inputs, std::vector<Bytes>* states) {
    Ran ran;
    for (const Signature& output : plan_.outputs)
      ran.outputs.emplace_back(bytes_of(output.dtype, element_count(output.dims)), 0xcd);
    Bytes arena(plan_.arena_bytes + 512, 0xcd);
    uintptr_t base = (reinterpret_cast<uintptr_t>(arena.data()) + 255) / 256 * 256;
    for (size_t i = states->size(); i < plan_.states.size(); ++i) {
      const Signature& state = plan_.states[i];
      states->emplace_back(bytes_of(state.dtype, element_count(state.dims)), 0);
    }
    for (const Buffer& buffer : plan_.buffers) {
      size_t index = static_cast<size_t>(buffer.index);
      const void* at = nullptr;
      if (buffer.storage == Storage::kInput) at = inputs[index].data();
      if (buffer.storage == Storage::kOutput) at = ran.outputs[index].data();
      if (buffer.storage == Storage::kConstant) at = constant(plan_.constants[index]);
      if (buffer.storage == Storage::kState) at = (*states)[index].data();
      if (buffer.storage == Storage::kArena) at = reinterpret_cast<void*>(base + buffer.offset);
      addresses_.push_back(const_cast<void*>(at));
    }
    for (const Step& step : plan_.steps)
      std::visit([&](const auto& work) { perform(work, &ran.fault); }, step.work);
    return ran;
  }

 private:
  const void* constant(const Constant& one) {
    if (!one.channels_last) return one.tensor.data<const void>();
    return moved_.emplace_back(channels_last_bytes(one.tensor)).data();
  }
  void* at(int buffer) const { return addresses_[static_cast<size_t>(buffer)]; }

  void perform(const Launch& launch, unsigned* fault) {
    Bytes arguments = launch.arguments;
    for (const Patch& patch : launch.patches) {
      void* address = patch.buffer == kFaultBuffer
                          ? static_cast<void*>(fault)
                          : static_cast<char*>(at(patch.buffer)) + patch.offset;
      std::memcpy(arguments.data() + patch.at, &address, sizeof address);
    }
    emulator_.find(launch.symbol)(arguments.data(), launch.grid, launch.block);
  }

  void perform(const Move& move, unsigned*) {
    std::memmove(at(move.to), at(move.from), move.bytes);
  }

  void perform(const Product& p, unsigned*) {
    for (int64_t b = 0; b < p.batch; ++b) {
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < p.k; ++l) {
            int64_t left = b * p.stride_a + (p.transpose_a ? l * p.m + i : i * p.k + l);
            int64_t right = b * p.stride_b + (p.transpose_b ? j * p.k + l : l * p.n + j);
            sum += element(at(p.a), p.dtype, left) * element(at(p.b), p.b_dtype, right);
          }
          sum *= p.alpha;
          int64_t out = (b * p.m + i) * p.n + j;
          if (p.c >= 0) sum += p.beta * element(at(p.c), p.out_dtype, out);
          if (p.bias >= 0) sum += element(at(p.bias), p.out_dtype, j);
          put(at(p.out), p.out_dtype, out, activated(sum, p.activation));
        }
      }
    }
  }

  // Where element a, b, c, d of a tensor of these sizes lies.
  struct Four {
    int64_t b, c, d;
    bool channels_last;
    int64_t at(int64_t i, int64_t j, int64_t k, int64_t l) const {
      return channels_last ? ((i * c + k) * d + l) * b + j : ((i * b + j) * c + k) * d + l;
    }
  };

  // visit(index in x, index in w, index in y) for each product of the convolution.
  template <class Visit>
  static void for_each_product(const Convolution& c, const Visit& visit) {
    int64_t channels = c.c / c.groups, kernels = c.k / c.groups;
    Four x{c.c, c.h, c.width, c.channels_last}, w{channels, c.r, c.s, c.channels_last};
    Four y{c.k, c.p, c.q, c.channels_last};
    for (int64_t i = 0; i < c.n * c.k * c.p * c.q; ++i) {
      int64_t n = i / (c.k * c.p * c.q), k = i / (c.p * c.q) % c.k, p = i / c.q % c.p, q = i % c.q;
      for (int64_t j = 0; j < channels * c.r * c.s; ++j) {
        int64_t channel = j / (c.r * c.s), r = j / c.s % c.r, s = j % c.s;
        int64_t row = p * c.stride[0] - c.pad[0] + r * c.dilation[0];
        int64_t column = q * c.stride[1] - c.pad[1] + s * c.dilation[1];
        if (row < 0 || row >= c.h || column < 0 || column >= c.width) continue;
        visit(x.at(n, k / kernels * channels + channel, row, column), w.at(k, channel, r, s),
              y.at(n, k, p, q));
      }
    }
  }

  void perform(const Convolution& c, unsigned*) {
    bool forward = c.kind == ConvolutionKind::kForward;
    bool by_input = c.kind == ConvolutionKind::kInputGrad;
    int64_t sizes[] = {c.n * c.k * c.p * c.q, c.n * c.c * c.h * c.width,
                       c.k * (c.c / c.groups) * c.r * c.s};
    std::vector<double> sums(static_cast<size_t>(sizes[static_cast<int>(c.kind)]), 0);
    auto x = [&](int64_t i) { return element(at(c.x), c.dtype, i); };
    auto w = [&](int64_t i) { return element(at(c.w), c.dtype, i); };
    auto y = [&](int64_t i) { return element(at(c.y), c.dtype, i); };
    for_each_product(c, [&](int64_t in_x, int64_t in_w, int64_t in_y) {
      if (forward) sums[static_cast<size_t>(in_y)] += x(in_x) * w(in_w);
      if (by_input) sums[static_cast<size_t>(in_x)] += y(in_y) * w(in_w);
      if (!forward && !by_input) sums[static_cast<size_t>(in_w)] += x(in_x) * y(in_y);
    });
    for (size_t i = 0; i < sums.size(); ++i) {
      auto index = static_cast<int64_t>(i);
      int64_t k = c.channels_last ? index % c.k : index / (c.p * c.q) % c.k;
      double sum = sums[i] + (c.bias >= 0 ? element(at(c.bias), c.dtype, k) : 0);
      if (c.z >= 0) sum += element(at(c.z), c.dtype, index);
      put(at(forward ? c.y : by_input ? c.x : c.w), c.dtype, index, c.relu && sum < 0 ? 0 : sum);
    }
  }

  const Plan& plan_;
  const Emulator& emulator_;
  std::vector<void*> addresses_;
  std::list<Bytes> moved_;  // constants in another order
};

}  // namespace

Emulator::~Emulator() {
  for (void* library : libraries_)
    dlclose(library);
}

void Emulator::add(const Plan& plan) {
  for (const Step& step : plan.steps) {
    const Launch* launch = std::get_if<Launch>(&step.work);
    if (launch && !launch->source.empty() && known_.insert(launch->symbol).second) {
      text_ += launch->source;
    }
  }
}

std::string Emulator::build() {
  std::string emulated =
      std::string(tenon::test::kBuildFolder) + "/tests/plugins/cuda/cuda_emulated.so";
  void* kernels = dlopen(emulated.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!kernels) return dlerror();
  libraries_.push_back(kernels);
  if (text_.empty()) return "";
  std::string base = folder_ + "/generated";
  std::ofstream(base + ".cpp") << "#include \"emulate.hpp\"\n#include \"kernels/element.cuh\"\n"
                               << text_;
  std::string source = tenon::test::kSourceFolder;
  std::string command = std::string(tenon::test::kCompiler) +
                        " -std=c++20 -O1 -w -shared -fPIC -I" + source + "/plugins/cuda -I" +
                        source + "/tests/plugins/cuda " + base + ".cpp -o " + base + ".so 2> " +
                        base + ".log";
  if (std::system(command.c_str()) != 0) return read(base + ".log");
  void* made = dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!made) return dlerror();
  libraries_.push_back(made);
  return "";
}

Emulator::Kernel Emulator::find(const std::string& symbol) const {
  for (void* library : libraries_) {
    if (void* found = dlsym(library, symbol.c_str())) return reinterpret_cast<Kernel>(found);
  }
  return nullptr;
}

Ran run_plan(const Plan& plan,
             const Emulator& emulator,
             const std::vector<Bytes>& inputs,
             std::vector<Bytes>* states) {
  return Runner(plan, emulator).run(inputs, states);
}

}  // namespace tenon::cuda::test
