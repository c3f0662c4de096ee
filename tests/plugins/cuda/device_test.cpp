// SPDX-License-Identifier: Apache-2.0
// On a GPU, against the backend "reference"; skipped, test by test, where there is none.

#include <algorithm>
#include <thread>

#include "plugins/cuda/on_device.hpp"
#include "plugins/cuda/sample_graph.hpp"

namespace tenon {
namespace {

using tenon::test::json;
using tenon::test::Numbers;
using tenon::test::OnDevice;

// `text` with this type in the place of T.
std::string typed(std::string text, const std::string& type) {
  for (const std::string before : {": ", "dtype "}) {
    for (size_t at; (at = text.find(before + "T")) != std::string::npos;)
      text.replace(at + before.size(), 1, type);
  }
  return text;
}

// The second product is made small: a softmax passes on half the distance between its inputs, so
// inputs of a hundred would turn the rounding of bfloat16, a half there, into one of a quarter.
std::string mlp(const std::string& type) {
  std::string text = R"(graph {
  input %x: T[64, 128]
  input %w: T[128, 256]
  input %b: T[256]
  input %v: T[256, 32]
  constant %c: f32[] = [0.015625]
  %k: T[] = Cast(%c) {to = dtype T} @factor
  %u: T[256, 32] = Mul(%v, %k) @small
  %h: T[64, 256] = MatMul(%x, %w) @first
  %s: T[64, 256] = Add(%h, %b) @bias
  %r: T[64, 256] = Relu(%s) @relu
  %o: T[64, 32] = MatMul(%r, %u) @second
  %p: T[64, 32] = Softmax(%o) @softmax
  output p = %p
  output o = %o
}
)";
  return typed(text, type);
}

TEST_F(OnDevice, RunsAnMlpInEveryFloatType) {
  agree(mlp("f32"), 1e-5);
  agree(mlp("f32"), 5e-3, 3, {{"precision", "tf32"}});
  agree(mlp("f16"), 1e-2);
  agree(mlp("bf16"), 3e-2);
}

// Rows whose sample is run by the reference; what the backend leaves to it is run by it here too.
TEST_F(OnDevice, AgreesWithTheReferenceOnEverySample) {
  int n_claimed = 0;
  for (uint64_t row = 0; row < services.op->count(ctx_); ++row) {
    const tn_op* op = services.op->at(ctx_, row);
    for (uint64_t seed = 1; op->sample && seed <= 3; ++seed) {
      SCOPED_TRACE(cat(view(op->type), " seed ", seed));
      OwnedGraph graph = test::sample_graph(ctx_, op, seed);
      if (!graph.get()) continue;
      tn_plan* reference = compile(graph.get(), {{"backend", "reference"}});
      tn_plan* device = compile(graph.get(), {{"backend", "cuda"}});
      if (!reference || !device) continue;
      std::vector<Tensor> inputs = inputs_of(graph.get(), 3);
      std::string failed;
      std::vector<Numbers> wanted = run(reference, inputs, &failed);
      if (!failed.empty()) continue;
      std::vector<Numbers> got = run(device, inputs, &failed);
      ASSERT_EQ(failed, "");
      if (!describe(device)["fallback_nodes"].empty()) continue;
      ++n_claimed;
      compare(got, wanted, 2e-5);
    }
  }
  EXPECT_GT(n_claimed, 200);
}

TEST_F(OnDevice, CapturesARunThatComesAgain) {
  agree(mlp("f32"), 1e-5, 4);
  EXPECT_EQ(last_["partitions"][0]["graphs"], 1) << last_;
  agree(mlp("f32"), 1e-5, 4, {{"graphs", false}});
  EXPECT_EQ(last_["partitions"][0]["graphs"], 0) << last_;
}

TEST_F(OnDevice, LeavesConvolutionsToAnotherWithoutCudnn) {
  const char* graph = R"(graph {
  input %x: f32[1, 2, 4, 4]
  input %w: f32[2, 2, 1, 1]
  %c: f32[1, 2, 4, 4] = Conv(%x, %w) @conv
  %r: f32[1, 2, 4, 4] = Relu(%c) @relu
  output r = %r
}
)";
  agree_in_parts(graph, 1e-5, 1, {{"cudnn", ""}});
  ASSERT_EQ(last_["fallback_nodes"].size(), 1u) << last_;
  EXPECT_EQ(last_["fallback_nodes"][0]["node"], "conv");
  std::string why = last_["fallback_nodes"][0]["why"];
  EXPECT_NE(why.find("convolution needs cuDNN 9"), std::string::npos) << why;
}

TEST_F(OnDevice, LeavesProductsToAnotherWithoutCublaslt) {
  const char* graph = R"(graph {
  input %x: f32[2, 3]
  input %w: f32[3, 4]
  %m: f32[2, 4] = MatMul(%x, %w) @matmul
  %r: f32[2, 4] = Relu(%m) @relu
  output r = %r
}
)";
  agree_in_parts(graph, 1e-5, 1, {{"cublaslt", ""}});
  ASSERT_EQ(last_["fallback_nodes"].size(), 1u) << last_;
  EXPECT_EQ(last_["fallback_nodes"][0]["node"], "matmul");
  std::string why = last_["fallback_nodes"][0]["why"];
  EXPECT_NE(why.find("a product needs cuBLASLt"), std::string::npos) << why;
}

TEST_F(OnDevice, RunsAttentionAndNormalization) {
  agree(R"(graph {
  input %q: f32[2, 4, 16, 8]
  input %k: f32[2, 4, 16, 8]
  input %mask: f32[2, 1, 1, 16]
  input %scale: f32[8]
  %kt: f32[2, 4, 8, 16] = Transpose(%k) {perm = ints [0, 1, 3, 2]} @transpose
  %s: f32[2, 4, 16, 16] = MatMul(%q, %kt) @scores
  %m: f32[2, 4, 16, 16] = Add(%s, %mask) @masked
  %p: f32[2, 4, 16, 16] = Softmax(%m) @softmax
  %c: f32[2, 4, 16, 8] = MatMul(%p, %k) @context
  %n: f32[2, 4, 16, 8] = LayerNormalization(%c, %scale) @norm
  %y: f32[2, 4, 16, 8] = Gelu(%n) @gelu
  output y = %y
}
)",
        1e-5);
}

// y = gelu(x w + b), x and w quantized.
std::string low_precision(const std::string& type) {
  std::string text = R"(graph {
  input %x: f32[64, 128]
  input %w: f32[128, 64]
  input %b: f32[64]
  constant %s: f32[] = [0.015625]
  %q: T[64, 128] = QuantizeLinear(%x, %s) {output_dtype = dtype T} @left
  %p: T[128, 64] = QuantizeLinear(%w, %s) {output_dtype = dtype T} @right
  %a: f32[64, 128] = DequantizeLinear(%q, %s) @wide
  %v: f32[128, 64] = DequantizeLinear(%p, %s) @weights
  %m: f32[64, 64] = MatMul(%a, %v) @product
  %h: f32[64, 64] = Add(%m, %b) @bias
  %y: f32[64, 64] = Gelu(%h) @gelu
  output y = %y
}
)";
  return typed(text, type);
}

TEST_F(OnDevice, MultipliesEightBitNumbers) {
  agree(low_precision("i8"), 1e-5);
  EXPECT_EQ(last_["partitions"][0]["notes"], json::array()) << last_;
  EXPECT_TRUE(last_["partitions"][0]["kernels"].contains("cublaslt")) << last_;
  // Of 8-bit floats, Hopper's tensor cores keep 13 bits behind the point of the largest of each 32
  // products and the sum so far, and cut the rest off: of 132 terms here, each wrong by 2^-13 at
  // most and 2^-13 / sqrt(3) on average, the sum is off by 2^-13 * sqrt(132 / 3) = 8e-4 of the
  // largest partial sum. Two and a half times that holds for all of 4096 outputs, most of whose
  // partial sums are smaller. As floats the products are exact and the sums of 24 bits.
  for (auto [type, tolerance] : {std::pair("f8e4m3fn", 2e-3), {"f8e5m2", 1e-4}}) {
    SCOPED_TRACE(type);
    agree(low_precision(type), tolerance);
    bool is_said = !last_["partitions"][0]["notes"].empty();
    // Two operands of e5m2 are multiplied as floats, and so are all where the device is too old.
    EXPECT_EQ(is_said, std::string(type) == "f8e5m2" || architecture() < 89) << last_;
  }
}

TEST_F(OnDevice, AddsResidualsInProducts) {
  agree(R"(graph {
  input %x: f32[64, 32]
  input %w: f32[32, 32]
  input %b: f32[32]
  %h: f32[64, 32] = MatMul(%x, %w) @matmul
  %s: f32[64, 32] = Add(%h, %b) @bias
  %r: f32[64, 32] = Add(%x, %s) @residual
  %y: f32[64, 32] = Relu(%r) @relu
  output y = %y
}
)",
        1e-5);
}

TEST_F(OnDevice, KeepsStateOverRuns) {
  agree(R"(graph {
  input %a: f32[3]
  input %b: f32[3]
  input %x: f32[3]
  %n: f32[3] = Add(%a, %x) @add
  %y: f32[3] = Sub(%n, %b) @sub
  output new_a = %b
  output new_b = %n
  output y = %y
  state %a -> %b
  state %b -> %n
}
)",
        1e-6, 5);
}

TEST_F(OnDevice, LeavesTheRestToTheReference) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[6]
  input %axis: i64[]
  %s: f32[6] = Exp(%x) @exp
  %c: f32[6] = CumSum(%s, %axis) @sum
  %y: f32[6] = Neg(%c) @neg
  output y = %y
}
)");
  tn_plan* device = compile(graph.get(), {{"backend", "cuda"}});
  tn_plan* reference = compile(graph.get(), {{"backend", "reference"}});
  std::vector<Tensor> inputs = inputs_of(graph.get(), 1);
  *inputs[1].data<int64_t>() = 0;
  std::string failed;

  std::vector<Numbers> got = run(device, inputs, &failed);
  ASSERT_EQ(failed, "");
  compare(got, run(reference, inputs, &failed), 1e-5);

  json plan = describe(device);
  ASSERT_EQ(plan["fallback_nodes"].size(), 1u);
  EXPECT_EQ(plan["fallback_nodes"][0]["node"], "sum");
}

TEST_F(OnDevice, ReportsABadIndexAndGoesOn) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[3, 2]
  input %i: i64[2]
  %y: f32[2, 2] = Gather(%x, %i) @pick
  output y = %y
}
)");
  tn_plan* plan = compile(graph.get(), {{"backend", "cuda"}});
  std::vector<Tensor> good = inputs_of(graph.get(), 1), bad = inputs_of(graph.get(), 1);
  bad[1].data<int64_t>()[0] = 7;
  std::string failed;

  run(plan, bad, &failed);
  EXPECT_NE(failed.find("node pick"), std::string::npos) << failed;
  run(plan, good, &failed);
  EXPECT_EQ(failed, "");
}

TEST_F(OnDevice, RunsOnManyThreadsAtOnce) {
  OwnedGraph graph = parse(mlp("f32"));
  tn_plan* plan = compile(graph.get(), {{"backend", "cuda"}});
  tn_plan* reference = compile(graph.get(), {{"backend", "reference"}});
  std::vector<Tensor> inputs = inputs_of(graph.get(), 5);
  std::string failed;
  std::vector<Numbers> wanted = run(reference, inputs, &failed);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        std::string mine;
        std::vector<Numbers> got = run(plan, inputs, &mine);
        EXPECT_EQ(mine, "");
        compare(got, wanted, 1e-5);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

TEST_F(OnDevice, SaysHowMuchMemoryIsMissing) {
  void* block = nullptr;
  std::string why =
      test::text_of(Status(table()->alloc(cuda_->self(), 0, uint64_t{1} << 50, &block)));

  EXPECT_EQ(block, nullptr);
  EXPECT_NE(why.find("out of device memory"), std::string::npos) << why;
  EXPECT_EQ(test::text_of(Status(table()->alloc(cuda_->self(), 0, 1 << 20, &block))), "");
  table()->free(cuda_->self(), 0, block, nullptr);
}

// Each goes through pinned memory that the one before may still be read from.
TEST_F(OnDevice, CopiesThatFollowEachOtherKeepApart) {
  constexpr int kCopies = 64;
  constexpr int64_t kFloats = 1 << 18;
  void* stream = nullptr;
  void* block = nullptr;
  ASSERT_EQ(test::text_of(Status(table()->stream_new(cuda_->self(), 0, &stream))), "");
  ASSERT_EQ(test::text_of(Status(table()->alloc(cuda_->self(), 0, kCopies * kFloats * 4, &block))),
            "");
  int64_t dims[] = {kFloats};
  std::vector<float> from(kFloats), back(kFloats);
  DLTensor here{from.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, dims, nullptr, 0};
  DLTensor there{block, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, dims, nullptr, 0};
  tn_exec exec{};
  exec.struct_size = sizeof exec;
  exec.stream = stream;

  for (int i = 0; i < kCopies; ++i) {
    std::fill(from.begin(), from.end(), static_cast<float>(i));
    there.byte_offset = static_cast<uint64_t>(i) * kFloats * 4;
    EXPECT_EQ(test::text_of(Status(table()->copy(cuda_->self(), &here, &there, &exec))), "");
  }

  exec.stream = nullptr;  // each done when it returns
  here.data = back.data();
  void* done = nullptr;
  ASSERT_EQ(test::text_of(Status(table()->event_record(cuda_->self(), stream, &done))), "");
  ASSERT_EQ(test::text_of(Status(table()->event_sync(cuda_->self(), done, UINT64_MAX))), "");
  for (int i = 0; i < kCopies; ++i) {
    there.byte_offset = static_cast<uint64_t>(i) * kFloats * 4;
    EXPECT_EQ(test::text_of(Status(table()->copy(cuda_->self(), &there, &here, &exec))), "");
    EXPECT_EQ(std::count(back.begin(), back.end(), static_cast<float>(i)), kFloats) << i;
  }
  table()->event_free(cuda_->self(), done);
  table()->stream_free(cuda_->self(), stream);
  table()->free(cuda_->self(), 0, block, nullptr);
}

TEST_F(OnDevice, NamesTheNodeThatNeedsMoreMemoryThanThereIsAndGoesOn) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[1]
  constant %shape: i64[2] = [1048576, 1048576]
  constant %axis: i64[1] = [1]
  %w: f32[1048576, 1048576] = Expand(%x, %shape) @widen
  %y: f32[1048576, 1] = ReduceMax(%w, %axis) @most
  output y = %y
}
)");
  tn_plan* plan = compile(graph.get(), {{"backend", "cuda"}});
  ASSERT_TRUE(plan);
  std::string failed;

  run(plan, inputs_of(graph.get(), 1), &failed);

  EXPECT_NE(failed.find("out of device memory"), std::string::npos) << failed;
  EXPECT_NE(failed.find("planned peak"), std::string::npos) << failed;
  EXPECT_NE(failed.find("node widen"), std::string::npos) << failed;
  agree(mlp("f32"), 1e-5);
}

TEST_F(OnDevice, NamesADeviceThatDoesNotExist) {
  void* stream = nullptr;
  std::string why = test::text_of(Status(table()->stream_new(cuda_->self(), 99, &stream)));

  EXPECT_NE(why.find("device 99"), std::string::npos) << why;
}

}  // namespace
}  // namespace tenon
