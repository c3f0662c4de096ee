// SPDX-License-Identifier: Apache-2.0
// "seams.mul_add_relu": max(x * scale + shift, 0) in one loop, where scale and shift are constants
// with a number for each entry of x's last axis, or one for all.
#include <algorithm>
#include <random>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/match.hpp"
#include "tenon/sdk/role/kernel.hpp"

namespace tenon::test {
namespace {

struct MulAddRelu {
  static constexpr std::string_view kPattern = "Relu(Add(Mul(x, #scale), #shift))";
  static Result<MulAddRelu> create(tn_ctx*, const Options&) { return MulAddRelu{}; }

  Status claim(const KernelSite& site) const {
    Type x = site.input(0).type();
    if (x.dtype != TN_F32 || x.rank() < 1) return unsupported("x: expected rows of float32");
    if (site.output().type().dims != x.dims) return unsupported("x: expected the result's shape");
    for (size_t i : {1, 2}) {
      Type other = site.input(i).type();
      if (other.elements() != 1 && (other.elements() != x.dims.back() || other.dims.back() == 1))
        return unsupported("expected one number, or one for each entry of the last axis");
    }
    return {};
  }

  struct Compiled {
    size_t width;
    std::vector<float> scale, shift;  // [width]
  };
  Result<Compiled> compile(const KernelSite& site) const {
    auto width = static_cast<size_t>(site.input(0).type().dims.back());
    auto row_of = [&](Value constant) {
      std::vector<double> numbers = numbers_of(constant).value_or(std::vector<double>{0});
      std::vector<float> row(width);
      for (size_t i = 0; i < width; ++i)
        row[i] = static_cast<float>(numbers[numbers.size() == 1 ? 0 : i]);
      return row;
    };
    return Compiled{width, row_of(site.input(1)), row_of(site.input(2))};
  }

  Status run(Compiled& with,
             std::span<const DLTensor* const> in,
             const DLTensor& out,
             const Cancel&) const {
    const float* x = data_of<const float>(*in[0]);
    float* y = data_of<float>(out);
    auto n = static_cast<size_t>(element_count(out));
    for (size_t i = 0; i < n; ++i) {
      size_t column = i % with.width;
      y[i] = std::max(x[i] * with.scale[column] + with.shift[column], 0.0F);
    }
    return {};
  }

  Result<Value> sample(EditView edit, uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> number(-2, 2);
    auto rows = static_cast<int64_t>(random() % 4 + 1),
         width = static_cast<int64_t>(random() % 5 + 2);
    auto constant = [&](int64_t n) {
      std::vector<float> values(static_cast<size_t>(n));
      std::ranges::generate(values, [&] { return number(random); });
      return edit.constant<float>(TN_F32, n == 1 ? std::vector<int64_t>{} : std::vector{n}, values);
    };
    TN_TRY(x, edit.input("x", Type(TN_F32, {rows, width})));
    TN_TRY(scale, constant(width));
    TN_TRY(shift, constant(seed % 2 ? width : 1));
    Builder b(edit);
    bool is_swapped = seed % 3 == 0;
    Value scaled = is_swapped ? b.mul(scale, x) : b.mul(x, scale);
    Value made = b.op("Relu", {b.add(scaled, shift)});
    TN_CHECK(b.status());
    return made;
  }
};

}  // namespace
}  // namespace tenon::test

TENON_KERNEL(mul_add_relu,
             tenon::test::MulAddRelu,
             "seams.mul_add_relu",
             "a scale, a shift and Relu in one loop",
             "{}")
