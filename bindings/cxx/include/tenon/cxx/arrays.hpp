// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's files: read by plugin datasets, whose reader makes a graph of constants of them; arrays
// are written here, as .npy ("\x93NUMPY", two version bytes, the header's length, a Python
// dictionary as text, then the elements; numpy.lib.format).

#include "tenon/cxx/file.hpp"
#include "tenon/cxx/model.hpp"

namespace tenon::cxx {

struct NamedArray {
  std::string name;
  Tensor tensor;
};

// All arrays of an .npz file, or the one of an .npy file.
inline std::vector<NamedArray> read_arrays(const SessionPtr& session, const std::string& path) {
  Model model = Model::load(session, path, {{"format", "numpy"}});
  const tn_host_graph& graphs = model.services();
  std::vector<NamedArray> arrays;
  for (uint64_t i = 0; i < graphs.count(model.get(), TN_LIST_OUTPUTS); ++i) {
    tn_value_id value = graphs.value_at(model.get(), TN_LIST_OUTPUTS, i, 0);
    tn_tensor* raw = graphs.constant(model.get(), value);
    session->tensor->retain(raw);
    arrays.push_back({std::string(view(graphs.io_name(model.get(), TN_LIST_OUTPUTS, i))),
                      Tensor::take(session, raw)});
  }
  return arrays;
}
inline Tensor read_array(const SessionPtr& session, const std::string& path) {
  std::vector<NamedArray> arrays = read_arrays(session, path);
  if (arrays.size() != 1)
    invalid(cat(path, ": expected an npy file, or one array, got ", arrays.size()));
  return arrays[0].tensor;
}

// The type of NumPy's own that holds all numbers of this one.
constexpr uint32_t npy_dtype(uint32_t dtype) {
  if (dtype == TN_BF16 || minifloat(dtype)) return TN_F32;
  if (TN_DTYPE_BITS(dtype) >= 8) return dtype;
  return TN_DTYPE_CODE(dtype) == kDLUInt ? TN_U8 : TN_I8;
}

// The header for a dense tensor; elements start at a multiple of 64 bytes.
inline std::string npy_header(const Tensor& tensor) {
  uint32_t dtype = npy_dtype(tensor.dtype());
  char kind = dtype == TN_BOOL                     ? 'b'
              : TN_DTYPE_CODE(dtype) == kDLInt     ? 'i'
              : TN_DTYPE_CODE(dtype) == kDLUInt    ? 'u'
              : TN_DTYPE_CODE(dtype) == kDLComplex ? 'c'
                                                   : 'f';
  uint32_t bits = TN_DTYPE_BITS(dtype);
  std::string shape = shape_text(tensor.shape());
  shape = shape.substr(1, shape.size() - 2) + (tensor.shape().size() == 1 ? "," : "");
  std::string dict = cat("{'descr': '", bits == 8 ? "|" : "<", std::string(1, kind), bits / 8,
                         "', 'fortran_order': False, 'shape': (", shape, "), }");
  dict.append(63 - (10 + dict.size()) % 64, ' ');
  dict += '\n';
  std::string head = "\x93NUMPY";
  head += '\x01';
  head += '\0';
  head += static_cast<char>(dict.size() & 0xff);
  head += static_cast<char>(dict.size() >> 8);
  return head + dict;
}

// All bytes of the .npy file.
inline std::string npy_bytes(const Tensor& tensor) {
  std::string out = npy_header(tensor);
  const size_t head = out.size();
  if (const uint32_t dtype = npy_dtype(tensor.dtype()); dtype != tensor.dtype()) {
    out.resize(head + static_cast<size_t>(tensor.size()) * (TN_DTYPE_BITS(dtype) / 8));
    for (int64_t i = 0; i < tensor.size(); ++i)
      store_number(out.data() + head, dtype, i, tensor.at(i));
  } else {
    out.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  }
  return out;
}

}  // namespace tenon::cxx
