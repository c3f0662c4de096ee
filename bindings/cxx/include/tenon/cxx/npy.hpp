// SPDX-License-Identifier: Apache-2.0
#pragma once
// NumPy's .npy, by the format description in NumPy's documentation (numpy.lib.format): "\x93NUMPY",
// two version bytes, the header's length, a Python dictionary as text, then the elements.
// Arrays of Python objects are pickles, which can run code: they are refused.

#include <charconv>
#include <optional>

#include "tenon/cxx/file.hpp"
#include "tenon/cxx/tensor.hpp"

namespace tenon::cxx::npy {

using Bytes = std::span<const unsigned char>;

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t data_begin = 0;
};

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and nothing more general.
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Header read() {
    Header header;
    bool seen[3] = {};
    expect('{');
    while (!take('}')) {
      std::string key = quoted();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') bad("an array of one element type", "a structured array");
        header.descr = quoted();
        seen[0] = true;
      } else if (key == "fortran_order") {
        header.fortran_order = word();
        seen[1] = true;
      } else if (key == "shape") {
        header.shape = tuple();
        seen[2] = true;
      } else {
        bad("descr, fortran_order or shape", key);
      }
      take(',');
    }
    if (!seen[0] || !seen[1] || !seen[2]) bad("descr, fortran_order and shape", text_);
    return header;
  }

 private:
  [[noreturn]] void bad(std::string_view expected, std::string_view got) {
    throw Error(TN_DATA_LOSS,
                cat(where_, ": npy header: expected ", expected, ", got ", got.substr(0, 60)));
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) bad(std::string(1, wanted), cat("'", text_.substr(at_, 20), "'"));
  }
  std::string quoted() {
    char quote = peek();
    if (quote != '\'' && quote != '"') bad("a quoted text", cat("'", text_.substr(at_, 20), "'"));
    size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) bad("a closing quote", "the end");
    std::string found(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return found;
  }
  bool word() {
    peek();
    for (std::string_view name : {"True", "False"}) {
      if (text_.substr(at_).starts_with(name)) {
        at_ += name.size();
        return name == "True";
      }
    }
    bad("True or False", cat("'", text_.substr(at_, 20), "'"));
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> dims;
    expect('(');
    while (!take(')')) {
      peek();
      int64_t dim = -1;
      auto [end, failed] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (failed != std::errc() || dim < 0) bad("a size", cat("'", text_.substr(at_, 20), "'"));
      at_ = static_cast<size_t>(end - text_.data());
      dims.push_back(dim);
      if (!take(',') && peek() != ')') bad("',' or ')'", text_.substr(at_, 20));
    }
    return dims;
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

inline Header read_header(Bytes file, const std::string& where) {
  auto broken = [&](const std::string& what) { throw Error(TN_DATA_LOSS, cat(where, ": ", what)); };
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with("\x93NUMPY")) {
    if (text.starts_with("\x80")) broken("expected an npy file, got a pickle, which is not read");
    broken("expected an npy file, got something else (its first bytes are not \\x93NUMPY)");
  }
  if (file.size() < 12) broken(cat("truncated: expected a header, got ", file.size(), " bytes"));
  int major = file[6];
  if (major < 1 || major > 3) broken(cat("expected npy version 1, 2 or 3, got ", major));
  size_t length_bytes = major == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    length |= size_t{file[8 + i]} << (8 * i);
  size_t begin = 8 + length_bytes;
  if (length > file.size() - begin) {
    broken(cat("truncated: expected a header of ", length, " bytes, got ", file.size() - begin));
  }
  Header header = HeaderText(text.substr(begin, length), where).read();
  header.data_begin = begin + length;
  return header;
}

struct Element {
  uint32_t dtype;
  size_t bytes;
  bool swapped;  // most significant byte first
};

inline Element element_of(const std::string& descr, const std::string& where) {
  auto refuse = [&](std::string_view got) {
    throw Error(TN_UNIMPLEMENTED, cat(where, ": expected numbers or booleans, got ", got));
  };
  if (descr.find('O') != std::string::npos) refuse("Python objects (a pickle), which are not read");
  if (descr == "bfloat16") return {TN_BF16, 2, false};
  if (descr.size() < 3) refuse(cat("elements '", descr, "'"));
  static constexpr struct {
    std::string_view name;
    uint32_t dtype;
  } kTypes[] = {{"f4", TN_F32}, {"f8", TN_F64}, {"f2", TN_F16}, {"b1", TN_BOOL},
                {"i1", TN_I8},  {"i2", TN_I16}, {"i4", TN_I32}, {"i8", TN_I64},
                {"u1", TN_U8},  {"u2", TN_U16}, {"u4", TN_U32}, {"u8", TN_U64}};
  for (const auto& row : kTypes) {
    if (std::string_view(descr).substr(1) == row.name) {
      return {row.dtype, TN_DTYPE_BITS(row.dtype) / 8u, descr[0] == '>'};
    }
  }
  refuse(cat("elements '", descr, "'"));
  return {};
}

// Where element i of row-major order lies among the `count` elements of column-major order.
inline uint64_t fortran_place(const std::vector<int64_t>& shape, uint64_t i, uint64_t count) {
  uint64_t place = 0, stride = count;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const auto extent = static_cast<uint64_t>(shape[axis]);
    stride /= extent;
    place += i % extent * stride;
    i /= extent;
  }
  return place;
}

// Copies elements into row-major order of least significant byte first.
inline void unpack(Bytes from, const Header& header, const Element& element, char* to) {
  const uint64_t count = from.size() / element.bytes;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t source = header.fortran_order ? fortran_place(header.shape, i, count) : i;
    for (size_t b = 0; b < element.bytes; ++b)
      *to++ = static_cast<char>(
          from[source * element.bytes + (element.swapped ? element.bytes - 1 - b : b)]);
  }
}

inline Tensor parse(const SessionPtr& session, Bytes file, const std::string& where) {
  Header header = read_header(file, where);
  Element element = element_of(header.descr, where);
  const uint64_t there = file.size() - header.data_begin;
  uint64_t wanted = element.bytes;
  for (int64_t dim : header.shape) {
    if (__builtin_mul_overflow(wanted, static_cast<uint64_t>(dim), &wanted)) wanted = UINT64_MAX;
    if (wanted == UINT64_MAX) break;
  }
  // Before anything is allocated: a header may claim any size.
  if (wanted > there) {
    throw Error(TN_DATA_LOSS,
                cat(where, ": truncated: expected ", wanted, " bytes of elements of ",
                    dtype_name(element.dtype), shape_text(header.shape), ", got ", there));
  }
  Tensor tensor = Tensor::zeros(session, element.dtype, header.shape);
  Bytes data = file.subspan(header.data_begin, wanted);
  if (!header.fortran_order && !element.swapped) {
    if (wanted) std::memcpy(tensor.data(), data.data(), wanted);
  } else {
    unpack(data, header, element, static_cast<char*>(tensor.data()));
  }
  return tensor;
}

inline Tensor read(const SessionPtr& session, const std::string& path) {
  MappedFile file(session, path);
  return parse(session, file.bytes(), path);
}

// The header for a dense tensor; elements start at a multiple of 64 bytes.
inline std::string header_text(const Tensor& tensor) {
  uint32_t dtype = tensor.dtype();
  char kind = dtype == TN_BOOL                  ? 'b'
              : TN_DTYPE_CODE(dtype) == kDLInt  ? 'i'
              : TN_DTYPE_CODE(dtype) == kDLUInt ? 'u'
                                                : 'f';
  // NumPy has no bfloat16 of its own: its values are exact in float32.
  uint32_t bits = dtype == TN_BF16 ? 32u : TN_DTYPE_BITS(dtype);
  if (bits < 8) invalid(cat("npy: expected elements of whole bytes, got ", tensor.text()));
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
inline std::string encode(const Tensor& tensor) {
  std::string out = header_text(tensor);
  const size_t head = out.size();
  if (tensor.dtype() == TN_BF16) {
    out.resize(head + static_cast<size_t>(tensor.size()) * 4);
    for (int64_t i = 0; i < tensor.size(); ++i)
      store_number(out.data() + head, TN_F32, i, tensor.at(i));
  } else {
    out.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  }
  return out;
}

inline void write(const Tensor& tensor, const std::string& path) {
  write_file(tensor.session(), path, encode(tensor));
}

}  // namespace tenon::cxx::npy
