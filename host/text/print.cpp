// SPDX-License-Identifier: Apache-2.0
// The canonical text of a graph: equal graphs print equal bytes. Grammar: host/README.md.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "graph/edit.hpp"
#include "text/text.hpp"

namespace tenon::host {
namespace {

bool plain_name(std::string_view name) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./-").find(c) != std::string_view::npos;
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), allowed);
}

std::string name_text(std::string_view name) {
  return plain_name(name) ? std::string(name) : in_quotes(name);
}

std::string operator_text(std::string_view domain, std::string_view type) {
  return domain.empty() ? name_text(type) : cat(name_text(domain), ":", name_text(type));
}

template <class T>
std::string float_text(T value) {
  char text[64];
  char* end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string out(text, end);
  if (out.find_first_of(".einf") == out.npos) out += ".0";
  return std::isnan(value) ? "nan" : out;
}

template <class T>
bool append_numbers(std::string& out, const char* data, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(value)) return false;  // which NaN it is would be lost
      out += (i ? ", " : "") + float_text(value);
    } else {
      out += (i ? ", " : "") + std::to_string(value);
    }
  }
  return true;
}

struct Printer {
  uint32_t dtype;
  bool (*append)(std::string&, const char*, uint64_t);
};
constexpr Printer kPrinters[] = {
    {TN_F32, append_numbers<float>},    {TN_F64, append_numbers<double>},
    {TN_I8, append_numbers<int8_t>},    {TN_I16, append_numbers<int16_t>},
    {TN_I32, append_numbers<int32_t>},  {TN_I64, append_numbers<int64_t>},
    {TN_U8, append_numbers<uint8_t>},   {TN_U16, append_numbers<uint16_t>},
    {TN_U32, append_numbers<uint32_t>}, {TN_U64, append_numbers<uint64_t>},
};

// Four independent lanes of multiply and rotate over 64-bit words, so that hundreds of megabytes
// of weights hash at memory speed. Not for security.
uint64_t hash_bytes(const char* data, uint64_t n) {
  constexpr uint64_t kPrime = 0x9e3779b97f4a7c15u;
  uint64_t lanes[4] = {n, n ^ kPrime, ~n, n * kPrime};
  auto mix = [](uint64_t lane, uint64_t word) { return std::rotl((lane ^ word) * kPrime, 29); };
  uint64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    uint64_t words[4];
    std::memcpy(words, data + i, 32);
    for (int lane = 0; lane < 4; ++lane)
      lanes[lane] = mix(lanes[lane], words[lane]);
  }
  for (; i < n; ++i)
    lanes[i % 4] = mix(lanes[i % 4], static_cast<unsigned char>(data[i]));
  uint64_t all = 0;
  for (uint64_t lane : lanes)
    all = mix(all, lane) ^ (all >> 31);
  return all;
}

std::string hex(uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::string hex_bytes(const char* data, uint64_t n) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * n);
  for (uint64_t i = 0; i < n; ++i) {
    auto byte = static_cast<unsigned char>(data[i]);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

// "[1, 2]", "x'00ff'", or "hash'...'" for large ones without their data.
std::string data_text(const tn_tensor& tensor, bool with_data) {
  if (tensor.dl.device.device_type != kDLCPU) return "elsewhere";
  std::vector<char> dense;
  const char* data = tensor.data();
  if (!tensor.dense) {
    dense.resize(tensor.bytes);
    if (!copy_dense(tensor.dl, dense.data()).ok()) return "elsewhere";
    data = dense.data();
  }
  uint64_t n = 1;
  for (int64_t size : tensor.shape())
    n *= static_cast<uint64_t>(size);
  if (n <= kFewElements) {
    for (const Printer& printer : kPrinters) {
      std::string out = "[";
      if (printer.dtype == tensor.dtype() && printer.append(out, data, n)) return out + "]";
    }
  } else if (!with_data) {
    return cat("hash'", hex(hash_bytes(data, tensor.bytes)), "'");
  }
  return cat("x'", hex_bytes(data, tensor.bytes), "'");
}

Type tensor_type(const tn_tensor& tensor) {
  auto shape = tensor.shape();
  return {tensor.dtype(), {shape.begin(), shape.end()}};
}

class Writer {
 public:
  Writer(const tn_graph& graph, bool with_data, std::string indent, std::string& out)
      : t_(*graph.tables), with_data_(with_data), indent_(std::move(indent)), out_(out) {}

  void graph() {
    out_ += "graph {\n";
    for (tn_value_id id : t_.inputs)
      line("input ", typed(id));
    for (tn_value_id id : t_.constants)
      line("constant ", typed(id), " = ", data_text(*value(id).constant.get(), with_data_));
    for (const Function& function : t_.functions) {
      line_begin("function ", operator_text(function.domain, function.type), " = ");
      body(*function.body);
      if (function.vjp) {
        out_ += " vjp ";
        body(*function.vjp);
      }
      out_ += '\n';
    }
    for (tn_node_id id : t_.order)
      node(*t_.nodes.find(id));
    for (const Output& output : t_.outputs)
      line("output ", name_text(*output.name), " = ", name(output.value));
    for (auto [input, output] : t_.states)
      line("state ", name(input), " -> ", name(output));
    notes();
    out_ += indent_ + "}";
  }

 private:
  const Value& value(tn_value_id id) const { return *t_.values.find(id); }
  std::string name(tn_value_id id) const {
    const Value* found = t_.values.find(id);
    return found ? "%" + name_text(*found->name) : "_";
  }
  std::string typed(tn_value_id id) const {
    return cat(name(id), ": ", type_text(*value(id).type));
  }

  template <class... Parts>
  void line_begin(const Parts&... parts) {
    out_ += indent_ + "  ";
    if constexpr (sizeof...(parts) > 0) out_ += cat(parts...);
  }
  template <class... Parts>
  void line(const Parts&... parts) {
    line_begin(parts...);
    out_ += '\n';
  }

  void body(const tn_graph& graph) { Writer(graph, with_data_, indent_ + "  ", out_).graph(); }

  void node(const Node& node) {
    line_begin();
    for (size_t i = 0; i < node.outputs.size(); ++i)
      out_ += (i ? ", " : "") + typed(node.outputs[i]);
    out_ += node.outputs.empty() ? "= " : " = ";
    out_ += operator_text(node.domain, node.type) + "(";
    for (size_t i = 0; i < node.inputs.size(); ++i)
      out_ += (i ? ", " : "") + name(node.inputs[i]);
    out_ += ")";
    if (!node.attrs.empty()) {
      out_ += " {";
      for (size_t i = 0; i < node.attrs.size(); ++i) {
        out_ += (i ? ", " : "") + name_text(node.attrs[i].name) + " = ";
        any(node.attrs[i].value->get());
      }
      out_ += "}";
    }
    out_ += " @" + name_text(*node.name);
    if (!node.scope->empty()) out_ += " in " + in_quotes(*node.scope);
    out_ += '\n';
  }

  template <class T, class Print>
  void list(std::string_view word, const tn_any& any, Print print) {
    out_ += cat(word, "[");
    for (uint64_t i = 0; i < any.len; ++i)
      out_ += (i ? ", " : "") + print(static_cast<const T*>(any.v.p)[i]);
    out_ += "]";
  }

  void any(const tn_any& any) {
    switch (any.tag) {
      case TN_ANY_I64:
        out_ += std::to_string(any.v.i);
        break;
      case TN_ANY_F64:
        out_ += float_text(any.v.f);
        break;
      case TN_ANY_BOOL:
        out_ += any.v.i ? "true" : "false";
        break;
      case TN_ANY_TEXT:
        out_ += in_quotes({static_cast<const char*>(any.v.p), static_cast<size_t>(any.len)});
        break;
      case TN_ANY_I64S:
        list<int64_t>("ints", any, [](int64_t item) { return std::to_string(item); });
        break;
      case TN_ANY_F64S:
        list<double>("floats", any, float_text<double>);
        break;
      case TN_ANY_TEXTS:
        list<tn_str>("texts", any, [](tn_str item) { return in_quotes(view(item)); });
        break;
      case TN_ANY_DTYPE:
        out_ += "dtype " + dtype_text(static_cast<uint32_t>(any.v.u));
        break;
      case TN_ANY_TENSOR: {
        const auto& tensor = *static_cast<const tn_tensor*>(any.v.p);
        out_ +=
            cat("tensor ", type_text(tensor_type(tensor)), " = ", data_text(tensor, with_data_));
        break;
      }
      case TN_ANY_GRAPH:
        body(*graph_in(any));
        break;
    }
  }

  void note_lines(std::string_view subject, const NamedAnys& list) {
    for (const NamedAny& note : list) {
      line_begin("note ", subject, name_text(note.name), " = ");
      any(note.value->get());
      out_ += '\n';
    }
  }
  void notes() {
    note_lines("", t_.notes);
    auto of_value = [&](tn_value_id id) { note_lines(name(id) + " ", value(id).notes); };
    for (tn_value_id id : t_.inputs)
      of_value(id);
    for (tn_value_id id : t_.constants)
      of_value(id);
    for (tn_node_id id : t_.order) {
      const Node& node = *t_.nodes.find(id);
      note_lines("@" + name_text(*node.name) + " ", node.notes);
      for (tn_value_id output : node.outputs)
        of_value(output);
    }
  }

  const Tables& t_;
  bool with_data_;
  std::string indent_;
  std::string& out_;
};

}  // namespace

std::string print_text(const tn_graph& graph, bool with_data) {
  std::string out;
  Writer(graph, with_data, "", out).graph();
  out += '\n';
  return out;
}

}  // namespace tenon::host
