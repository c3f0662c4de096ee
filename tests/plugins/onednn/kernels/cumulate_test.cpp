// SPDX-License-Identifier: Apache-2.0
// Running sums and products against f64 loops.

#include "kernels/cumulate.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Cumulate : public EachLevel {};

std::vector<float> reference(const CumulateArgs& args, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (int64_t column = 0; column < args.outer * args.inner; ++column) {
    double total = args.is_product ? 1 : 0;
    for (int64_t i = 0; i < args.k; ++i) {
      const int64_t k = args.is_reverse ? args.k - 1 - i : i;
      const auto at = static_cast<uint64_t>((column / args.inner * args.k + k) * args.inner +
                                            column % args.inner);
      const double before = total;
      total = args.is_product ? total * double{x[at]} : total + double{x[at]};
      y[at] = static_cast<float>(args.is_exclusive ? before : total);
    }
  }
  return y;
}

// Each total is that of an f64 loop in the same order, so that the results are the same.
TEST_P(Cumulate, EqualsF64) {
  struct Shape {
    int64_t outer, k, inner;
  };
  const Shape shapes[] = {{1, 1, 1},  {19, 4, 1},   {8, 33, 1}, {1, 100, 1},  {2, 5, 3},
                          {3, 7, 16}, {2, 3, 1100}, {1, 9, 15}, {2, 21, 513}, {1, 2, 8}};
  for (const Shape& s : shapes) {
    for (int form = 0; form < 8; ++form) {
      const std::vector<float> x = uniform(static_cast<uint64_t>(s.outer * s.k * s.inner), -2, 2);
      std::vector<float> y = x;
      y.push_back(7.0F);
      CumulateArgs args{y.data(), y.data(), s.outer, s.k, s.inner};
      args.is_product = (form & 1) != 0;
      args.is_exclusive = (form & 2) != 0;
      args.is_reverse = (form & 4) != 0;
      cumulate(context_, args);

      const std::vector<float> want = reference(args, x);
      for (uint64_t i = 0; i < want.size(); ++i)
        ASSERT_EQ(y[i], want[i]) << s.outer << " " << s.k << " " << s.inner << " at " << i;
      EXPECT_EQ(y.back(), 7.0F);
    }
  }
}

TEST_P(Cumulate, CarriesWhatIsNotFinite) {
  std::vector<float> x = {1, INFINITY, 2, -INFINITY, 3}, y(5);
  cumulate(context_, {x.data(), y.data(), 1, 5, 1});

  EXPECT_EQ(y[0], 1.0F);
  EXPECT_EQ(y[1], INFINITY);
  EXPECT_EQ(y[2], INFINITY);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_TRUE(std::isnan(y[4]));
}

TENON_EACH_LEVEL(Cumulate);

}  // namespace
}  // namespace tenon::onednn::kernels
