// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inputs to time a model with: given arrays, given shapes, else what the model says.

#include <map>

#include "tenon/cxx/plan.hpp"

namespace tenon::cxx {

struct SampleChoice {
  std::map<std::string, Tensor> given;
  std::map<std::string, std::vector<int64_t>> shapes;
};

// Floats are normal random numbers of a fixed seed, whole numbers zeros: zero is a valid index. So
// are floats of 8 bits and less.
inline Tensor sample_input(const SessionPtr& session,
                           const Port& port,
                           std::vector<int64_t> shape,
                           uint64_t stream) {
  uint32_t dtype = port.dtype == TN_DTYPE_NONE ? TN_F32 : port.dtype;
  Tensor made = Tensor::zeros(session, dtype, std::move(shape));
  if (!is_float(dtype) || TN_DTYPE_BITS(dtype) < 16) return made;
  std::vector<double> numbers(static_cast<size_t>(made.size()));
  session->random->normal(1, stream, 0, numbers.data(), numbers.size());
  for (int64_t i = 0; i < made.size(); ++i)
    made.set(i, numbers[static_cast<size_t>(i)]);
  return made;
}

inline std::vector<int64_t> sample_shape(const Port& port) {
  if (!port.ranked) {
    invalid(cat("input ", port.name, ": expected a shape, as --shape ", port.name,
                "=1x3x224x224, got none (the model leaves it open)"));
  }
  std::vector<int64_t> shape = port.dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    if (i > 0) {
      invalid(cat("input ", port.name, ": expected a shape, as --shape ", port.name,
                  "=1x128, got none (the model has ", port.text(), ")"));
    }
    shape[i] = 1;  // the batch
  }
  return shape;
}

inline std::vector<Tensor> sample_inputs(const Model& model, const SampleChoice& choice) {
  NamedInputs inputs(model);
  for (const auto& [name, tensor] : choice.given)
    inputs.set(name, tensor);
  const std::vector<Port> ports = inputs.ports();
  std::map<std::string, std::vector<int64_t>> shapes = choice.shapes;
  for (size_t i = 0; i < ports.size(); ++i) {
    auto shape = shapes.extract(ports[i].name);
    if (inputs.has(i)) continue;
    inputs.set(ports[i].name,
               sample_input(model.session(), ports[i],
                            shape.empty() ? sample_shape(ports[i]) : shape.mapped(), i));
  }
  if (!shapes.empty()) {
    std::string known;
    for (const Port& port : ports)
      known += cat(known.empty() ? "" : ", ", port.name);
    invalid(cat("shape: expected one of ", known, ", got '", shapes.begin()->first, "'"));
  }
  return inputs.all();
}

}  // namespace tenon::cxx
