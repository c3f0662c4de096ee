// SPDX-License-Identifier: Apache-2.0
// Log lines, progress, traces, requests to stop, blocks of memory, and the C API over them.
#include <atomic>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "capi/capi.hpp"
#include "host/host_fixture.hpp"
#include "services/log.hpp"
#include "services/services.hpp"
#include "services/trace.hpp"

namespace tenon::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

tn_status* append(void* out, const void* data, uint64_t len) {
  static_cast<std::string*>(out)->append(static_cast<const char*>(data), len);
  return nullptr;
}

struct Events : ::testing::Test {
  tn_ctx* ctx() { return session.host.own; }
  template <class Table>
  const Table& service(std::string_view id) {
    return *static_cast<const Table*>(ctx()->host.get_interface(&ctx()->host, str(id)));
  }
  void listen() {
    tenon_on_log(
        &session,
        [](void* arg, uint32_t level, tn_str who, tn_str message) {
          auto* self = static_cast<Events*>(arg);
          EXPECT_EQ(self->inside++, 0) << "one call at a time";
          self->lines.push_back(cat(level, " ", view(who), " ", view(message)));
          --self->inside;
        },
        this);
    tenon_on_progress(
        &session,
        [](void* arg, uint64_t task, tn_str title, uint64_t done, uint64_t total) {
          auto* self = static_cast<Events*>(arg);
          self->lines.push_back(cat(task, " ", view(title), " ",
                                    done == UINT64_MAX ? "end" : std::to_string(done), "/", total));
        },
        this);
  }
  nlohmann::json stop_trace() {
    std::string text;
    tn_sink sink{&text, append};
    EXPECT_EQ(tenon_trace_stop(&session, &sink), nullptr);
    return nlohmann::json::parse(text);
  }

  tenon_session session{RegistryConfig{}};
  const tn_host_log& log = service<tn_host_log>("tenon.host.log/1");
  const tn_host_progress& progress = service<tn_host_progress>("tenon.host.progress/1");
  const tn_host_trace& trace = service<tn_host_trace>("tenon.host.trace/1");
  std::vector<std::string> lines;
  std::atomic<int> inside{0};
};

TEST_F(Events, LogLinesReachTheEmbedder) {
  log.write(ctx(), TN_LOG_INFO, str("nobody listens"));
  EXPECT_EQ(log.enabled(ctx(), TN_LOG_ERROR), 0);
  listen();
  log.write(ctx(), TN_LOG_WARNING, str("careful"));
  log.write(ctx(), 99, str("no such level"));

  EXPECT_THAT(lines, ElementsAre("2 embedder careful"));
  EXPECT_EQ(log.enabled(ctx(), TN_LOG_DEBUG), 1);
  tenon_on_log(&session, nullptr, nullptr);
  log.write(ctx(), TN_LOG_ERROR, str("gone"));
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(Events, ManyThreadsLogOneLineAtATime) {
  listen();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([this] {
        for (int i = 0; i < 200; ++i)
          log.write(ctx(), TN_LOG_INFO, str("line"));
      });
  }
  EXPECT_EQ(lines.size(), 1600u);
}

// Whoever logs may hold a lock that the function needs.
TEST_F(Events, NobodyWaitsForALogFunctionToReturn) {
  struct Seen {
    Events* events;
    std::vector<std::string> lines;
  } seen{this, {}};
  tenon_on_log(
      &session,
      [](void* arg, uint32_t, tn_str, tn_str message) {
        auto* self = static_cast<Seen*>(arg);
        self->lines.emplace_back(view(message));
        if (self->lines.size() > 1) return;
        tn_ctx* ctx = self->events->ctx();
        std::jthread other([&] { self->events->log.write(ctx, TN_LOG_INFO, str("meanwhile")); });
      },
      &seen);
  log.write(ctx(), TN_LOG_INFO, str("first"));
  EXPECT_THAT(seen.lines, ElementsAre("first", "meanwhile"));
}

TEST_F(Events, ALogFunctionMayLogWithoutEnd) {
  static int calls;
  calls = 0;
  tenon_on_log(
      &session,
      [](void* arg, uint32_t, tn_str, tn_str) {
        ++calls;
        auto* self = static_cast<Events*>(arg);
        self->log.write(self->ctx(), TN_LOG_INFO, str("again"));
      },
      this);
  log.write(ctx(), TN_LOG_INFO, str("once"));
  EXPECT_EQ(calls, 1);
}

TEST_F(Events, WhatALogFunctionThrowsGoesNoFurther) {
  static int calls;
  calls = 0;
  auto throws = [](void*, uint32_t, tn_str, tn_str) {
    ++calls;
    throw 3;  // no std::exception
  };
  tenon_on_log(&session, throws, nullptr);
  log.write(ctx(), TN_LOG_INFO, str("once"));
  log.write(ctx(), TN_LOG_INFO, str("twice"));
  EXPECT_EQ(calls, 2);
}

TEST_F(Events, ProgressBeginsMovesAndEnds) {
  listen();
  uint64_t task = progress.begin(ctx(), str("calibrate"), 10);
  progress.update(ctx(), task, 4);
  progress.update(ctx(), 777, 1);
  progress.end(ctx(), task);
  progress.end(ctx(), task);
  progress.update(ctx(), task, 5);

  EXPECT_THAT(lines, ElementsAre("1 calibrate 0/10", "1 calibrate 4/10", "1 calibrate end/10"));
}

TEST_F(Events, TraceNestsSpansPerThread) {
  trace.begin(ctx(), str("off"), str("not recorded"));
  tenon_trace_start(&session);
  trace.end(ctx());
  trace.begin(ctx(), str("pass"), str("outer"));
  trace.begin(ctx(), str("pass"), str("in\"ner\xff"));
  trace.end(ctx());
  trace.counter(ctx(), str("bytes"), 42);
  std::jthread([&] {
    trace.begin(ctx(), str("run"), str("elsewhere"));
    trace.end(ctx());
  }).join();
  nlohmann::json events = stop_trace()["traceEvents"];

  ASSERT_EQ(events.size(), 4u);
  std::map<std::string, nlohmann::json> by_name;
  for (auto& event : events)
    by_name[event["name"]] = event;
  const auto& outer = by_name["outer"];
  const auto& inner = by_name["in\"ner\xef\xbf\xbd"];
  EXPECT_EQ(outer["ph"], "X");
  EXPECT_LE(outer["ts"], inner["ts"]);
  EXPECT_LE(inner["ts"].get<double>() + inner["dur"].get<double>(),
            outer["ts"].get<double>() + outer["dur"].get<double>() + 1e-3);
  EXPECT_EQ(by_name["bytes"]["args"]["value"], 42);
  EXPECT_NE(by_name["elsewhere"]["tid"], outer["tid"]);
  EXPECT_EQ(trace.enabled(ctx()), 0);
}

TEST_F(Events, TraceBoundsItsMemory) {
  tenon_trace_start(&session);
  for (size_t i = 0; i < TraceHub::kMostEvents; ++i)
    trace.counter(ctx(), {}, 0);
  trace.begin(ctx(), {}, str("dropped"));
  trace.end(ctx());
  std::string text;
  tn_sink sink{&text, append};
  ASSERT_EQ(tenon_trace_stop(&session, &sink), nullptr);

  EXPECT_THAT(text.substr(text.size() - 60), HasSubstr("\"dropped\":1}"));
}

TEST_F(Events, TraceSurvivesStartsAndStopsOfOthers) {
  std::atomic<bool> done{false};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!done) {
        trace.begin(ctx(), str("c"), str("n"));
        trace.end(ctx());
      }
    });
  for (int i = 0; i < 20; ++i) {
    tenon_trace_start(&session);
    stop_trace();
  }
  done = true;
}

TEST_F(Events, ATraceNeedsASink) {
  tn_status* failure = tenon_trace_stop(&session, nullptr);

  EXPECT_EQ(tenon_status_code(failure), TN_INVALID_ARGUMENT);
  std::string message(view(tenon_status_message(failure)));
  EXPECT_EQ(message, "tenon_trace_stop: argument const tn_sink *: expected a pointer, got NULL");
  std::string text;
  tn_sink sink{&text, append};
  EXPECT_EQ(tenon_status_text(failure, &sink), nullptr);
  EXPECT_EQ(text, message);
  tenon_status_release(failure);
  tenon_status_release(nullptr);
}

TEST_F(Events, ARequestToStopIsSeen) {
  const auto& cancel = service<tn_host_cancel>("tenon.host.cancel/1");
  tn_cancel* request = nullptr;
  ASSERT_EQ(tenon_cancel_new(&session, &request), nullptr);

  EXPECT_EQ(cancel.requested(nullptr), 0);
  EXPECT_EQ(cancel.requested(request), 0);
  tenon_cancel_request(request);
  EXPECT_EQ(cancel.requested(request), 1);
  tenon_cancel_free(request);
  tenon_cancel_free(nullptr);
  tenon_cancel_request(nullptr);
}

TEST_F(Events, BlocksAreAlignedAndCounted) {
  const auto& memory = service<tn_host_memory>("tenon.host.memory/1");
  auto held = [&](Held kind) { return ctx()->held[static_cast<size_t>(kind)].load(); };
  void* block = memory.alloc(ctx(), 1000, 4096, str("scratch"));

  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 4096, 0u);
  EXPECT_EQ(held(Held::kBlock), 1);
  EXPECT_EQ(held(Held::kBytes), 1000);
  memory.free(ctx(), block, 1000, 4096);
  memory.free(ctx(), nullptr, 0, 8);
  EXPECT_EQ(memory.alloc(ctx(), 8, 24, {}), nullptr);
  EXPECT_EQ(memory.alloc(ctx(), 8, 4, {}), nullptr);
  EXPECT_EQ(memory.alloc(ctx(), UINT64_MAX, 8, {}), nullptr);
  EXPECT_EQ(held(Held::kBlock), 0);
  EXPECT_EQ(held(Held::kBytes), 0);
}

TEST_F(Events, ServicesAreFoundById) {
  for (std::string_view id : {"blob", "cancel", "log", "memory", "options", "parallel", "progress",
                              "random", "status", "tensor", "trace"}) {
    const auto* table = static_cast<const uint32_t*>(find_service(cat("tenon.host.", id, "/1")));
    ASSERT_NE(table, nullptr) << id;
    EXPECT_GE(table[0], 16u);
    EXPECT_EQ(table[1], 1u);
  }
  EXPECT_EQ(find_service("tenon.host.tensor/2"), nullptr);
  EXPECT_EQ(find_service(""), nullptr);
}

}  // namespace
}  // namespace tenon::host
