// SPDX-License-Identifier: Apache-2.0
// On a GPU: tensors and streams that somebody else made, as DLPack hands them over, what is refused
// of them, and that nothing is left behind. The runtime that is linked here is not the plugin's.

#include <latch>
#include <thread>

#include <cuda_runtime_api.h>

#include "plugins/cuda/on_device.hpp"

namespace tenon {
namespace {

using tenon::test::json;
using tenon::test::Numbers;
using tenon::test::OnDevice;

constexpr int64_t kCount = 1 << 16;
constexpr size_t kBytes = kCount * sizeof(float);

const std::string kGraph = cat("graph {\n  input %x: f32[",
                               kCount,
                               "]\n  %e: f32[",
                               kCount,
                               "] = Exp(%x) @exp\n  %y: f32[",
                               kCount,
                               "] = Neg(%e) @neg\n  output y = %y\n}\n");

class DeviceInputs : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(cudaMalloc(&memory_, 2 * kBytes), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    graph_ = parse(kGraph);
    host_ = inputs_of(graph_.get(), 5)[0];
  }
  void TearDown() override {
    if (stream_) cudaStreamDestroy(stream_);
    cudaFree(memory_);
    OnDevice::TearDown();
  }
  json with_stream() const {
    return {{"backend", "cuda"}, {"input_stream", reinterpret_cast<uintptr_t>(stream_)}};
  }
  DLTensor there(size_t offset = 0, int32_t device = 0) {
    DLTensor out = host_.dl();
    out.data = memory_;
    out.byte_offset = offset;
    out.device = {kDLCUDA, device};
    return out;
  }
  std::string run_with(tn_plan* plan, const DLTensor& input, std::vector<float>* out = nullptr) {
    const DLTensor* pointer = &input;
    test::Collected results(ctx_);
    std::string why = test::text_of(Status(tenon_run(plan, &pointer, 1, &results.raw, nullptr)));
    if (why.empty() && out) *out = results.numbers<float>(0);
    return why;
  }
  void expect_result(const std::vector<float>& got) {
    ASSERT_EQ(got.size(), static_cast<size_t>(kCount));
    for (size_t i = 0; i < got.size(); i += 997)
      EXPECT_NEAR(got[i], -std::exp(host_.data<float>()[i]), 1e-5f) << i;
  }

  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  OwnedGraph graph_;
  Tensor host_;
};

TEST_F(DeviceInputs, AreReadWhereTheyLieInTheOrderOfTheirStream) {
  tn_plan* plan = compile(graph_.get(), with_stream());
  ASSERT_TRUE(plan);
  char* late = static_cast<char*>(memory_) + kBytes;
  ASSERT_EQ(cudaMemcpy(late, host_.data<void>(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  for (int i = 0; i < 4; ++i) {  // the third run is a captured graph
    ASSERT_EQ(cudaMemset(memory_, 0, kBytes), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    // The numbers come when the run is queued: one that does not wait reads zeros.
    std::latch open(1);
    auto wait = [](void* latch) { static_cast<std::latch*>(latch)->wait(); };
    ASSERT_EQ(cudaLaunchHostFunc(stream_, wait, &open), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(memory_, late, kBytes, cudaMemcpyDeviceToDevice, stream_),
              cudaSuccess);
    std::vector<float> got;
    std::string why;
    std::thread runner([&] { why = run_with(plan, there(), &got); });
    open.count_down();
    runner.join();
    ASSERT_EQ(why, "");
    expect_result(got);
  }
  EXPECT_EQ(describe(plan)["partitions"][0]["graphs"], 1);
}

TEST_F(DeviceInputs, MayChangePlacesWithThoseOfTheCpu) {
  tn_plan* plan = compile(graph_.get(), {{"backend", "cuda"}});
  ASSERT_EQ(cudaMemcpy(memory_, host_.data<void>(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  for (int i = 0; i < 6; ++i) {
    std::vector<float> got;
    ASSERT_EQ(run_with(plan, i % 2 ? there() : host_.dl(), &got), "");
    expect_result(got);
  }
}

TEST_F(DeviceInputs, OfAnotherDeviceOrMisalignedAreRefused) {
  tn_plan* plan = compile(graph_.get(), {{"backend", "cuda"}});

  std::string elsewhere = run_with(plan, there(0, 5));
  EXPECT_NE(elsewhere.find("got device type 2 id 5"), std::string::npos) << elsewhere;
  std::string odd = run_with(plan, there(4));
  EXPECT_NE(odd.find("aligned to 16 bytes"), std::string::npos) << odd;
  EXPECT_EQ(run_with(plan, host_.dl()), "");
}

TEST_F(DeviceInputs, OfAStreamThatIsBeingCapturedAreRefused) {
  tn_plan* plan = compile(graph_.get(), with_stream());
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);

  std::string why = run_with(plan, there());

  cudaGraph_t captured = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &captured), cudaSuccess);  // it was left alone
  if (captured) cudaGraphDestroy(captured);
  EXPECT_NE(why.find("being captured"), std::string::npos) << why;
  EXPECT_EQ(run_with(plan, there()), "");
}

TEST_F(DeviceInputs, AStreamThatOthersMadeServesAsOne) {
  void* block = nullptr;
  ASSERT_EQ(test::text_of(Status(table()->alloc(cuda_->self(), 0, kBytes, &block))), "");
  DLTensor from = host_.dl(), to = there();
  to.data = block;
  tn_exec exec{};
  exec.struct_size = sizeof exec;
  exec.stream = stream_;

  ASSERT_EQ(test::text_of(Status(table()->copy(cuda_->self(), &from, &to, &exec))), "");
  void* event = nullptr;
  ASSERT_EQ(test::text_of(Status(table()->event_record(cuda_->self(), stream_, &event))), "");
  EXPECT_EQ(test::text_of(Status(table()->event_sync(cuda_->self(), event, UINT64_MAX))), "");

  std::vector<float> back(kCount);
  EXPECT_EQ(cudaMemcpy(back.data(), block, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::memcmp(back.data(), host_.data<void>(), kBytes), 0);
  table()->event_free(cuda_->self(), event);
  table()->free(cuda_->self(), 0, block, nullptr);
}

TEST_F(DeviceInputs, ARunIsNotCapturedByItsCaller) {
  tn_options* none = nullptr;
  ASSERT_EQ(test::text_of(Status(services.options->create(ctx_, &none))), "");
  void* exe = nullptr;
  ASSERT_EQ(test::text_of(Status(table()->compile(cuda_->self(), graph_.get(), 0, none, &exe))),
            "");
  DLTensor input = there(), result = there(kBytes);
  const DLTensor* in = &input;
  tn_outputs out{&result, [](void* ctx, uint64_t, const DLTensor*, DLTensor* given) -> tn_status* {
                   *given = *static_cast<DLTensor*>(ctx);
                   return nullptr;
                 }};
  tn_exec exec{};
  exec.struct_size = sizeof exec;
  exec.stream = stream_;
  exec.flags = TN_EXEC_CAPTURE;
  auto run = [&] {
    return test::text_of(Status(table()->run(cuda_->self(), exe, nullptr, &in, 1, &out, &exec)));
  };

  std::string why = run();

  EXPECT_NE(why.find("cannot capture it"), std::string::npos) << why;
  exec.flags = 0;
  EXPECT_EQ(run(), "");
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  table()->exe_free(cuda_->self(), exe);
  services.options->release(none);
}

// In a process of its own, since nothing there can use the device afterwards.
TEST_F(DeviceInputs, AnIllegalAddressEndsTheUseOfTheDeviceAndIsNamedFromThenOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto meet = [&] {
    tn_plan* plan = compile(graph_.get(), {{"backend", "cuda"}});
    DLTensor nowhere = there();
    nowhere.data = reinterpret_cast<void*>(uintptr_t{1} << 20);
    std::string first = run_with(plan, nowhere), later = run_with(plan, host_.dl());
    bool is_named = first.find("illegal") != std::string::npos &&
                    later.find("cannot be used in this process") != std::string::npos &&
                    later.find("illegal") != std::string::npos;
    if (!is_named) std::fprintf(stderr, "first: %s\nlater: %s\n", first.c_str(), later.c_str());
    std::_Exit(is_named ? 0 : 1);
  };
  EXPECT_EXIT(meet(), testing::ExitedWithCode(0), "");
}

// The driver takes memory of its own in steps of MiB, and later than it is asked for: the first
// uses fill that. What leaks goes on growing. Memory of other processes counts as well, so this
// test runs while no other uses the device.
TEST_F(DeviceInputs, LeaveNothingBehind) {
  constexpr int kRounds = 20, kUses = 20;
  auto left = [] {
    size_t free_bytes = 0, all = 0;
    EXPECT_EQ(cudaMemGetInfo(&free_bytes, &all), cudaSuccess);
    return free_bytes;
  };
  auto use = [&] {
    tn_plan* plan = compile(graph_.get(), with_stream());
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(run_with(plan, there()), "");
    services.eval->release(plan);
    plans_.clear();
  };
  json curve = json::array();
  for (int round = 0; round <= kRounds; ++round) {
    for (int i = 0; i < kUses; ++i)
      use();
    curve.push_back(left());
  }

  // A leak of a page of 64 KiB for each use would be 25 MiB from the half on.
  EXPECT_LE(curve[kRounds / 2].get<size_t>(), curve[kRounds].get<size_t>() + (size_t{2} << 20))
      << "free bytes after each " << kUses << " uses: " << curve;
}

}  // namespace
}  // namespace tenon
