// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a compiled part is: steps as plain data over numbered buffers. Nothing here needs a GPU, so
// that tests can run a plan on the CPU, kernel by kernel, and compare.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tenon/sdk/tensor.hpp"

namespace tenon::cuda {

using Dims = std::vector<int64_t>;

// How inputs and outputs are aligned at least, and what lies in memory of the plan's own: what
// cudaMalloc gives, and what cuBLASLt likes best.
constexpr uint32_t kBoundaryAlign = 16, kOwnAlign = 256;

enum class Storage { kInput, kOutput, kConstant, kState, kArena };

struct Buffer {
  std::string name;
  uint64_t bytes = 0;
  Storage storage = Storage::kArena;
  int index = 0;        // which input, output, constant or state
  uint64_t offset = 0;  // in the arena
};

constexpr int kFaultBuffer = -2;  // the word where kernels write which node met bad input

// The address of a buffer, `offset` bytes in, goes to byte `at` of the arguments.
struct Patch {
  uint32_t at = 0;
  int buffer = 0;
  uint64_t offset = 0;
};

// One kernel with one argument, a struct.
struct Launch {
  std::string symbol;
  std::string source;  // generated text; empty: a kernel of kernels/
  uint32_t grid = 1, block = 1;
  std::vector<unsigned char> arguments;
  std::vector<Patch> patches;
  // An element of what is written depends, of what has its shape, on that element alone, and is
  // written after it was read: the two may be one buffer.
  bool is_elementwise = false;
  int fault_at = -1;  // where in the arguments the number of its fault is; -1: it has none
};

enum class Activation { kIdentity, kRelu, kGeluTanh };

// out[b] = activation(alpha * a[b] b[b] + beta * c[b] + bias), row-major, by cuBLASLt. Of 8-bit
// integers: int32, without bias and activation; of 8-bit floats: float32 likewise.
struct Product {
  uint32_t dtype = 0, b_dtype = 0, out_dtype = 0;
  int a = -1, b = -1, bias = -1, c = -1, out = -1;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t stride_a = 0, stride_b = 0;  // elements between batches; 0: the same for all
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  Activation activation = Activation::kIdentity;
};

enum class ConvolutionKind { kForward, kInputGrad, kWeightGrad };

// Two-dimensional convolution by cuDNN, sizes as NCHW: y = relu(x * w + bias + z). A gradient has
// the same members: that by the input writes x from y and w, that by the weight writes w from x and
// y.
struct Convolution {
  ConvolutionKind kind = ConvolutionKind::kForward;
  uint32_t dtype = 0;
  int x = -1, w = -1, bias = -1, z = -1, y = -1;
  int64_t n = 0, c = 0, h = 0, width = 0, k = 0, r = 0, s = 0, p = 0, q = 0, groups = 1;
  int64_t pad[2] = {0, 0}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  bool channels_last = false;  // x, w and y alike: NHWC, KRSC
  bool relu = false;
};

struct Move {
  int from = -1, to = -1;
  uint64_t bytes = 0;
};

struct Step {
  std::string name, op, kernel;
  std::variant<Launch, Product, Convolution, Move> work;
  std::vector<int> reads, writes;  // buffers
  double flops = 0, bytes = 0;
};

struct Constant {
  Tensor tensor;
  bool channels_last = false;  // its second axis is to be the innermost in memory
};
// The bytes of such a constant in that order.
std::vector<unsigned char> channels_last_bytes(const Tensor& tensor);

struct Signature {
  std::string name;
  uint32_t dtype = 0;
  Dims dims;
};

struct Plan {
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Signature> inputs, outputs, states;  // states: as they are before the run
  std::vector<Constant> constants;
  std::vector<std::string> notes;   // what is not computed as it might be, and why
  std::vector<std::string> faults;  // by fault number - 1: what a kernel's complaint means
  uint64_t arena_bytes = 0, arena_lower_bound = 0;
  std::string peak_step;  // where the most memory is live
};

// Places all arena buffers by the steps in which they live.
Status lay_out_arena(Plan& plan);

}  // namespace tenon::cuda
