// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long a model takes: medians of many runs, the time to compile, memory, work per run.

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <thread>

#include <sys/resource.h>

#include "tenon/cxx/float_quantize.hpp"
#include "tenon/cxx/roofline.hpp"
#include "tenon/cxx/with_shapes.hpp"

namespace tenon::cxx {

struct BenchChoice {
  RunChoice run;
  SampleChoice sample;
  int rounds = 0;  // 0: as many as fit into `seconds`, from 10 to 1000
  double seconds = 1.0;
  int streams = 1;  // callers at once; each run has its share of the threads where none are given
  bool layers = false;
};

inline double milliseconds_since(std::chrono::steady_clock::time_point start) {
  std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
  return passed.count();
}

// One who asks a plan again and again, with memory of its own for the answers.
class Caller {
 public:
  Caller(const Plan& plan, const std::vector<const DLTensor*>& inputs)
      : plan_(plan), inputs_(inputs), results_(plan.session(), plan.output_names().size()) {}
  // Milliseconds.
  double once() {
    const Session& session = *plan_.session();
    auto start = std::chrono::steady_clock::now();
    check(session.eval->run(plan_.raw(), inputs_.data(), inputs_.size(), results_.get(),
                            session.cancel()));
    return milliseconds_since(start);
  }

 private:
  const Plan& plan_;
  const std::vector<const DLTensor*>& inputs_;
  ReusedResults results_;
};

struct Timed {
  std::vector<double> times;  // milliseconds of each run, shortest first
  double seconds = 0;         // from the first to the last
};

inline uint64_t rounds_of(const BenchChoice& choice, double expected_ms) {
  if (choice.rounds > 0) return static_cast<uint64_t>(choice.rounds);
  const double fit = choice.seconds * 1000 / std::max(expected_ms, 1e-4);
  return static_cast<uint64_t>(std::clamp(fit, 10.0, 1000.0));
}

// As many threads as there are streams, each with runs of its own; the first failure is thrown.
inline Timed timed_runs(const Plan& plan,
                        const std::vector<Tensor>& inputs,
                        const BenchChoice& choice) {
  const Session& session = *plan.session();
  std::vector<const DLTensor*> views;
  for (const Tensor& tensor : inputs)
    views.push_back(tensor.view());
  const auto n = static_cast<size_t>(choice.streams);
  std::deque<Caller> callers;
  for (size_t i = 0; i < n; ++i)
    callers.emplace_back(plan, views);
  std::vector<std::vector<double>> times(n);
  auto call_all = [&](uint64_t rounds, const std::function<void(uint64_t)>& progress) {
    std::vector<std::exception_ptr> failures(n);
    auto call = [&](size_t stream) {
      try {
        for (uint64_t i = 0; i < rounds; ++i) {
          session.stop_if_cancelled();
          times[stream].push_back(callers[stream].once());
          if (stream == 0) progress(i + 1);
        }
      } catch (...) {
        failures[stream] = std::current_exception();
      }
    };
    std::vector<std::jthread> others;
    for (size_t i = 1; i < n; ++i)
      others.emplace_back(call, i);
    call(0);
    others.clear();
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
  };
  call_all(2, [](uint64_t) {});  // takes memory and wakes threads up
  const uint64_t rounds = rounds_of(choice, times[0].back());
  for (std::vector<double>& own : times)
    own.clear();
  Progress progress(session, "bench", rounds);
  const auto start = std::chrono::steady_clock::now();
  call_all(rounds, [&](uint64_t done) {
    if (done % 16 == 0) progress.update(done);
  });
  Timed out{{}, milliseconds_since(start) / 1000};
  for (const std::vector<double>& own : times)
    out.times.insert(out.times.end(), own.begin(), own.end());
  std::sort(out.times.begin(), out.times.end());
  return out;
}

inline double peak_rss_mb() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

// Bytes of a plan: the host's arena with the largest part's own (they run one after another), the
// most of it that is alive at once as far as backends report it, and weights in the kernels'
// layouts.
inline void add_memory(const Json& described, Json* result) {
  uint64_t arena = 0, alive = 0, packed = 0;
  for (const Json& part : described.value("partitions", Json::array())) {
    arena = std::max(arena, part.value("arena_bytes", part.value("workspace_bytes", uint64_t{0})));
    alive = std::max(alive, part.value("arena_lower_bound_bytes", uint64_t{0}));
    packed += part.value("packed_bytes", uint64_t{0});
  }
  (*result)["arena_bytes"] = arena + described.value("arena_bytes", uint64_t{0});
  (*result)["arena_lower_bound_bytes"] = alive > 0 ? Json(alive) : Json();
  (*result)["packed_bytes"] = packed;
}

// Threads of a run: the most that a partition takes. Null where no backend has threads of its own.
inline Json threads_of(const Json& described) {
  int most = 0;
  for (const Json& part : described.value("partitions", Json::array()))
    most = std::max(most, part.value("threads", 0));
  return most > 0 ? Json(most) : Json();
}

// The JSON of `tenon bench`, without the model's name.
inline Json bench(const Model& given, const BenchChoice& choice) {
  const SessionPtr& session = given.session();
  Model model = with_shapes(given, choice.sample.shapes);
  std::vector<Tensor> inputs = sample_inputs(model, choice.sample);
  model = model.bind(inputs);
  Json result{{"backend", nullptr}, {"precision", nullptr}, {"threads", nullptr}};
  RunChoice run = choice.run;
  if (run.precision == "int8") {
    run.precision.clear();  // the model's own nodes say what is int8
    if (!is_quantized(model)) {
      model = quantize_for_timing(model, inputs);
      result["note"] = "quantized with random data, for timing only: answers mean nothing";
    }
  }
  if (choice.streams > 1 && !model.states().empty())
    throw Error(TN_INVALID_ARGUMENT, "streams: a model with states runs one request at a time");
  if (choice.streams > 1 && run.threads == 0)
    run.threads = std::max(1, static_cast<int>(session->team->max_threads()) / choice.streams);
  Json options = compile_options(*session, run);
  auto start = std::chrono::steady_clock::now();
  Plan plan(model, options);
  plan.prepare(inputs);
  double compile_ms = milliseconds_since(start);
  const auto [times, seconds] = timed_runs(plan, inputs, choice);
  auto rank = [&times = times](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1) + 0.5)];
  };
  Json described = plan.describe();
  result["backend"] = described["backends"][0];
  result["precision"] = choice.run.precision.empty() ? "fp32" : choice.run.precision;
  result["threads"] = threads_of(described);
  result["streams"] = choice.streams;
  result["inputs"] = Json::object();
  std::vector<Port> ports = model.inputs();
  for (size_t i = 0; i < ports.size(); ++i)
    result["inputs"][ports[i].name] = inputs[i].text();
  result["latency_ms"] = {
      {"median", rank(0.5)}, {"min", times.front()}, {"p90", rank(0.9)}, {"p99", rank(0.99)}};
  result["runs_per_s"] = static_cast<double>(times.size()) / seconds;
  result["rounds"] = times.size();
  result["compile_ms"] = compile_ms;
  result["peak_rss_mb"] = peak_rss_mb();
  result["flops"] = model.inspect()["flops"];
  add_memory(described, &result);
  result["fallback_nodes"] = described.value("fallback_nodes", Json::array());
  if (!choice.layers) return result;
  RunChoice measured = choice.run;
  measured.backend = result["backend"];
  measured.options = Json::object();  // what the machine can do, not what this run leaves out
  const MachinePeaks peaks = machine_peaks(session, measured);
  const std::string precision = is_quantized(model) ? "int8" : std::string(result["precision"]);
  result["peaks"] = to_json(peaks);
  result["layers"] = layers_of(plan, inputs, peaks, precision);
  return result;
}

}  // namespace tenon::cxx
