// SPDX-License-Identifier: Apache-2.0
// A Python function as a data set.
#include "tenon/role/dataset.h"

#include <cstring>

#include "model.hpp"
#include "python_function.hpp"

namespace tenon::python {
namespace {

struct PythonData {
  uint64_t size;
  std::string fields;  // as the role has them
  py::object
      batch;  // batch(index, seed): an array for each field, all samples along the first axis
  SessionPtr session;
};

uint64_t size(void* self) {
  return static_cast<PythonData*>(self)->size;
}

tn_status* fields(void* self, const tn_sink* sink) {
  const std::string& text = static_cast<PythonData*>(self)->fields;
  return sink->write(sink->ctx, text.data(), text.size());
}

void copy_out(const TensorPtr& from,
              uint64_t i,
              const tn_outputs* outputs,
              const Session& session) {
  DLTensor to{};
  session.check(without_gil([&] { return outputs->get(outputs->ctx, i, &from->view(), &to); }));
  const uint64_t bytes = (from->count() * from->view().dtype.bits + 7) / 8;
  if (bytes) std::memcpy(static_cast<char*>(to.data) + to.byte_offset, from->data(), bytes);
}

tn_status* batch(
    void* self, const uint64_t* index, uint64_t n, uint64_t seed, const tn_outputs* outputs) {
  auto& data = *static_cast<PythonData*>(self);
  return with_gil(data.session, [&] {
    py::list samples;
    for (uint64_t i = 0; i < n; ++i) {
      if (index[i] >= data.size)
        throw Error(TN_OUT_OF_RANGE,
                    cat("sample ", index[i], " of a data set that has ", data.size));
      samples.append(index[i]);
    }
    const py::list arrays = data.batch(samples, seed);
    for (size_t i = 0; i < arrays.size(); ++i)
      copy_out(tensor_from(data.session, arrays[i], cat("field ", i)), i, outputs, *data.session);
  });
}

constexpr tn_dataset kTable{sizeof(tn_dataset), 1, size, fields, batch, nullptr};

std::shared_ptr<Component> of_function(const SessionPtr& session,
                                       uint64_t size,
                                       const std::string& fields,
                                       py::object batch) {
  auto self = std::make_unique<PythonData>(PythonData{size, fields, std::move(batch), session});
  auto made = std::make_shared<Component>(session, "tenon.dataset/1", "python.function", &kTable,
                                          self.get(), end_with_gil<PythonData>);
  static_cast<void>(self.release());  // the component's from now on
  return made;
}

}  // namespace

void bind_datasets(py::module_& module) {
  module.def("dataset_of_function", of_function);
}

}  // namespace tenon::python
