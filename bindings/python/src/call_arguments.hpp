// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arguments of one call of a compiled function: the arrays in them, in order, and a key of
// their structure, types and shapes. Dense NumPy arrays are read in place, without an object for
// each.

#include <array>
#include <string>
#include <vector>

#include "tensor.hpp"

namespace tenon::python {

class CallArguments {
 public:
  static constexpr int kNoBatch = INT32_MAX;

  // traced: the class of values under trace. statics: objects that were given for static arguments,
  // each with its number.
  CallArguments(const SessionPtr& session, py::handle traced, const py::dict& statics)
      : session_(session), traced_(traced), statics_(statics) {
    leaves_.reserve(8);
    key_.reserve(128);
  }
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  // batch: the axis whose size is left out of the key; negative ones count from the end.
  void add(py::handle object, int batch = kNoBatch);
  void add_static(py::handle object);
  void add_name(py::handle name);

  const std::string& key() const { return key_; }
  // A value under trace was among them: then key and views are of no use.
  bool has_traced() const { return has_traced_; }
  // They live as long as this object and what it was given.
  std::vector<const DLTensor*> views();

 private:
  static constexpr int kMostDims = 8;
  struct Leaf {
    DLTensor view;
    std::array<int64_t, 2 * kMostDims> layout;  // of arrays in place: sizes, then strides
    TensorPtr made;                             // else
    py::object number;                          // a float of Python
  };
  bool add_in_place(PyObject* object, int batch);
  void add_other(py::handle object, int batch);
  void add_items(char mark, py::handle sequence, int batch);
  void put(const void* data, size_t size) { key_.append(static_cast<const char*>(data), size); }
  void put_type(uint32_t dtype, std::span<const int64_t> shape, int batch);

  const SessionPtr& session_;
  py::handle traced_;
  const py::dict& statics_;
  std::vector<Leaf> leaves_;
  std::string key_;
  bool has_traced_ = false;
  bool has_doubles_ = false;  // arrays of float64, beside which a float of Python is one too
  int depth_ = 0;
};

}  // namespace tenon::python
