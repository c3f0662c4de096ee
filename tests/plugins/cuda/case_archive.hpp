// SPDX-License-Identifier: Apache-2.0
#pragma once
// ONNX's own single-operator cases as tests/conformance/pack_cases.py writes them, and how a result
// compares with what a case expects. TENON_TEST_ONNX_CASES names their folder.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>

#include "tenon/sdk/number.hpp"

namespace tenon::test {

using nlohmann::json;

inline std::string variable(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value ? value : fallback;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Archive {
  json cases = json::array();
  std::string bytes;

  static const Archive& get() {
    static const Archive made = [] {
      Archive out;
      std::filesystem::path folder = variable("TENON_TEST_ONNX_CASES", "");
      if (folder.empty()) return out;
      out.cases = json::parse(read_file(folder / "cases.json"));
      out.bytes = read_file(folder / "cases.bin");
      return out;
    }();
    return made;
  }
  std::string_view at(const json& place) const {
    return std::string_view(bytes).substr(place[0].get<size_t>(), place[1].get<size_t>());
  }
};

inline uint32_t dtype_in(const json& tensor) {
  return TN_DTYPE(tensor["code"].get<uint32_t>(), tensor["bits"].get<uint32_t>());
}
inline std::vector<int64_t> dims_in(const json& tensor) {
  return tensor["shape"].get<std::vector<int64_t>>();
}

// Of 8-bit floats: NaN has more than one form.
inline bool is_nan_code(uint32_t dtype, unsigned char code) {
  if (TN_DTYPE_CODE(dtype) == kDLFloat8_e4m3fn) return (code & 0x7f) == 0x7f;
  return TN_DTYPE_CODE(dtype) == kDLFloat8_e5m2 && (code & 0x7f) > 0x7c;
}

inline std::string byte_difference(const unsigned char* got,
                                   std::string_view wanted,
                                   uint32_t dtype) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto code = static_cast<unsigned char>(wanted[i]);
    bool is_same = got[i] == code || (is_nan_code(dtype, got[i]) && is_nan_code(dtype, code));
    if (!is_same) return cat("byte ", i, ": expected ", int{code}, ", got ", int{got[i]});
  }
  return "";
}

// Four roundings of a 16-bit type: parts that are computed one after the other round in between.
inline double roundings(uint32_t dtype) {
  return dtype == TN_F16 ? 0x1p-9 : dtype == TN_BF16 ? 0x1p-6 : 0;
}

// Empty: alike as NumPy's assert_allclose has it, or to the bit where elements are no numbers.
inline std::string difference(const DLTensor& got, const json& wanted, const json& one) {
  std::string_view bytes = Archive::get().at(wanted["at"]);
  std::vector<int64_t> dims = dims_in(wanted);
  DenseView view(dtype_in(wanted), dims, bytes.data());
  if (dtype_of(got) != dtype_in(wanted)) return "another type";
  if (!std::ranges::equal(shape_of(got), dims)) return "another shape";
  Result<std::vector<double>> a = numbers_as<double>(got), b = numbers_as<double>(*view);
  if (!a.ok() || !b.ok())
    return byte_difference(data_of<const unsigned char>(got), bytes, dtype_in(wanted));
  double rtol = std::max(one["rtol"].get<double>(), roundings(dtype_of(got)));
  double atol = one["atol"];
  for (size_t i = 0; i < a->size(); ++i) {
    double x = (*a)[i], y = (*b)[i];
    bool is_same = x == y || (std::isnan(x) && std::isnan(y));
    if (!is_same && !(std::abs(x - y) <= atol + rtol * std::abs(y)))
      return cat("element ", i, ": expected ", y, ", got ", x);
  }
  return "";
}

}  // namespace tenon::test
