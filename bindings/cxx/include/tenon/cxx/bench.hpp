// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long a model takes: medians of many runs, the time to compile, memory, work per run.

#include <chrono>

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
  bool layers = false;
};

inline double milliseconds_since(std::chrono::steady_clock::time_point start) {
  std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
  return passed.count();
}

inline std::vector<double> timed_runs(const Plan& plan,
                                      const std::vector<Tensor>& inputs,
                                      const BenchChoice& choice) {
  const Session& session = *plan.session();
  ReusedResults results(plan.session(), plan.output_names().size());
  std::vector<const DLTensor*> views;
  for (const Tensor& tensor : inputs)
    views.push_back(tensor.view());
  auto once = [&] {
    auto start = std::chrono::steady_clock::now();
    check(
        session.eval->run(plan.raw(), views.data(), views.size(), results.get(), session.cancel()));
    return milliseconds_since(start);
  };
  once();  // takes memory and wakes threads up
  double expected = std::max(once(), 1e-4);
  double fit = choice.seconds * 1000 / expected;
  uint64_t rounds = choice.rounds > 0 ? static_cast<uint64_t>(choice.rounds)
                                      : static_cast<uint64_t>(std::clamp(fit, 10.0, 1000.0));
  Progress progress(session, "bench", rounds);
  std::vector<double> times;
  for (uint64_t i = 0; i < rounds; ++i) {
    session.stop_if_cancelled();
    times.push_back(once());
    if (i % 16 == 15) progress.update(i + 1);
  }
  std::sort(times.begin(), times.end());
  return times;
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
  Json options = compile_options(*session, run);
  auto start = std::chrono::steady_clock::now();
  Plan plan(model, options);
  plan.prepare(inputs);
  double compile_ms = milliseconds_since(start);
  std::vector<double> times = timed_runs(plan, inputs, choice);
  auto rank = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1) + 0.5)];
  };
  Json described = plan.describe();
  result["backend"] = described["backends"][0];
  result["precision"] = choice.run.precision.empty() ? "fp32" : choice.run.precision;
  result["threads"] = choice.run.threads > 0 ? Json(choice.run.threads) : Json();
  result["inputs"] = Json::object();
  std::vector<Port> ports = model.inputs();
  for (size_t i = 0; i < ports.size(); ++i)
    result["inputs"][ports[i].name] = inputs[i].text();
  result["latency_ms"] = {{"median", rank(0.5)}, {"min", times.front()}, {"p90", rank(0.9)}};
  result["rounds"] = times.size();
  result["compile_ms"] = compile_ms;
  result["peak_rss_mb"] = peak_rss_mb();
  result["flops"] = model.inspect()["flops"];
  add_memory(described, &result);
  result["fallback_nodes"] = described.value("fallback_nodes", Json::array());
  if (!choice.layers) return result;
  RunChoice measured = choice.run;
  measured.backend = result["backend"];
  const MachinePeaks peaks = machine_peaks(session, measured);
  const std::string precision = is_quantized(model) ? "int8" : std::string(result["precision"]);
  result["peaks"] = to_json(peaks);
  result["layers"] = layers_of(plan, inputs, peaks, precision);
  return result;
}

}  // namespace tenon::cxx
