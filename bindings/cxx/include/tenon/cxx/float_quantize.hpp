// SPDX-License-Identifier: Apache-2.0
#pragma once
// Timing int8 of a float model: quantized with a few random samples, whose answers mean nothing.

#include <memory>

#include "tenon/role/dataset.h"

#include "tenon/cxx/sample_inputs.hpp"

namespace tenon::cxx {

inline bool is_quantized(const Model& model) {
  constexpr const char* kOps[] = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear",
                                  "MatMulInteger",  "ConvInteger",      "QLinearMatMul",
                                  "QLinearConv",    "MatMulNBits"};
  return std::any_of(std::begin(kOps), std::end(kOps),
                     [&](const char* op) { return model.has_op(op); });
}

namespace detail {

// One input for each field, its first axis counting samples, as a data set.
struct InputsAsData {
  std::vector<Port> ports;
  std::vector<Tensor> inputs;

  static InputsAsData& of(void* self) { return *static_cast<InputsAsData*>(self); }
  static uint64_t size(void* self) {
    const Tensor& first = of(self).inputs.at(0);
    return first.shape().empty() ? 1 : static_cast<uint64_t>(first.shape()[0]);
  }
  static tn_status* fields(void* self, const tn_sink* sink) {
    Json all = Json::array();
    for (size_t i = 0; i < of(self).ports.size(); ++i) {
      const Tensor& one = of(self).inputs[i];
      std::vector<int64_t> shape(one.shape().begin(), one.shape().end());
      if (!shape.empty()) shape.erase(shape.begin());
      all.push_back(
          {{"name", of(self).ports[i].name}, {"dtype", dtype_name(one.dtype())}, {"shape", shape}});
    }
    std::string text = dump(all);
    return sink->write(sink->ctx, text.data(), text.size());
  }
  static tn_status* batch(
      void* self, const uint64_t* index, uint64_t n, uint64_t, const tn_outputs* outputs) {
    for (size_t i = 0; i < of(self).inputs.size(); ++i) {
      const Tensor& one = of(self).inputs[i];
      std::vector<int64_t> shape(one.shape().begin(), one.shape().end());
      const uint64_t bytes = one.bytes() / size(self);
      if (!shape.empty()) shape[0] = static_cast<int64_t>(n);
      DLTensor proto = *one.view(), out{};
      proto.shape = shape.data();
      if (tn_status* failed = outputs->get(outputs->ctx, i, &proto, &out)) return failed;
      for (uint64_t k = 0; k < n; ++k)
        std::memcpy(static_cast<char*>(out.data) + out.byte_offset + k * bytes,
                    static_cast<const char*>(one.data()) + index[k] * bytes, bytes);
    }
    return nullptr;
  }
};

}  // namespace detail

// What the recipe `int8` does, as a normalization that is not folded would be quantized for itself.
inline Model quantize_for_timing(const Model& model, const std::vector<Tensor>& inputs) {
  using Data = detail::InputsAsData;
  static const tn_dataset table{sizeof table, 1, Data::size, Data::fields, Data::batch, nullptr};
  const SessionPtr& session = model.session();
  auto owned = std::make_unique<Data>(Data{model.inputs(), inputs});
  Component data =
      Component::lend(session, "tenon.dataset/1", "bench.inputs", &table, owned.release(),
                      [](void* self) { std::unique_ptr<Data> ended(static_cast<Data*>(self)); });
  Options options(session);
  options.set("data", data);
  const Options none(session);
  return model.apply("precision.widen", none)
      .apply("fusion.default", none)
      .apply("quantizer.static", options);
}

}  // namespace tenon::cxx
