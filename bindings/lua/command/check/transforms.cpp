// SPDX-License-Identifier: Apache-2.0
// What transforms make of an operator, wherever its rules come from: its own columns, its axes, its
// expression or its parts. Gradients of first and second order against differences, vmap against
// one example after the other. Numbers are float64 where the operator computes in it.
// The same graphs then run on every other backend, beside "reference".
#include <algorithm>
#include <cmath>
#include <optional>

#include "tenon/role/op.h"

#include "check.hpp"

namespace tenon::command::check {
namespace {

using cxx::Model;
using cxx::Port;
using cxx::Tensor;
using Tensors = std::vector<Tensor>;

constexpr uint64_t kSeeds = 6;
constexpr int64_t kExamples = 3;
constexpr int kAttempts = 10;

// The sample with float64 in place of float32, where the operator takes that.
Model widened(Model model) {
  cxx::TextSink sink;
  cxx::check(model.services().print(model.get(), TN_PRINT_DATA, sink.get()));
  std::string text = sink.text();
  for (size_t at = text.find("f32["); at != std::string::npos; at = text.find("f32[", at))
    text.replace(at, 3, "f64");
  try {
    Model wide = parse_model(model.session(), text);
    static_cast<void>(cxx::Plan(wide, {{"backend", "reference"}}));
    return wide;
  } catch (const cxx::Error&) {
    return model;
  }
}

// A function of a model's inputs, with random inputs and a random weight for each result.
class Function {
 public:
  Function(Model model, uint64_t seed)
      : model_(std::move(model)), plan_(model_, {{"backend", "reference"}}), random_(seed) {}

  const Model& model() const { return model_; }
  Tensor random(const Port& port) {
    if (!port.ranked ||
        std::any_of(port.dims.begin(), port.dims.end(), [](int64_t d) { return d < 0; }))
      throw Skipped{cat("the shape of ", port.name, " depends on data")};
    return random_tensor(model_.session(), port.dtype, port.dims, random_);
  }
  // Inputs as they come, small, positive, from 1 on, or within 0 to 1: one of them lies where a
  // logarithm or an arc cosine has a slope.
  Tensors random_inputs(int attempt = 0) {
    constexpr double kScaled[][2] = {{1, 0}, {0.4, 0}, {0.2, 1.5}, {0.1, 1.3}, {0.2, 0.5}};
    auto [scale, shift] = kScaled[static_cast<size_t>(attempt) % std::size(kScaled)];
    Tensors out;
    for (const Port& port : model_.inputs()) {
      out.push_back(random(port));
      for (int64_t i = 0; cxx::is_float(port.dtype) && i < out.back().size(); ++i)
        out.back().set(i, out.back().at(i) * scale + shift);
    }
    return out;
  }
  Tensors run(const Tensors& inputs) { return plan_.run(inputs); }
  Json float_inputs() const {
    Json out = Json::array();
    std::vector<Port> ports = model_.inputs();
    for (size_t i = 0; i < ports.size(); ++i)
      if (cxx::is_float(ports[i].dtype)) out.push_back(i);
    return out;
  }

 private:
  Model model_;
  cxx::Plan plan_;
  std::mt19937_64 random_;
};

Model transformed(const Model& model, const std::string& pass, const Json& options) {
  try {
    return model.apply(pass, cxx::Options(model.session(), options));
  } catch (const cxx::Error& failed) {
    bool has_no_rule = failed.code() == TN_UNIMPLEMENTED,
         has_no_pass = failed.code() == TN_NOT_FOUND;
    if (has_no_rule || has_no_pass) throw Skipped{failed.what()};
    throw;
  }
}

// The slope along `way` of the results weighted by `weights`, of fourth order; nothing near a kink
// or a pole.
std::optional<double> slope(
    Function& f, const Tensors& at, size_t input, const Tensor& way, const Tensors& weights) {
  bool is_wide = way.dtype() == TN_F64;
  double step = is_wide ? 1e-4 : 1e-2, ends[4] = {};
  constexpr double kSteps[] = {-2, -1, 1, 2};
  for (int side = 0; side < 4; ++side) {
    Tensors moved = at;
    moved[input] = Tensor::copy_of(f.model().session(), *at[input].view());
    for (int64_t i = 0; i < way.size(); ++i)
      moved[input].set(i, at[input].at(i) + kSteps[side] * step * way.at(i));
    Tensors out = f.run(moved);
    for (size_t i = 0; i < weights.size(); ++i)
      if (weights[i]) ends[side] += dot(out[i], weights[i]);
  }
  double near = (ends[2] - ends[1]) / (2 * step), far = (ends[3] - ends[0]) / (4 * step);
  if (!(std::fabs(near - far) < (is_wide ? 1e-4 : 2e-2) * (1 + std::fabs(near)))) return {};
  return (4 * near - far) / 3;
}

// The gradient of f by each of `wrt` along a random direction. How many directions were compared.
int compare_slopes(
    Function& f, Function& gradient, const Json& wrt, int attempt, const std::string& where) {
  Tensors at = f.random_inputs(attempt), all = at, weights;
  std::vector<Port> outputs = f.model().outputs();
  for (const Port& port : outputs) {
    weights.push_back(cxx::is_float(port.dtype) ? f.random(port) : Tensor());
    if (weights.back()) all.push_back(weights.back());
  }
  Tensors got = gradient.run(all);
  int compared = 0;
  for (size_t k = 0; k < wrt.size(); ++k) {
    auto input = wrt[k].get<size_t>();
    Tensor way = f.random(f.model().inputs()[input]);
    std::optional<double> want = slope(f, at, input, way, weights);
    if (!want) continue;
    double is = dot(got[outputs.size() + k], way);
    double tolerance = way.dtype() == TN_F64 ? 1e-6 : 2e-2;
    require(
        std::fabs(is - *want) <= tolerance * (1 + std::fabs(*want)),
        cat(where, ": slope by input ", input, ": expected ", *want, " (differences), got ", is));
    ++compared;
  }
  return compared;
}

Function gradient_of(const Function& f, uint64_t seed, const Json& wrt) {
  std::vector<Port> results = f.model().outputs();
  bool has_slopes = std::any_of(results.begin(), results.end(),
                                [](const Port& port) { return cxx::is_float(port.dtype); });
  if (wrt.empty() || !has_slopes) throw Skipped{"not from floats to floats"};
  return {transformed(f.model(), "autodiff.vjp", {{"argnums", wrt}}), seed};
}
Function gradient_of(const Function& f, uint64_t seed) {
  return gradient_of(f, seed, f.float_inputs());
}

Tensor example_of(const Tensor& all, int64_t i) {
  std::vector<int64_t> dims(all.shape().begin() + 1, all.shape().end());
  Tensor out = Tensor::zeros(all.session(), all.dtype(), dims);
  for (int64_t k = 0; k < out.size(); ++k)
    out.set(k, all.at(i * out.size() + k));
  return out;
}

// Which inputs have the new axis: all of them, all but one, one alone.
std::vector<std::vector<bool>> choices_of_mapped(size_t n_inputs) {
  std::vector<std::vector<bool>> out{std::vector<bool>(n_inputs, true)};
  for (size_t i = 0; n_inputs > 1 && i < n_inputs; ++i)
    for (bool others : {true, false}) {
      if (n_inputs == 2 && !others) continue;  // the other one's turn
      out.emplace_back(n_inputs, others);
      out.back()[i] = !others;
    }
  return out;
}

void compare_vmap(Function& f, const std::vector<bool>& is_mapped, uint64_t seed) {
  std::string axes;
  for (bool mapped : is_mapped)
    axes += cat(axes.empty() ? "" : ", ", mapped ? "0" : "none");
  Json options = {{"in_axes", axes}, {"axis_size", kExamples}};
  Function mapped(transformed(f.model(), "autodiff.vmap", options), seed);
  Tensors given = mapped.random_inputs(), got = mapped.run(given);
  for (int64_t i = 0; i < kExamples; ++i) {
    Tensors one;
    for (size_t x = 0; x < given.size(); ++x)
      one.push_back(is_mapped[x] ? example_of(given[x], i) : given[x]);
    Tensors want = f.run(one);
    for (size_t y = 0; y < want.size(); ++y)
      same_numbers(example_of(got[y], i), want[y],
                   cat("seed ", seed, ": in_axes ", axes, ": example ", i), 1e-4);
  }
}

void check_vmap(const tn_op* row, const SampleOf& sample) {
  if (row->traits & TN_OP_RANDOM) throw Skipped{"its results are random"};
  if (row->traits & TN_OP_DATA_SHAPE) throw Skipped{"its shapes depend on data"};
  if (row->traits & TN_OP_MIXES_BATCH) throw Skipped{"its rows depend on each other"};
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Function f(sample(seed), seed);
    size_t n_inputs = f.model().inputs().size();
    if (n_inputs == 0) throw Skipped{"no input"};
    for (const std::vector<bool>& is_mapped : choices_of_mapped(n_inputs))
      compare_vmap(f, is_mapped, seed);
  }
}

// Backends that can run here, but for the one that the others are measured by.
std::vector<std::string> other_backends(const Model& model) {
  std::vector<std::string> out;
  for (const Json& one : list_components(*model.session(), "tenon.backend/1")) {
    std::string id = one["id"];
    if (id == "reference") continue;
    try {
      static_cast<void>(cxx::Plan(model, {{"backend", id}}));
      out.push_back(id);
    } catch (const cxx::Error& failed) {
      if (failed.code() != TN_UNAVAILABLE) throw;
    }
  }
  return out;
}

// The sample, its gradient and its vmap, of those that there are.
std::vector<std::pair<std::string, Function>> forms_of(const tn_op* row,
                                                       const SampleOf& sample,
                                                       uint64_t seed) {
  std::vector<std::pair<std::string, Function>> out;
  out.emplace_back("alone", Function(sample(seed), seed));
  try {
    out.emplace_back("gradient", gradient_of(out[0].second, seed));
  } catch (const Skipped&) {
  }
  if (row->traits & TN_OP_MIXES_BATCH) return out;
  try {
    Json options = {{"in_axes", 0}, {"axis_size", kExamples}};
    Function mapped(transformed(out[0].second.model(), "autodiff.vmap", options), seed);
    out.emplace_back("vmap", std::move(mapped));
  } catch (const Skipped&) {
  }
  return out;
}

void check_backends(const tn_op* row, const SampleOf& sample) {
  constexpr double kTolerance = 1e-4;
  if (row->traits & TN_OP_RANDOM) throw Skipped{"its results are random"};
  std::vector<std::string> backends = other_backends(sample(1));
  if (backends.empty()) throw Skipped{"no backend but reference"};
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (auto& [form, f] : forms_of(row, sample, seed)) {
      Tensors given = f.random_inputs(static_cast<int>(seed)), want = f.run(given);
      for (const std::string& id : backends) {
        Tensors got = cxx::Plan(f.model(), {{"backend", id}}).run(given);
        for (size_t y = 0; y < want.size(); ++y)
          same_numbers(got[y], want[y], cat("seed ", seed, ": ", form, ", output ", y, " on ", id),
                       kTolerance);
      }
    }
  }
}

}  // namespace

void check_gradient(const SampleOf& sample, int order, const Json& wrt) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Function f(widened(sample(seed)), seed);
    for (int taken = 1; taken < order; ++taken)
      f = gradient_of(f, seed);
    const Json by = wrt.is_null() ? f.float_inputs() : wrt;
    Function gradient = gradient_of(f, seed, by);
    int found = 0;
    for (int attempt = 0; attempt < kAttempts && found == 0; ++attempt)
      found = compare_slopes(f, gradient, by, attempt, cat("seed ", seed));
    compared += found;
  }
  require(compared > 0, "no sample is smooth where it was tried");
}

void check_transforms(const std::string& name,
                      const tn_op* row,
                      const SampleOf& sample,
                      Report& report) {
  report.check(name + " gradient", [&] { check_gradient(sample, 1); });
  report.check(name + " second order", [&] { check_gradient(sample, 2); });
  report.check(name + " vmap", [&] { check_vmap(row, sample); });
  report.check(name + " backends", [&] { check_backends(row, sample); });
}

}  // namespace tenon::command::check
