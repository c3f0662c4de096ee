// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {
namespace {

class GradientHistogram : public PassTest {
 protected:
  void build_gradients() {
    build([&](EditView edit) {
      for (const char* name : {"a", "b"}) {
        Value x = input(edit, name, {6});
        ASSERT_EQ(text_of(edit.output(cat("grad/", name), node(edit, "Neg", {x}, cat(name, "_")))),
                  "");
      }
    });
  }
};

// Numbers at the borders of float16's classes, of NumPy's astype("float16"): 2^-25 becomes 0, the
// next one 2^-24; below 2^-14 they are subnormal; 65519.996 becomes 65504, 65520 infinite.
TEST_F(GradientHistogram, CountsWhatFloat16MakesOfEach) {
  build_gradients();
  ASSERT_EQ(apply("precision.gradient_histogram", json::object()), "");
  EXPECT_EQ(report_["numbers"], 12);
  float zero = std::ldexp(1.0f, -25), subnormal = std::ldexp(1.0f, -14);
  std::vector<float> a{
      0, zero, -zero, std::nextafter(zero, 1.0f), std::nextafter(subnormal, 0.0f), subnormal},
      b{1, -1, 65519.996f, 65520, -70000, 0};
  std::vector<int64_t> shape{6};
  DenseView first(TN_F32, shape, a.data()), second(TN_F32, shape, b.data());
  const DLTensor* in[] = {first.get(), second.get()};
  tn_plan* plan = nullptr;
  ASSERT_EQ(text_of(Status(services.eval->compile(ctx_, result_.get(), nullptr, 0,
                                                  str("{\"backend\": \"reference\"}"), &plan))),
            "");
  Collected out(ctx_);
  EXPECT_EQ(text_of(Status(services.eval->run(plan, in, 2, &out.raw, nullptr))), "");
  services.eval->release(plan);
  ASSERT_EQ(out.tensors.size(), 3u);
  EXPECT_EQ(out.numbers<double>(2), (std::vector<double>{10, 8, 6, 2, 70000}));
}

TEST_F(GradientHistogram, WithoutGradientsItIsRefused) {
  build_gradients();
  EXPECT_THAT(apply("precision.gradient_histogram", {{"gradients", "g*/c"}}),
              HasSubstr("option gradients: no output fits 'g*/c'"));
}

}  // namespace
}  // namespace tenon::test
