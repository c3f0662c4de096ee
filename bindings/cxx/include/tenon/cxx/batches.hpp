// SPDX-License-Identifier: Apache-2.0
#pragma once
// Samples of a data set as inputs of a model: which field is which input, and how many at once.

#include <algorithm>
#include <map>

#include "tenon/cxx/dataset.hpp"
#include "tenon/cxx/plan.hpp"

namespace tenon::cxx {

class Batches {
 public:
  // batch 0: what the model fixes, else 32. limit 0: all samples.
  Batches(const Model& model, const Dataset& data, uint64_t batch = 0, uint64_t limit = 0)
      : data_(data), ports_(model.inputs()) {
    size_ = data.size();
    if (limit) size_ = std::min(size_, limit);
    if (size_ == 0) invalid(cat(data.component().id(), ": expected samples, got none"));
    match_fields();
    fix_batch(batch);
  }
  uint64_t samples() const { return size_; }
  uint64_t count() const { return (size_ + batch_ - 1) / batch_; }
  uint64_t batch() const { return batch_; }

  struct Batch {
    std::vector<Tensor> inputs;  // in the order of the model's, padded to a fixed batch
    std::vector<Tensor> fields;  // of the data set, as they are
    int64_t samples = 0;
  };
  Batch at(uint64_t i) const {
    uint64_t begin = i * batch_;
    uint64_t end = std::min(begin + batch_, size_);
    Batch batch;
    batch.samples = static_cast<int64_t>(end - begin);
    batch.fields = data_.batch(begin, end);
    for (size_t input = 0; input < ports_.size(); ++input) {
      Tensor tensor = batch.fields[field_of_[input]];
      if (fixed_ && end - begin < batch_) tensor = padded(tensor);
      NamedInputs::check_port(ports_[input], tensor);
      batch.inputs.push_back(std::move(tensor));
    }
    return batch;
  }
  // Without the rows that padding added.
  std::vector<Tensor> cut(std::vector<Tensor> outputs, int64_t samples) const {
    if (!fixed_ || samples == static_cast<int64_t>(batch_)) return outputs;
    for (Tensor& tensor : outputs) {
      if (!tensor.shape().empty() && tensor.shape()[0] == static_cast<int64_t>(batch_))
        tensor = tensor.rows(0, samples);
    }
    return outputs;
  }

 private:
  // By name; where names differ, a single input takes the single field of its type and shape.
  void match_fields() {
    std::string names;
    for (const Dataset::Field& field : data_.fields())
      names += cat(names.empty() ? "" : ", ", field.name);
    for (const Port& port : ports_) {
      size_t found = data_.fields().size();
      for (size_t i = 0; i < data_.fields().size(); ++i) {
        if (data_.fields()[i].name == port.name) found = i;
      }
      if (found == data_.fields().size() && ports_.size() == 1) found = only_fit(port);
      if (found == data_.fields().size()) {
        invalid(cat(data_.component().id(), ": expected a field ", port.name, " for the input ",
                    port.text(), ", got ", names.empty() ? "no fields" : names));
      }
      field_of_.push_back(found);
    }
  }
  size_t only_fit(const Port& port) const {
    const size_t none = data_.fields().size();
    size_t found = none;
    for (size_t i = 0; i < none; ++i) {
      const Dataset::Field& field = data_.fields()[i];
      if (field.dtype != dtype_name(port.dtype) || field.shape.size() + 1 != port.dims.size())
        continue;
      if (found != none) return none;
      found = i;
    }
    return found;
  }
  void fix_batch(uint64_t wanted) {
    constexpr uint64_t kUsual = 32;
    batch_ = wanted ? wanted : kUsual;
    for (const Port& port : ports_) {
      if (port.dims.empty() || port.dims[0] < 1) continue;
      fixed_ = true;
      batch_ = static_cast<uint64_t>(port.dims[0]);
      if (wanted && wanted != batch_)
        invalid(cat("batch: expected ", batch_, ", which the model fixes, got ", wanted));
    }
    if (!fixed_) batch_ = std::min(batch_, size_);
  }
  // The last batch again and again until it is full.
  Tensor padded(const Tensor& part) const {
    std::vector<int64_t> shape(part.shape().begin(), part.shape().end());
    const auto rows = static_cast<uint64_t>(shape[0]);
    const uint64_t row_bytes = part.bytes() / rows;
    shape[0] = static_cast<int64_t>(batch_);
    Tensor full = Tensor::zeros(part.session(), part.dtype(), shape);
    for (uint64_t i = 0; i < batch_; ++i)
      std::memcpy(static_cast<char*>(full.data()) + i * row_bytes,
                  static_cast<const char*>(part.data()) + i % rows * row_bytes, row_bytes);
    return full;
  }

  const Dataset& data_;
  std::vector<Port> ports_;
  std::vector<size_t> field_of_;
  uint64_t size_ = 0;
  uint64_t batch_ = 1;
  bool fixed_ = false;
};

}  // namespace tenon::cxx
