// SPDX-License-Identifier: Apache-2.0
// Compilers that are slow, and those that fail: what other runs and other backends see of them; and
// what a trace shows of all that.
#include <array>
#include <atomic>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "device_fixture.hpp"

namespace tenon::test {
namespace {

using nlohmann::json;

constexpr const char* kTwo = R"(graph {
  input %x: f32[n]
  %h: f32[n] = Add(%x, %x) @double in "PLACE"
  %y: f32[n] = Neg(%h) @neg
  output y = %y
}
)";

std::string placed(const std::string& scope) {
  std::string text = kTwo;
  return text.replace(text.find("PLACE"), 5, scope);
}

// A FIFO that compiling waits at until it is opened.
class Gate {
 public:
  Gate() : path_(testing::TempDir() + "compile_gate_" + std::to_string(getpid())) {}
  ~Gate() { unlink(path_.c_str()); }
  Gate(const Gate&) = delete;
  const std::string& path() const { return path_; }
  void shut() const { ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0); }
  void open() const { std::ofstream(path_) << "go"; }

 private:
  std::string path_;
};

class Compiling : public FakeDevice {
 protected:
  json described(tn_plan* plan) { return json::parse(describe(plan)); }
};

TEST_F(Compiling, RunsOfOtherShapesGoOnMeanwhile) {
  Gate gate;
  tn_plan* plan =
      compile(placed(""), json{{"backend", "fakedev"}, {"compile_gate", gate.path()}}.dump());
  Array small({2}, 1), large({5}, 1);
  Results first, again, late, later;
  ASSERT_EQ(run(plan, {&small}, &first), "");
  gate.shut();
  std::string late_failure = "not run", later_failure = "not run";

  std::thread one([&] { late_failure = run(plan, {&large}, &late); });
  std::thread other([&] { later_failure = run(plan, {&large}, &later); });
  // Would wait for ever behind the compiler, for nobody has opened the gate.
  EXPECT_EQ(run(plan, {&small}, &again), "");
  EXPECT_NE(described(plan)["partitions"].size(), 0u);
  gate.open();
  one.join();
  other.join();

  EXPECT_EQ(again.arrays[0]->data, std::vector<float>(2, -2));
  EXPECT_EQ(late_failure + later_failure, "");
  EXPECT_EQ(late.arrays[0]->data, std::vector<float>(5, -2));
  EXPECT_EQ(later.arrays[0]->data,
            std::vector<float>(5, -2));  // compiled once: the gate opened once
  eval_->release(plan);
}

TEST_F(Compiling, AFailureGivesThePartToTheNextBackend) {
  tn_plan* plan = compile(placed("uncompilable"), R"({"backend": ["fakedev", "fakedev.second"]})");
  Array x({3}, 1, 1);
  Results results;

  EXPECT_EQ(run(plan, {&x}, &results), "");

  EXPECT_EQ(results.arrays[0]->data, (std::vector<float>{-2, -4, -6}));
  json report = described(plan);
  // Neither device compiles a part with that node; the other node shared the part.
  ASSERT_EQ(report["fallback_nodes"].size(), 2u) << report;
  for (const json& row : report["fallback_nodes"]) {
    std::string why = row["why"];
    EXPECT_NE(why.find("fakedev: compile failed"), std::string::npos) << why;
    EXPECT_NE(why.find("no code for node double: its scope is uncompilable"), std::string::npos);
    EXPECT_NE(why.find("fakedev.second: compile failed"), std::string::npos) << why;
  }
  ASSERT_EQ(report["partitions"].size(), 1u) << report;
  EXPECT_EQ(report["partitions"][0]["backend"], "reference");
  eval_->release(plan);
}

// Runs that find a form wrong at the same time, of one shape and of others, make it again beside
// each other; the plan has learned it for all shapes.
TEST_F(Compiling, RunsThatFindAFormWrongTogetherMakeItAgain) {
  for (int round = 0; round < 20; ++round) {
    tn_plan* plan = compile(placed("declined late"), R"({"backend": "fakedev"})");
    std::array<std::string, 6> failures;
    std::array<Results, 6> results;
    std::vector<std::thread> runs;
    for (size_t i = 0; i < failures.size(); ++i)
      runs.emplace_back([&, i] {
        Array x({static_cast<int64_t>(2 + i % 2)}, 1);
        failures[i] = run(plan, {&x}, &results[i]);
      });
    for (std::thread& one : runs)
      one.join();

    for (size_t i = 0; i < failures.size(); ++i) {
      EXPECT_EQ(failures[i], "");
      ASSERT_EQ(results[i].arrays.size(), 1u);
      EXPECT_EQ(results[i].arrays[0]->data, std::vector<float>(2 + i % 2, -2));
    }
    json report = described(plan);
    ASSERT_EQ(report["fallback_nodes"].size(), 2u) << report;  // of the part that declined
    EXPECT_NE(report["fallback_nodes"][0]["why"].get<std::string>().find("declined when it runs"),
              std::string::npos);
    eval_->release(plan);
  }
}

TEST_F(Compiling, WhatCompiledBesideAFailureIsKept) {
  // The node on the CPU cuts the device's part in two, of which one does not compile.
  std::string text = R"(graph {
  input %x: f32[n]
  %a: f32[n] = Add(%x, %x) @first
  %b: f32[n] = Neg(%a) @middle in "cpu"
  %y: f32[n] = Add(%b, %b) @last in "uncompilable"
  output y = %y
}
)";
  tn_plan* plan = compile(text, R"({"backend": "fakedev"})");
  Array x({2}, 1);
  Results results;

  EXPECT_EQ(run(plan, {&x}, &results), "");

  EXPECT_EQ(results.arrays[0]->data, std::vector<float>(2, -4));
  json report = described(plan);
  ASSERT_EQ(report["partitions"].size(), 2u) << report;
  EXPECT_EQ(report["partitions"][0]["backend"], "fakedev");
  EXPECT_EQ(report["partitions"][0]["nodes"], json({"first"}));
  EXPECT_EQ(report["partitions"][1]["nodes"], json({"middle", "last"}));
  eval_->release(plan);
}

TEST_F(Compiling, ATraceShowsCompilingPartsCopiesAndWhatBackendsDo) {
  tn_plan* plan = compile(placed("cpu"), R"({"backend": "fakedev"})");
  Array x({2}, 1);
  Results results;
  std::string text;
  tn_sink sink = into(&text);

  tenon_trace_start(session_);
  EXPECT_EQ(run(plan, {&x}, &results), "");
  ASSERT_EQ(take_text(tenon_trace_stop(session_, &sink)), "");

  std::multimap<std::string, std::string> spans;  // names by category
  const json trace = json::parse(text);
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X") spans.emplace(event["cat"], event["name"]);
  auto names = [&](const char* category) {
    std::vector<std::string> out;
    auto [begin, end] = spans.equal_range(category);
    for (auto at = begin; at != end; ++at)
      out.push_back(at->second);
    return out;
  };
  using testing::UnorderedElementsAre;
  // The plan, and the one that the device's part is inside.
  EXPECT_THAT(names("compile"), UnorderedElementsAre("f32[2]", "partition", "reference", "fakedev",
                                                     "f32[2]", "partition", "reference"));
  EXPECT_THAT(names("run"), UnorderedElementsAre("y", "y"));
  EXPECT_THAT(names("partition"),
              UnorderedElementsAre("reference: double", "fakedev: neg", "reference: neg"));
  EXPECT_THAT(names("copy"), UnorderedElementsAre("h to fakedev", "y from fakedev"));
  EXPECT_THAT(names("device"), UnorderedElementsAre("copy", "neg", "copy"));
  // Copies have a stream of their own, and what reads one waits for its event.
  std::map<std::string, std::set<int>> threads;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "device")
      threads[event["name"]].insert(event["tid"].get<int>());
  EXPECT_EQ(threads["copy"].size(), 1u);
  EXPECT_EQ(threads["neg"].size(), 1u);
  EXPECT_NE(threads["copy"], threads["neg"]);
  EXPECT_THAT(names("node"), UnorderedElementsAre("double", "neg"));
  eval_->release(plan);
}

TEST_F(Compiling, DeterministicIsAnOptionOfEveryPlan) {
  tn_plan* plan = compile(placed(""), R"({"backend": "fakedev", "deterministic": true})");
  tn_graph* graph = nullptr;
  ASSERT_EQ(take_text(graph_->parse(host_->ctx, str(placed("")), &graph)), "");
  tn_plan* none = nullptr;

  std::string failure =
      take_text(tenon_compile(session_, graph, str(R"({"deterministic": 1})"), &none));

  EXPECT_NE(plan, nullptr);
  EXPECT_NE(failure.find("option deterministic: expected true or false"), std::string::npos);
  graph_->release(graph);
  eval_->release(plan);
}

}  // namespace
}  // namespace tenon::test
