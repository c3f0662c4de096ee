// SPDX-License-Identifier: Apache-2.0
#include "input_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "tenon/convert.hpp"
#include "tenon/cxx/arrays.hpp"

namespace tenon::command {
namespace {

using cxx::NamedArray;
using cxx::Port;
using cxx::Tensor;

void note(const SessionPtr& session, const std::string& text) {
  session->log->write(session->ctx(), TN_LOG_INFO, cxx::str(text));
}

bool fits_shape(const Port& port, const Tensor& tensor) {
  if (!port.ranked) return true;
  std::span<const int64_t> shape = tensor.shape();
  bool fits = shape.size() == port.dims.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = port.dims[i] < 0 || port.dims[i] == shape[i];
  return fits;
}

template <class To, class From>
void set_whole_from(const Tensor& to, int64_t i, const Tensor& from, const std::string& what) {
  const From number = static_cast<const From*>(from.data())[i];
  if (!std::in_range<To>(number))
    cxx::invalid(cat(what, ": expected numbers that ", cxx::dtype_name(to.dtype()),
                     " can hold, got ", std::to_string(number)));
  static_cast<To*>(to.data())[i] = static_cast<To>(number);
}

// Element i of integers, exactly.
void set_whole(const Tensor& to, int64_t i, const Tensor& from, const std::string& what) {
  auto set = [&]<class From>(From) {
    to.dtype() == TN_I32 ? set_whole_from<int32_t, From>(to, i, from, what)
                         : set_whole_from<int64_t, From>(to, i, from, what);
  };
  switch (from.dtype()) {
    case TN_I8:
      return set(int8_t{});
    case TN_I16:
      return set(int16_t{});
    case TN_I32:
      return set(int32_t{});
    case TN_I64:
      return set(int64_t{});
    case TN_U16:
      return set(uint16_t{});
    case TN_U32:
      return set(uint32_t{});
    case TN_U64:
      return set(uint64_t{});
    default:
      return set(uint8_t{});  // also of truth values
  }
}

void set_real(Tensor& to, int64_t i, double number, const std::string& what) {
  to.set(i, number);
  if (std::isinf(to.at(i)) && !std::isinf(number))
    cxx::invalid(cat(what, ": expected numbers that ", cxx::dtype_name(to.dtype()),
                     " can hold, got ", number));
}

// The tensor as the port's type; unchanged where it has it already, or cannot get it.
Tensor converted(const SessionPtr& session,
                 const Port& port,
                 const Tensor& tensor,
                 const std::string& what) {
  const uint32_t from = tensor.dtype(), to = port.dtype;
  const bool is_wanted = from != to && is_convertible(from, to);
  if (!is_wanted || !fits_shape(port, tensor)) return tensor;
  std::span<const int64_t> shape = tensor.shape();
  Tensor out = Tensor::zeros(session, to, {shape.begin(), shape.end()});
  for (int64_t i = 0; i < tensor.size(); ++i)
    is_whole(to) ? set_whole(out, i, tensor, what) : set_real(out, i, tensor.at(i), what);
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
    auto [name, file] = split_input(model_, text);
    taken(name);
    inputs_.set(name, read_input(model_, name, file));
  }

  void all_of(const std::string& file) {
    for (NamedArray& array : cxx::read_arrays(session_, file)) {
      const Port* port = find(array.name);
      if (!port) {
        others_.push_back(std::move(array));
        continue;
      }
      taken(array.name);
      set(*port, array);
    }
  }

  // When all files are read: only then is it known which inputs have no array by their name.
  cxx::NamedInputs done() {
    while (takes_one_by_shape()) {
    }
    std::string left;
    for (const NamedArray& one : others_)
      left += cat(left.empty() ? "" : ", ", one.name);
    if (!left.empty()) note(session_, cat("left alone, as no input has its name: ", left));
    return std::move(inputs_);
  }

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

  static bool fits(const Port& port, const NamedArray& one, bool is_exact) {
    const uint32_t from = one.tensor.dtype();
    const bool is_type = from == port.dtype || (!is_exact && is_convertible(from, port.dtype));
    return port.ranked && is_type && fits_shape(port, one.tensor);
  }

  // An input without an array and the one that fits it, if each fits no other; those of its own
  // type come first.
  bool takes_one_by_shape() { return takes_one(true) || takes_one(false); }
  bool takes_one(bool is_exact) {
    const std::vector<Port>& ports = inputs_.ports();
    for (size_t i = 0; i < ports.size(); ++i) {
      if (inputs_.has(i)) continue;
      auto is_for = [&](const NamedArray& one) { return fits(ports[i], one, is_exact); };
      if (std::count_if(others_.begin(), others_.end(), is_for) != 1) continue;
      auto found = std::find_if(others_.begin(), others_.end(), is_for);
      int64_t n_takers = 0;
      for (size_t k = 0; k < ports.size(); ++k)
        n_takers += !inputs_.has(k) && fits(ports[k], *found, is_exact) ? 1 : 0;
      if (n_takers != 1) continue;
      note(session_, cat("array ", found->name, " is taken for input ", ports[i].name,
                         ": no other fits its type and shape"));
      set(ports[i], *found);
      others_.erase(found);
      return true;
    }
    return false;
  }

  const cxx::Model& model_;
  SessionPtr session_;
  cxx::NamedInputs inputs_;
  std::set<std::string> names_;
  std::vector<NamedArray> others_;  // of names that no input has
};

}  // namespace

std::pair<std::string, std::string> split_input(const cxx::Model& model, const std::string& text) {
  for (const Port& port : model.inputs())
    if (text.size() > port.name.size() && text.starts_with(port.name) &&
        text[port.name.size()] == '=' && !port.name.empty())
      return {port.name, text.substr(port.name.size() + 1)};
  return split_pair(text, "--input");
}

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
