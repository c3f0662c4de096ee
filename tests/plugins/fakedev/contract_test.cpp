// SPDX-License-Identifier: Apache-2.0
// What role/backend.h and exec.h ask of a device, without a plan in between: streams, events, and
// the flag for graph capture.
#include <condition_variable>
#include <mutex>

#include "device_fixture.hpp"

namespace tenon::test {
namespace {

// An f32 tensor on a device.
class OnDevice {
 public:
  OnDevice(const tn_backend* table, void* self, const Array& like) : table_(table), self_(self) {
    dl = like.dl;
    dl.device = {kDLExtDev, 0};
    EXPECT_EQ(take_text(table->alloc(self, 0, like.data.size() * 4, &dl.data)), "");
  }
  ~OnDevice() { table_->free(self_, 0, dl.data, nullptr); }
  OnDevice(const OnDevice&) = delete;
  DLTensor dl{};

 private:
  const tn_backend* table_;
  void* self_;
};

constexpr const char* kDouble = R"(graph {
  input %x: f32[4]
  %y: f32[4] = Add(%x, %x) @double
  output y = %y
}
)";
constexpr const char* kPositive = R"(graph {
  input %x: f32[4]
  input %zero: f32[1]
  %flags: bool[4] = Greater(%x, %zero) @greater
  %y: f32[?] = Compress(%x, %flags) @compress
  output y = %y
}
)";

// Holds a stream: a run on it asks for its late output, and is not answered until `open`.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void ask() {
    std::lock_guard lock(mutex_);
    asked_ = true;
    changed_.notify_all();
  }
  void wait_until_asked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return asked_; });
  }
  static tn_status* get(void* self, uint64_t, const DLTensor*, DLTensor* out) {
    auto& gate = *static_cast<Gate*>(self);
    gate.ask();
    std::unique_lock lock(gate.mutex_);
    gate.changed_.wait(lock, [&] { return gate.open_; });
    *out = gate.out;
    return nullptr;
  }
  DLTensor out{};

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false, open_ = false;
};

class Contract : public FakeDevice {
 protected:
  void SetUp() override {
    FakeDevice::SetUp();
    device_ = backend("fakedev");
    t_ = device_.table;
    stream_ = new_stream();
    other_ = new_stream();
  }
  void TearDown() override {
    for (void* event : events_)
      t_->event_free(device_.self, event);
    t_->stream_free(device_.self, stream_);
    t_->stream_free(device_.self, other_);
    for (void* exe : exes_)
      t_->exe_free(device_.self, exe);
    component_->release(device_.ref);
    FakeDevice::TearDown();
  }
  void* new_stream() {
    void* stream = nullptr;
    EXPECT_EQ(take_text(t_->stream_new(device_.self, 0, &stream)), "");
    return stream;
  }
  void* part(const char* text, const std::string& options = "{}") {
    tn_graph* graph = nullptr;
    EXPECT_EQ(take_text(graph_->parse(host_->ctx, str(text), &graph)), "");
    const auto* service = table<tn_host_options>("tenon.host.options/1");
    tn_options* given = nullptr;
    EXPECT_EQ(take_text(service->create(host_->ctx, &given)), "");
    EXPECT_EQ(take_text(service->parse(given, str(options))), "");
    void* exe = nullptr;
    EXPECT_EQ(take_text(t_->compile(device_.self, graph, 0, given, &exe)), "");
    service->release(given);
    graph_->release(graph);
    exes_.push_back(exe);
    return exe;
  }
  tn_exec on(void* stream, uint32_t flags = 0) {
    tn_exec exec{};
    exec.struct_size = sizeof exec;
    exec.flags = flags;
    exec.stream = stream;
    return exec;
  }
  std::string copy(const DLTensor& from, DLTensor* to, const tn_exec& exec) {
    return take_text(t_->copy(device_.self, &from, to, &exec));
  }
  std::string run(void* exe, std::vector<const DLTensor*> in, DLTensor* out, const tn_exec& exec) {
    tn_outputs outputs{out, [](void* given, uint64_t, const DLTensor*, DLTensor* to) -> tn_status* {
                         *to = *static_cast<DLTensor*>(given);
                         return nullptr;
                       }};
    return take_text(t_->run(device_.self, exe, nullptr, in.data(), in.size(), &outputs, &exec));
  }
  void* record(void* stream) {
    void* event = nullptr;
    EXPECT_EQ(take_text(t_->event_record(device_.self, stream, &event)), "");
    events_.push_back(event);
    return event;
  }
  std::string sync(void* event, uint64_t timeout_ns = UINT64_MAX) {
    return take_text(t_->event_sync(device_.self, event, timeout_ns));
  }

  // A run on `stream` that stays there until the gate opens.
  class Held {
   public:
    Held(Contract& test, void* stream)
        : x_({4}, 1, 1),
          in_(test.t_, test.device_.self, x_),
          low_(test.t_, test.device_.self, zero_),
          kept_(test.t_, test.device_.self, x_) {
      EXPECT_EQ(test.copy(x_.dl, &in_.dl, test.on(nullptr)), "");
      EXPECT_EQ(test.copy(zero_.dl, &low_.dl, test.on(nullptr)), "");
      gate_.out = kept_.dl;
      runs_ = std::thread([this, &test, stream, exe = test.part(kPositive)] {
        const DLTensor* given[] = {&in_.dl, &low_.dl};
        tn_outputs outputs{&gate_, Gate::get};
        tn_exec exec = test.on(stream);
        EXPECT_EQ(
            take_text(test.t_->run(test.device_.self, exe, nullptr, given, 2, &outputs, &exec)),
            "");
        gate_.ask();  // also when the run was refused
      });
      gate_.wait_until_asked();
    }
    void release() { gate_.open(); }
    ~Held() {
      gate_.open();
      runs_.join();
    }

   private:
    Array x_, zero_{std::vector<int64_t>{1}};
    OnDevice in_, low_, kept_;
    Gate gate_;
    std::thread runs_;
  };

  Backend device_;
  const tn_backend* t_ = nullptr;
  void* stream_ = nullptr;
  void* other_ = nullptr;
  std::vector<void*> exes_, events_;
};

TEST_F(Contract, WorkOnOneStreamIsDoneInOrder) {
  Array x({4}, 1, 1), y({4});
  OnDevice in(t_, device_.self, x), out(t_, device_.self, x);
  void* exe = part(kDouble);

  EXPECT_EQ(copy(x.dl, &in.dl, on(stream_)), "");
  EXPECT_EQ(run(exe, {&in.dl}, &out.dl, on(stream_)), "");
  EXPECT_EQ(run(exe, {&out.dl}, &in.dl, on(stream_)), "");
  EXPECT_EQ(copy(in.dl, &y.dl, on(stream_)), "");
  EXPECT_EQ(sync(record(stream_)), "");

  EXPECT_EQ(y.data, (std::vector<float>{4, 8, 12, 16}));
}

TEST_F(Contract, WithoutAStreamAllIsDoneBeforeTheCallReturns) {
  Array x({4}, 1, 1), y({4});
  OnDevice in(t_, device_.self, x), out(t_, device_.self, x);

  EXPECT_EQ(copy(x.dl, &in.dl, on(nullptr)), "");
  EXPECT_EQ(run(part(kDouble), {&in.dl}, &out.dl, on(nullptr)), "");
  EXPECT_EQ(copy(out.dl, &y.dl, on(nullptr)), "");

  EXPECT_EQ(y.data, (std::vector<float>{2, 4, 6, 8}));
}

TEST_F(Contract, ACapturedRunWaitsForNobodyAndEventsOrderStreams) {
  Array x({4}, 1, 1), y({4});
  OnDevice in(t_, device_.self, x), out(t_, device_.self, x);
  EXPECT_EQ(copy(x.dl, &in.dl, on(nullptr)), "");
  void* doubled = part(kDouble);
  Held held(*this, other_);
  void* until = record(other_);
  void* waits[] = {until};
  void* done = nullptr;
  tn_exec exec = on(stream_, TN_EXEC_CAPTURE);
  exec.wait_events = waits;
  exec.wait_count = 1;
  exec.out_done = &done;

  // The other stream cannot go on: whoever waited here would never return.
  EXPECT_EQ(run(doubled, {&in.dl}, &out.dl, exec), "");
  ASSERT_NE(done, nullptr);
  events_.push_back(done);
  EXPECT_NE(sync(done, 0).find("not fired"), std::string::npos);
  EXPECT_NE(sync(until, 1000).find("not fired"), std::string::npos);
  held.release();
  EXPECT_EQ(sync(done), "");

  EXPECT_EQ(copy(out.dl, &y.dl, on(nullptr)), "");
  EXPECT_EQ(y.data, (std::vector<float>{2, 4, 6, 8}));
}

TEST_F(Contract, ARunWhoseShapesAreKnownLateCannotBeCaptured) {
  Array x({4}, -2, 1), zero({1});
  OnDevice in(t_, device_.self, x), low(t_, device_.self, zero), out(t_, device_.self, x);

  std::string late = run(part(kPositive), {&in.dl, &low.dl}, &out.dl, on(stream_, TN_EXEC_CAPTURE));
  std::string nowhere = run(part(kDouble), {&in.dl}, &out.dl, on(nullptr, TN_EXEC_CAPTURE));

  EXPECT_NE(late.find("depend on data"), std::string::npos) << late;
  EXPECT_NE(nowhere.find("without a stream"), std::string::npos) << nowhere;
}

TEST_F(Contract, AFailureArrivesOnTheEventAndDropsWhatFollows) {
  Array x({4}, 1, 1), y({4}, -1);
  OnDevice in(t_, device_.self, x), out(t_, device_.self, x);
  EXPECT_EQ(copy(x.dl, &in.dl, on(nullptr)), "");
  void* exe = part(kDouble, R"({"fail_at": 0})");

  EXPECT_EQ(run(exe, {&in.dl}, &out.dl, on(stream_)), "");  // only queued
  EXPECT_EQ(copy(in.dl, &y.dl, on(stream_)), "");
  void* event = record(stream_);
  EXPECT_NE(sync(event).find("the fake device failed"), std::string::npos);
  EXPECT_NE(sync(event).find("the fake device failed"), std::string::npos);
  EXPECT_EQ(y.data, std::vector<float>(4, -1));

  EXPECT_EQ(copy(in.dl, &y.dl, on(stream_)), "");  // report, so it goes on
  EXPECT_EQ(sync(record(stream_)), "");
  EXPECT_EQ(y.data, x.data);
}

TEST_F(Contract, AFailureReachesTheStreamThatWaitsForIt) {
  Array x({4}, 1, 1);
  OnDevice in(t_, device_.self, x), out(t_, device_.self, x);
  EXPECT_EQ(copy(x.dl, &in.dl, on(nullptr)), "");
  void* exe = part(kDouble, R"({"fail_at": 0})");

  EXPECT_EQ(run(exe, {&in.dl}, &out.dl, on(stream_)), "");
  EXPECT_EQ(take_text(t_->event_wait(device_.self, other_, record(stream_))), "");

  EXPECT_NE(sync(record(other_)).find("the fake device failed"), std::string::npos);
}

TEST_F(Contract, MemoryThatIsNotTheDevicesIsRefused) {
  Array x({4}, 1, 1);
  OnDevice out(t_, device_.self, x);
  void* exe = part(kDouble);
  Backend second = backend("fakedev.second");
  {
    OnDevice elsewhere(second.table, second.self, x);

    std::string theirs = run(exe, {&elsewhere.dl}, &out.dl, on(stream_));
    std::string hosts = run(exe, {&x.dl}, &out.dl, on(stream_));

    EXPECT_NE(theirs.find("another's"), std::string::npos) << theirs;
    EXPECT_NE(hosts.find("memory of this device"), std::string::npos) << hosts;
  }
  component_->release(second.ref);
}

TEST_F(Contract, MemoryFreedWhileWorkIsQueuedIsFoundOut) {
  Array x({4}, 1, 1);
  OnDevice out(t_, device_.self, x);
  auto in = std::make_unique<OnDevice>(t_, device_.self, x);
  void* exe = part(kDouble);
  Held held(*this, other_);
  EXPECT_EQ(take_text(t_->event_wait(device_.self, stream_, record(other_))), "");

  EXPECT_EQ(run(exe, {&in->dl}, &out.dl, on(stream_)), "");
  in.reset();
  held.release();

  std::string report = sync(record(stream_));
  EXPECT_NE(report.find("a block of this device"), std::string::npos) << report;
}

TEST_F(Contract, StateIsKeptInALayoutOfItsOwn) {
  Array given({2, 2}, 1, 1), back({2, 2});
  void* state = nullptr;
  ASSERT_EQ(take_text(t_->state_new(device_.self, 0, &state)), "");

  EXPECT_EQ(take_text(t_->state_set(device_.self, state, str("m"), &given.dl)), "");
  EXPECT_EQ(take_text(t_->state_get(device_.self, state, str("m"), &back.dl)), "");
  std::string unknown = take_text(t_->state_get(device_.self, state, str("n"), &back.dl));

  EXPECT_EQ(back.data, given.data);
  EXPECT_NE(unknown.find("no state n"), std::string::npos) << unknown;
  t_->state_free(device_.self, state);
}

}  // namespace
}  // namespace tenon::test
