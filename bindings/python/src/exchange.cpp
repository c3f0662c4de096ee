// SPDX-License-Identifier: Apache-2.0
// Tensors in and out by DLPack (Python's side of the protocol: the array API standard, "data
// interchange"), and by NumPy where NumPy's own export cannot say the type.
#include "tenon/dense.hpp"

#include "tensor.hpp"

namespace tenon::python {
namespace {

// What producers hand out when they do not know versions; the standard keeps it for them.
struct LegacyManaged {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(LegacyManaged* self);
};
constexpr const char* kVersioned = "dltensor_versioned";
constexpr const char* kLegacy = "dltensor";

template <class Managed>
struct Named {
  static constexpr const char* kName = kVersioned;
  static constexpr const char* kUsed = "used_dltensor_versioned";
};
template <>
struct Named<LegacyManaged> {
  static constexpr const char* kName = kLegacy;
  static constexpr const char* kUsed = "used_dltensor";
};

// The consumer renames a capsule that it takes; one that nobody took frees its tensor.
template <class Managed>
void free_untaken(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, Named<Managed>::kName)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Named<Managed>::kName));
  if (managed->deleter) managed->deleter(managed);
}

template <class Managed>
py::capsule capsule_of(Managed* managed) {
  PyObject* made = PyCapsule_New(managed, Named<Managed>::kName, free_untaken<Managed>);
  if (!made) {
    managed->deleter(managed);
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::capsule>(made);
}

struct LegacyOwner {
  LegacyManaged managed;
  DLManagedTensorVersioned* versioned;
};

LegacyManaged* legacy_of(DLManagedTensorVersioned* versioned) {
  auto* owner = new LegacyOwner{{versioned->dl_tensor, nullptr, nullptr}, versioned};
  owner->managed.manager_ctx = owner;
  owner->managed.deleter = [](LegacyManaged* self) {
    auto* ended = static_cast<LegacyOwner*>(self->manager_ctx);
    ended->versioned->deleter(ended->versioned);
    delete ended;
  };
  return &owner->managed;
}

DLManagedTensorVersioned* versioned_of(LegacyManaged* legacy) {
  return new DLManagedTensorVersioned{{1, 0},
                                      legacy,
                                      [](DLManagedTensorVersioned* self) {
                                        auto* ended =
                                            static_cast<LegacyManaged*>(self->manager_ctx);
                                        if (ended->deleter) ended->deleter(ended);
                                        delete self;
                                      },
                                      0,
                                      legacy->dl_tensor};
}

// Takes the tensor out of the capsule.
DLManagedTensorVersioned* taken_from(const py::object& capsule, const std::string& where) {
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned)) {
    void* managed = PyCapsule_GetPointer(capsule.ptr(), kVersioned);
    PyCapsule_SetName(capsule.ptr(), Named<DLManagedTensorVersioned>::kUsed);
    return static_cast<DLManagedTensorVersioned*>(managed);
  }
  if (PyCapsule_IsValid(capsule.ptr(), kLegacy)) {
    void* managed = PyCapsule_GetPointer(capsule.ptr(), kLegacy);
    PyCapsule_SetName(capsule.ptr(), Named<LegacyManaged>::kUsed);
    return versioned_of(static_cast<LegacyManaged*>(managed));
  }
  invalid(cat(where, ": expected a DLPack capsule that nobody has taken yet"));
}

bool is_readable(int device_type) {
  return device_type == kDLCPU || device_type == kDLCUDAHost;
}

TensorPtr adopt(const SessionPtr& session, DLManagedTensorVersioned* managed) {
  tn_tensor* raw = nullptr;
  // Pinned memory is the CPU's like any other.
  if (is_readable(managed->dl_tensor.device.device_type)) managed->dl_tensor.device = {kDLCPU, 0};
  tn_status* failed = without_gil<PlainCall>([&]() -> tn_status* {
    if (!is_dense(managed->dl_tensor)) {
      tn_status* copied = session->tensor->copy(session->ctx(), &managed->dl_tensor, &raw);
      if (!copied) managed->deleter(managed);
      return copied;
    }
    return session->tensor->from_dlpack(session->ctx(), managed, &raw);
  });
  if (failed) managed->deleter(managed);
  session->check(failed);
  return std::make_shared<Tensor>(session, raw);
}

// With a stream the producer makes that wait for its own work. None: it does not.
py::dict export_options(int device_type,
                        std::optional<int64_t> input_stream,
                        const std::string& where) {
  py::dict options;
  if (is_readable(device_type)) return options;
  if (!input_stream) {
    invalid(cat(where, ": expected memory of the CPU, got DLPack device type ", device_type,
                ": move it to the CPU first"));
  }
  if (device_type == kDLCUDA && *input_stream == 0) {
    invalid(cat(where,
                ": lies on a GPU: compile with input_stream, the CUDA stream whose work makes ",
                "it (1: the default stream), or move it to the CPU"));
  }
  if (*input_stream != 0) options["stream"] = *input_stream;
  return options;
}

TensorPtr from_producer(const SessionPtr& session,
                        py::handle object,
                        const std::string& where,
                        std::optional<int64_t> input_stream) {
  auto device = object.attr("__dlpack_device__")().cast<std::pair<int, int>>();
  py::dict options = export_options(device.first, input_stream, where);
  py::dict versioned = options.attr("copy")();
  versioned["max_version"] = py::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  py::object capsule;
  try {
    capsule = object.attr("__dlpack__")(**versioned);
  } catch (py::error_already_set& thrown) {
    if (!thrown.matches(PyExc_TypeError)) throw;
    capsule = object.attr("__dlpack__")(**options);  // a producer from before versions
  }
  DLManagedTensorVersioned* managed = taken_from(capsule, where);
  if (!is_readable(device.first) && !is_dense(managed->dl_tensor)) {
    managed->deleter(managed);
    invalid(cat(where, ": expected dense memory on a device: make it contiguous first"));
  }
  return adopt(session, managed);
}

// What keeps a NumPy array alive while the host holds its memory.
struct ArrayOwner {
  py::object array;
  std::vector<int64_t> shape;
};

void free_array(DLManagedTensorVersioned* self) {
  auto* owner = static_cast<ArrayOwner*>(self->manager_ctx);
  delete self;
  if (!Py_IsInitialized()) return;  // the array has gone with the interpreter
  py::gil_scoped_acquire acquired;
  delete owner;
}

TensorPtr from_packed(const SessionPtr& session, const py::array& array, uint32_t dtype) {
  std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
  DLTensor proto{nullptr,
                 {kDLCPU, 0},
                 static_cast<int32_t>(shape.size()),
                 dl_dtype(dtype),
                 shape.data(),
                 nullptr,
                 0};
  tn_tensor* raw = nullptr;
  session->check(
      without_gil<PlainCall>([&] { return session->tensor->alloc(session->ctx(), &proto, &raw); }));
  auto tensor = std::make_shared<Tensor>(session, raw);
  pack(static_cast<const uint8_t*>(array.data()), reinterpret_cast<uint8_t*>(tensor->data()),
       tensor->count(), TN_DTYPE_BITS(dtype));
  return tensor;
}

TensorPtr from_array(const SessionPtr& session, py::array array, const std::string& where) {
  uint32_t dtype = dtype_of(array.dtype());
  if (dtype == TN_DTYPE_NONE) {
    invalid(cat(where, ": expected numbers or truth values, got elements of ",
                std::string(py::str(array.dtype()))));
  }
  static py::object& as_dense =
      *new py::object(py::module_::import("numpy").attr("ascontiguousarray"));
  if (array.dtype().byteorder() == '>')
    array = array.attr("astype")(array.dtype().attr("newbyteorder")("="));
  // ascontiguousarray would make a vector of a scalar.
  if (!(array.flags() & py::array::c_style) && array.ndim() > 0) array = as_dense(array);
  if (is_packed(dtype)) return from_packed(session, array, dtype);
  auto* owner = new ArrayOwner{array, {array.shape(), array.shape() + array.ndim()}};
  uint64_t flags = array.writeable() ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY;
  auto* managed = new DLManagedTensorVersioned{{1, 0},
                                               owner,
                                               free_array,
                                               flags,
                                               {const_cast<void*>(array.data()),
                                                {kDLCPU, 0},
                                                static_cast<int32_t>(array.ndim()),
                                                dl_dtype(dtype),
                                                owner->shape.data(),
                                                nullptr,
                                                0}};
  return adopt(session, managed);
}

// Whether a Python number of this kind is one of the type without a loss: what is true is 1, and
// whole numbers are floating-point ones, never the other way around.
bool is_of_kind(char kind, uint32_t wanted) {
  const uint32_t code = TN_DTYPE_CODE(wanted);
  const bool is_whole = code == kDLInt || code == kDLUInt;
  if (code == kDLBool || kind == 'b') return kind == 'b';
  return kind == 'f' ? !is_whole : kind == 'i' || kind == 'u';
}

char kind_of_number(py::handle object) {
  if (PyBool_Check(object.ptr())) return 'b';
  if (PyLong_Check(object.ptr())) return 'i';
  return PyFloat_Check(object.ptr()) ? 'f' : 0;
}

// Numbers, or lists of them, as elements of the wanted type.
py::object array_of_numbers(py::handle object, uint32_t wanted, const std::string& where) {
  static py::object& as_array = *new py::object(py::module_::import("numpy").attr("asarray"));
  const std::string type = py::str(py::type::of(object).attr("__name__"));
  try {
    if (wanted == TN_DTYPE_NONE) return as_array(object);
    if (!is_of_kind(kind_of_number(object), wanted)) {
      py::array found = as_array(object);
      const char kind = found.dtype().kind();
      if (found.size() > 0 && !is_of_kind(kind, wanted))
        invalid(cat(where, ": expected numbers that are ", dtype_name(wanted), ", got ",
                    kind == 'O' ? type : std::string(py::str(found.dtype())),
                    "; convert them first"));
    }
    return as_array(object, py::arg("dtype") = numpy_dtype(wanted));
  } catch (py::error_already_set& thrown) {
    if (thrown.matches(PyExc_KeyboardInterrupt)) throw;
    invalid(cat(where, ": ", std::string(py::str(thrown.value()))));
  }
}

}  // namespace

void refuse_mask(py::handle array) {
  static py::object& plain = *new py::object(py::module_::import("numpy").attr("ndarray"));
  if (py::type::handle_of(array).is(plain) || !py::hasattr(array, "mask")) return;
  throw py::type_error(
      "expected an array without a mask, which would be lost; use .filled(...), or the mask as an "
      "array of its own");
}

TensorPtr tensor_from(const SessionPtr& session,
                      py::handle object,
                      const std::string& where,
                      uint32_t wanted,
                      std::optional<int64_t> input_stream) {
  if (py::isinstance<py::array>(object)) refuse_mask(object);
  if (py::isinstance<py::array>(object))
    return from_array(session, py::reinterpret_borrow<py::array>(object), where);
  if (py::isinstance<Tensor>(object)) return object.cast<TensorPtr>();
  if (py::hasattr(object, "__dlpack__")) {
    return from_producer(session, object, where, input_stream);
  }
  static py::object& as_array = *new py::object(py::module_::import("numpy").attr("asarray"));
  bool has_type = py::hasattr(object, "dtype");  // NumPy's scalars
  return from_array(session, has_type ? as_array(object) : array_of_numbers(object, wanted, where),
                    where);
}

py::capsule to_dlpack(const TensorPtr& tensor, std::optional<std::pair<int, int>> max_version) {
  DLManagedTensorVersioned* managed = nullptr;
  const SessionPtr& session = tensor->session();
  session->check(session->tensor->to_dlpack(tensor->raw(), &managed));
  if (max_version && max_version->first >= 1) return capsule_of(managed);
  return capsule_of(legacy_of(managed));
}

}  // namespace tenon::python
