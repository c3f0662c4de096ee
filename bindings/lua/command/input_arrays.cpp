// SPDX-License-Identifier: Apache-2.0
#include "input_arrays.hpp"

#include <set>

#include "tenon/cxx/arrays.hpp"

namespace tenon::command {
namespace {

using cxx::NamedArray;
using cxx::Port;
using cxx::Tensor;

void note(const SessionPtr& session, const std::string& text) {
  session->log->write(session->ctx(), TN_LOG_INFO, cxx::str(text));
}

bool is_whole(uint32_t dtype) {
  const uint32_t code = TN_DTYPE_CODE(dtype);
  return code == kDLInt || code == kDLUInt || code == kDLBool;
}

// As for the fields of data sets (sdk/convert.hpp): to floats, and integers to wider ones.
bool is_convertible(uint32_t from, uint32_t to) {
  if (TN_DTYPE_BITS(from) < 8 || !(is_whole(from) || cxx::is_float(from))) return false;
  return to == TN_F32 || to == TN_F64 || (is_whole(from) && (to == TN_I32 || to == TN_I64));
}

bool fits_shape(const Port& port, const Tensor& tensor) {
  if (!port.ranked) return true;
  std::span<const int64_t> shape = tensor.shape();
  bool fits = shape.size() == port.dims.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = port.dims[i] < 0 || port.dims[i] == shape[i];
  return fits;
}

// The tensor as the port's type; unchanged where it has it already, or cannot get it.
Tensor converted(const SessionPtr& session,
                 const Port& port,
                 const Tensor& tensor,
                 const std::string& what) {
  const uint32_t from = tensor.dtype(), to = port.dtype;
  const bool is_wanted = from != to && to != TN_DTYPE_NONE && is_convertible(from, to);
  if (!is_wanted || !fits_shape(port, tensor)) return tensor;
  std::span<const int64_t> shape = tensor.shape();
  Tensor out = Tensor::zeros(session, to, {shape.begin(), shape.end()});
  for (int64_t i = 0; i < tensor.size(); ++i)
    out.set(i, tensor.at(i));
  const bool is_byte = from == TN_U8 && cxx::is_float(to);
  note(session, cat(what, ": ", cxx::dtype_name(from), " is converted to ", cxx::dtype_name(to),
                    is_byte ? ", values of 0 to 255 as they are" : ""));
  return out;
}

class Reading {
 public:
  explicit Reading(const cxx::Model& model)
      : model_(model), session_(model.session()), inputs_(model) {}

  void pair(const std::string& text) {
    auto [name, file] = split_pair(text, "--input");
    taken(name);
    inputs_.set(name, read_input(model_, name, file));
  }

  void all_of(const std::string& file) {
    std::vector<NamedArray> arrays = cxx::read_arrays(session_, file);
    std::vector<NamedArray> others;
    for (NamedArray& array : arrays) {
      const Port* port = find(array.name);
      if (!port) {
        others.push_back(std::move(array));
        continue;
      }
      taken(array.name);
      set(*port, array);
    }
    by_shape(&others);
    std::string left;
    for (const NamedArray& one : others)
      left += cat(left.empty() ? "" : ", ", one.name);
    if (!left.empty()) note(session_, cat(file, ": left alone, as no input has its name: ", left));
  }

  cxx::NamedInputs done() { return std::move(inputs_); }

 private:
  const Port* find(const std::string& name) const {
    for (const Port& port : inputs_.ports())
      if (port.name == name) return &port;
    return nullptr;
  }

  void taken(const std::string& name) {
    if (!names_.insert(name).second) throw UsageError(cat("--input ", name, ": given twice"));
  }

  void set(const Port& port, const NamedArray& array) {
    inputs_.set(port.name, converted(session_, port, array.tensor, cat("array ", array.name)));
  }

  // Inputs that are left get the one array that fits; of two nothing is known.
  void by_shape(std::vector<NamedArray>* others) {
    for (size_t i = 0; i < inputs_.ports().size(); ++i) {
      const Port& port = inputs_.ports()[i];
      if (inputs_.has(i)) continue;
      auto fits = [&](const NamedArray& one) {
        const uint32_t from = one.tensor.dtype();
        const bool is_type = from == port.dtype || is_convertible(from, port.dtype);
        return port.ranked && is_type && fits_shape(port, one.tensor);
      };
      auto found = std::find_if(others->begin(), others->end(), fits);
      if (found == others->end() || std::find_if(found + 1, others->end(), fits) != others->end())
        continue;
      note(session_, cat("array ", found->name, " is taken for input ", port.name,
                         ": no other fits its type and shape"));
      set(port, *found);
      names_.insert(port.name);
      others->erase(found);
    }
  }

  const cxx::Model& model_;
  SessionPtr session_;
  cxx::NamedInputs inputs_;
  std::set<std::string> names_;
};

}  // namespace

Tensor read_input(const cxx::Model& model, const std::string& name, const std::string& file) {
  Tensor tensor = cxx::read_array(model.session(), file);
  for (const Port& port : model.inputs())
    if (port.name == name) return converted(model.session(), port, tensor, cat("input ", name));
  return tensor;
}

cxx::NamedInputs read_inputs(const cxx::Model& model, const std::vector<std::string>& texts) {
  Reading reading(model);
  for (const std::string& text : texts) {
    if (text.find('=') == std::string::npos && text.ends_with(".npz"))
      reading.all_of(text);
    else
      reading.pair(text);
  }
  return reading.done();
}

}  // namespace tenon::command
