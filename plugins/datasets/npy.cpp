// SPDX-License-Identifier: Apache-2.0
#include "npy.hpp"

#include <algorithm>
#include <charconv>

#include "file.hpp"

namespace tenon::datasets {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Code {
  std::string_view text;  // behind the mark of the byte order
  uint32_t dtype;
};
constexpr Code kCodes[] = {
    {"f2", TN_F16}, {"f4", TN_F32}, {"f8", TN_F64}, {"b1", TN_BOOL}, {"i1", TN_I8},  {"i2", TN_I16},
    {"i4", TN_I32}, {"i8", TN_I64}, {"u1", TN_U8},  {"u2", TN_U16},  {"u4", TN_U32}, {"u8", TN_U64},
};

std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \n") - first + 1);
}

// What follows 'key': in the header's Python dictionary.
std::string_view after_key(std::string_view header, std::string_view key) {
  size_t at = header.find(cat("'", key, "'"));
  if (at == std::string_view::npos) return {};
  std::string_view rest = trimmed(header.substr(at + key.size() + 2));
  if (rest.empty() || rest[0] != ':') return {};
  return trimmed(rest.substr(1));
}

// What is no array of numbers is UNIMPLEMENTED: others of the same archive can be read.
Status read_dtype(std::string_view header, const std::string& who, NpyArray* out) {
  std::string_view text = after_key(header, "descr");
  if (text.empty()) return invalid(who + ": npy header has no descr");
  if (text[0] == '[') return unsupported(who + ": a record array, expected one element type");
  size_t end = text.find('\'', 1);
  if (text[0] != '\'' || end == std::string_view::npos)
    return invalid(who + ": npy header: descr is no text");
  std::string_view code = text.substr(1, end - 1);
  out->swapped = code.starts_with('>');
  for (const Code& known : kCodes)
    if (code.substr(std::min<size_t>(1, code.size())) == known.text) out->dtype = known.dtype;
  if (code == "bfloat16") out->dtype = TN_BF16;
  if (out->dtype != TN_DTYPE_NONE) return {};
  if (code.find('O') != std::string_view::npos)
    return unsupported(who +
                       ": holds pickled Python objects, which are never loaded; save it with a "
                       "numeric dtype");
  return unsupported(cat(who, ": expected a float, int, uint or bool dtype, got ", code));
}

Result<std::vector<int64_t>> read_shape(std::string_view header, const std::string& who) {
  std::string_view text = after_key(header, "shape");
  size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string_view::npos)
    return invalid(who + ": npy header: no shape");
  std::vector<int64_t> shape;
  text = text.substr(1, end - 1);
  while (!trimmed(text).empty()) {
    text = trimmed(text);
    int64_t dim = -1;
    auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), dim);
    text.remove_prefix(static_cast<size_t>(stop - text.data()));
    text = trimmed(text);
    bool at_comma = !text.empty() && text[0] == ',';
    if (code != std::errc() || dim < 0 || !(text.empty() || at_comma))
      return invalid(who + ": npy header: broken shape");
    shape.push_back(dim);
    if (at_comma) text.remove_prefix(1);
  }
  return shape;
}

}  // namespace

bool looks_like_npy(std::string_view bytes) {
  return bytes.substr(0, kMagic.size()) == kMagic;
}

Result<NpyArray> parse_npy(std::string_view bytes, const std::string& who) {
  if (!looks_like_npy(bytes)) return invalid(who + ": no npy array (its first bytes differ)");
  if (bytes.size() < 12) return invalid(who + ": truncated npy header");
  uint8_t major = static_cast<uint8_t>(bytes[6]);
  if (major < 1 || major > 3)
    return invalid(cat(who, ": expected npy version 1 to 3, got ", int{major}));
  uint64_t start = major == 1 ? 10 : 12;
  uint64_t length = major == 1 ? little<uint16_t>(bytes, 8) : little<uint32_t>(bytes, 8);
  if (!holds(bytes, start, length)) return invalid(who + ": truncated npy header");
  std::string_view header = bytes.substr(start, length);
  NpyArray out;
  TN_CHECK(read_dtype(header, who, &out));
  TN_TRY(shape, read_shape(header, who));
  out.shape = shape;
  out.fortran = after_key(header, "fortran_order").substr(0, 4) == "True";
  // Without its zeros too: strides and the size of a sample are made of the other extents.
  auto need = static_cast<int64_t>(TN_DTYPE_BITS(out.dtype) / 8);
  for (int64_t dim : out.shape)
    if (__builtin_mul_overflow(need, std::max<int64_t>(dim, 1), &need))
      return invalid(who + ": npy header: the shape's size overflows");
  const bool is_empty = std::find(out.shape.begin(), out.shape.end(), 0) != out.shape.end();
  const uint64_t data_bytes = is_empty ? 0 : static_cast<uint64_t>(need);
  out.data = bytes.substr(start + length);
  if (out.data.size() < data_bytes)
    return invalid(cat(who, ": truncated, expected ", data_bytes, " bytes of elements, got ",
                       out.data.size()));
  out.data = out.data.substr(0, data_bytes);
  return out;
}

std::string to_plain(const NpyArray& array) {
  const size_t width = TN_DTYPE_BITS(array.dtype) / 8, rank = array.shape.size();
  std::vector<int64_t> stride(rank), index(rank, 0);
  int64_t step = 1;
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis = array.fortran ? i : rank - 1 - i;
    stride[axis] = step;
    step *= array.shape[axis];
  }
  std::string out(array.data.size(), '\0');
  int64_t from = 0;
  for (size_t at = 0; at < out.size(); at += width) {
    std::memcpy(&out[at], array.data.data() + static_cast<size_t>(from) * width, width);
    if (array.swapped) std::reverse(&out[at], &out[at] + width);
    for (size_t axis = rank; axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < array.shape[axis]) break;
      from -= index[axis] * stride[axis];
      index[axis] = 0;
    }
  }
  return out;
}

}  // namespace tenon::datasets
