// SPDX-License-Identifier: Apache-2.0
#include "call_arguments.hpp"

namespace tenon::python {
namespace {

constexpr int kMostNesting = 64;

// By which a static argument is known. 1, True and 1.0 are equal but differ in what a function
// makes of them, so types count; of numbers the text counts as well, as -0.0 and 0.0 are equal,
// too.
py::object static_key(py::handle object, int depth = 0) {
  if (depth > kMostNesting)
    throw py::value_error("static argument: expected at most 64 tuples inside each other");
  py::object type = py::type::of(object);
  if (PyTuple_Check(object.ptr())) {
    py::list items;
    for (py::handle item : object)
      items.append(static_key(item, depth + 1));
    return py::make_tuple(type, py::tuple(items));
  }
  if (PyFloat_Check(object.ptr()) || PyComplex_Check(object.ptr()))
    return py::make_tuple(type, py::repr(object));
  return py::make_tuple(type, object);
}

}  // namespace

void CallArguments::put_type(uint32_t dtype, std::span<const int64_t> shape, int batch) {
  put(&dtype, sizeof dtype);
  auto rank = static_cast<uint32_t>(shape.size());
  put(&rank, sizeof rank);
  put(shape.data(), shape.size_bytes());
  int64_t axis = batch < 0 ? batch + static_cast<int64_t>(rank) : batch;
  if (batch == kNoBatch || axis < 0 || axis >= static_cast<int64_t>(rank)) return;
  constexpr int64_t kAny = -1;
  size_t place = key_.size() - (rank - static_cast<size_t>(axis)) * sizeof(int64_t);
  key_.replace(place, sizeof kAny, reinterpret_cast<const char*>(&kAny), sizeof kAny);
}

bool CallArguments::add_in_place(PyObject* object, int batch) {
  refuse_mask(object);
  const auto* array = py::detail::array_proxy(object);
  auto held = py::reinterpret_borrow<py::array>(object);
  bool dense = (array->flags & py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_) != 0;
  if (!dense || array->nd > kMostDims) return false;
  py::dtype type = held.dtype();
  if (type.byteorder() == '>') return false;
  uint32_t dtype = dtype_of(type);
  if (dtype == TN_DTYPE_NONE || is_packed(dtype)) return false;
  Leaf& leaf = leaves_.emplace_back();
  int64_t stride = 1;
  for (int i = array->nd; i-- > 0; stride *= array->dimensions[i]) {
    leaf.layout[static_cast<size_t>(i)] = array->dimensions[i];
    leaf.layout[static_cast<size_t>(kMostDims + i)] = stride;
  }
  has_doubles_ |= dtype == TN_F64;
  leaf.view = {array->data, {kDLCPU, 0}, array->nd, dl_dtype(dtype), nullptr, nullptr, 0};
  key_ += 'a';
  put_type(dtype, {leaf.layout.data(), static_cast<size_t>(array->nd)}, batch);
  return true;
}

void CallArguments::add_other(py::handle object, int batch) {
  // Numbers of Python take the type of what they meet, so the graph differs from an array's.
  bool is_int = PyLong_Check(object.ptr()) && !PyBool_Check(object.ptr());
  bool is_float = PyFloat_CheckExact(object.ptr());
  bool is_bool = PyBool_Check(object.ptr());
  bool is_array = py::isinstance<Tensor>(object) || py::hasattr(object, "__dlpack__") ||
                  py::hasattr(object, "__array__");
  if (!is_int && !is_float && !is_bool && !is_array) {
    throw py::type_error(cat("expected arrays, numbers, or tuples, lists and dicts of them, got ",
                             std::string(Py_TYPE(object.ptr())->tp_name),
                             "; list the argument in static_argnums when it is no array"));
  }
  uint32_t wanted = is_float ? TN_F32 : is_int ? TN_I64 : is_bool ? TN_BOOL : TN_DTYPE_NONE;
  Leaf& leaf = leaves_.emplace_back();
  if (is_float) leaf.number = py::reinterpret_borrow<py::object>(object);
  leaf.made = tensor_from(session_, object, "argument", wanted);
  has_doubles_ |= leaf.made->dtype() == TN_F64;
  leaf.view = leaf.made->view();
  key_ += is_int || is_float ? 'n' : 'a';
  put_type(leaf.made->dtype(), leaf.made->shape(), batch);
}

void CallArguments::add_items(char mark, py::handle sequence, int batch) {
  key_ += mark;
  auto size = static_cast<uint32_t>(PySequence_Fast_GET_SIZE(sequence.ptr()));
  put(&size, sizeof size);
  for (uint32_t i = 0; i < size; ++i)
    add(PySequence_Fast_GET_ITEM(sequence.ptr(), static_cast<Py_ssize_t>(i)), batch);
}

void CallArguments::add(py::handle object, int batch) {
  if (has_traced_) return;
  if (++depth_ > kMostNesting)
    throw py::value_error("arguments: expected at most 64 containers inside each other");
  PyObject* raw = object.ptr();
  if (py::isinstance<py::array>(object)) {
    if (!add_in_place(raw, batch)) add_other(object, batch);
  } else if (PyTuple_Check(raw) || PyList_Check(raw)) {
    if (PyTuple_Check(raw) && !PyTuple_CheckExact(raw)) add_static(py::type::handle_of(object));
    add_items(PyTuple_Check(raw) ? 't' : 'l', object, batch);
  } else if (PyDict_Check(raw)) {
    key_ += 'd';
    for (auto [name, item] : py::reinterpret_borrow<py::dict>(object)) {
      add_name(name);
      add(item, batch);
    }
    key_ += 'e';
  } else if (object.is_none()) {
    key_ += '0';
  } else if (py::isinstance(object, traced_)) {
    has_traced_ = true;
  } else {
    add_other(object, batch);
  }
  --depth_;
}

void CallArguments::add_name(py::handle name) {
  if (!PyUnicode_Check(name.ptr())) return add_static(name);
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (!text) throw py::error_already_set();
  key_ += 'k';
  auto length = static_cast<uint64_t>(size);
  put(&length, sizeof length);
  put(text, static_cast<size_t>(size));
}

void CallArguments::add_static(py::handle object) {
  py::object key = static_key(object);
  PyObject* known = PyDict_GetItemWithError(statics_.ptr(), key.ptr());
  if (!known && PyErr_Occurred()) throw py::error_already_set();
  uint64_t number = statics_.size();
  if (known) {
    number = py::handle(known).cast<uint64_t>();
  } else if (PyDict_SetItem(statics_.ptr(), key.ptr(), py::int_(number).ptr()) != 0) {
    throw py::error_already_set();
  }
  key_ += 's';
  put(&number, sizeof number);
}

std::vector<const DLTensor*> CallArguments::views() {
  std::vector<const DLTensor*> all;
  all.reserve(leaves_.size());
  for (Leaf& leaf : leaves_) {
    if (leaf.number && has_doubles_) {
      leaf.made = tensor_from(session_, leaf.number, "argument", TN_F64);
      leaf.view = leaf.made->view();
    }
    if (!leaf.made) {
      leaf.view.shape = leaf.layout.data();
      leaf.view.strides = leaf.layout.data() + kMostDims;
    }
    all.push_back(&leaf.view);
  }
  return all;
}

}  // namespace tenon::python
