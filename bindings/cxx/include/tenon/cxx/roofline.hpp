// SPDX-License-Identifier: Apache-2.0
#pragma once
// The roofline model (Williams et al., 2009): what a machine could do at most, measured through the
// backend that runs the model, and the share of it that each layer reaches.

#include <map>

#include "tenon/cxx/builder.hpp"
#include "tenon/cxx/sample_inputs.hpp"

namespace tenon::cxx {

// Rates of products by precision and of memory by the bytes that a layer touches; both in units a
// nanosecond. A working set that stays in a cache is read faster than one that does not.
struct MachinePeaks {
  std::map<std::string, double> flops;
  std::map<uint64_t, double> bytes;
};

namespace detail {

// A number of a layer's profile; 0 where the backend does not say.
inline double number_of(const Json& layer, const char* key) {
  return layer.contains(key) && layer[key].is_number() ? layer[key].get<double>() : 0.0;
}

constexpr int64_t kPeakProduct = 1024;  // rows and columns

// The best rate of `key` in any layer over several runs.
inline double best_rate(const Plan& plan, const Model& model, const char* key) {
  constexpr int kRuns = 8;
  const std::vector<Tensor> inputs = sample_inputs(model, {});
  plan.prepare(inputs);
  double best = 0;
  for (int i = 0; i < kRuns; ++i)
    for (const Json& layer : plan.profile(inputs))
      best = std::max(best, number_of(layer, key) / std::max(number_of(layer, "ns"), 1.0));
  return best;
}
inline double best_rate(const Model& model, const RunChoice& run, const char* key) {
  return best_rate(Plan(model, compile_options(*model.session(), run)), model, key);
}

// A product that is large enough to be bound by arithmetic, of weights that are known.
inline Model peak_product(const SessionPtr& session) {
  Builder builder(session);
  const tn_value_id left = builder.input("left", TN_F32, {kPeakProduct, kPeakProduct});
  const Tensor weight =
      sample_input(session, builder.type_of(left), {kPeakProduct, kPeakProduct}, 1);
  const tn_value_id right = builder.constant(weight, "right");
  builder.output("product", builder.node("", "MatMul", {left, right}, 1, Json::object())[0]);
  return builder.build();
}

// The same of 8-bit integers, in the form of ONNX.
inline Model peak_product_int8(const SessionPtr& session) {
  Builder builder(session);
  auto node = [&](const char* op, std::vector<tn_value_id> inputs) {
    return builder.node("", op, inputs, 1, Json::object())[0];
  };
  Tensor one = Tensor::zeros(session, TN_F32, {});
  one.set(0, 1.0 / 32);
  Tensor weight = Tensor::zeros(session, TN_I8, {kPeakProduct, kPeakProduct});
  for (int64_t i = 0; i < weight.size(); ++i)
    weight.set(i, static_cast<double>(i % 255 - 127));
  const tn_value_id scale = builder.constant(one, "scale");
  const tn_value_id left = builder.input("left", TN_F32, {kPeakProduct, kPeakProduct});
  const tn_value_id rounded =
      node("DequantizeLinear", {node("QuantizeLinear", {left, scale}), scale});
  const tn_value_id right = node("DequantizeLinear", {builder.constant(weight, "right"), scale});
  builder.output("product", node("MatMul", {rounded, right}));
  return builder.build();
}

// Reads so many bytes and writes as many, with next to no arithmetic.
inline Model peak_stream(const SessionPtr& session, uint64_t bytes) {
  Builder builder(session);
  const tn_value_id input = builder.input("input", TN_F32, {bytes / sizeof(float)});
  builder.output("output", builder.node("", "Relu", {input}, 1, Json::object())[0]);
  return builder.build();
}

}  // namespace detail

// run: a backend by name, and threads. Products in each precision that its device computes in.
// Takes a second or so.
inline MachinePeaks machine_peaks(const SessionPtr& session, RunChoice run) {
  constexpr uint64_t kLeastBytes = uint64_t{256} << 10;
  constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  MachinePeaks peaks;
  const Model product = detail::peak_product(session);
  run.precision.clear();  // fp32; some have no such option
  const Plan single(product, compile_options(*session, run));
  peaks.flops["fp32"] = detail::best_rate(single, product, "flops");
  peaks.flops["int8"] = detail::best_rate(detail::peak_product_int8(session), run, "flops");
  for (const std::string& precision : single.native_precisions()) {
    if (peaks.flops.contains(precision)) continue;
    RunChoice in_precision = run;
    in_precision.precision = precision;
    peaks.flops[precision] = detail::best_rate(product, in_precision, "flops");
  }
  double best = 0;
  for (uint64_t bytes = kMostBytes; bytes >= kLeastBytes; bytes /= 8) {
    // Half of them are read and half are written. A smaller set is no slower: what is measured less
    // is what a step costs to begin with.
    best = std::max(best, detail::best_rate(detail::peak_stream(session, bytes / 2), run, "bytes"));
    if (best > 0) peaks.bytes[bytes] = best;  // some backends do not say what they move
  }
  return peaks;
}

// As JSON: {"flops_per_s": {"fp32": ...}, "bytes_per_s": [{"working_set": ..., "rate": ...}]}.
inline Json to_json(const MachinePeaks& peaks) {
  Json result{{"flops_per_s", Json::object()}, {"bytes_per_s", Json::array()}};
  for (const auto& [precision, rate] : peaks.flops)
    result["flops_per_s"][precision] = rate * 1e9;
  for (const auto& [bytes, rate] : peaks.bytes)
    result["bytes_per_s"].push_back({{"working_set", bytes}, {"rate", rate * 1e9}});
  return result;
}

// The least time in ns that a layer of these sizes could take. Infinite rates where nothing was
// measured, so that an unknown peak bounds nothing.
inline double least_ns(const MachinePeaks& peaks, const std::string& precision, const Json& layer) {
  const double flops = detail::number_of(layer, "flops");
  const double bytes = detail::number_of(layer, "bytes");
  auto product = peaks.flops.find(precision);
  auto stream = peaks.bytes.lower_bound(static_cast<uint64_t>(bytes));
  if (stream == peaks.bytes.end() && !peaks.bytes.empty()) --stream;
  auto time = [](double work, double rate) { return rate > 0 ? work / rate : 0.0; };
  return std::max(product == peaks.flops.end() ? 0 : time(flops, product->second),
                  stream == peaks.bytes.end() ? 0 : time(bytes, stream->second));
}

// Layers in order, with `share` of the run's time and `roofline`: the least time over the time
// taken. Above 1 where a kernel does fewer operations than the layer's formula, as Winograd's.
inline Json layers_of(const Plan& plan,
                      const std::vector<Tensor>& inputs,
                      const MachinePeaks& peaks,
                      const std::string& precision) {
  Json layers = plan.profile(inputs);
  double all = 0;
  for (const Json& layer : layers)
    all += std::max(detail::number_of(layer, "ns"), 1.0);
  for (Json& layer : layers) {
    const double ns = std::max(detail::number_of(layer, "ns"), 1.0);
    layer["share"] = ns / std::max(all, 1.0);
    layer["roofline"] = least_ns(peaks, precision, layer) / ns;
  }
  return layers;
}

}  // namespace tenon::cxx
