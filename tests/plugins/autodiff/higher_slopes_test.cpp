// SPDX-License-Identifier: Apache-2.0
// Second and third slopes of every pointwise row and every intrinsic, forward over reverse and
// reverse over reverse, at kinks and elsewhere, on every backend of the CPU. What they should be
// follows from the closed form of the first slope (slopes.hpp): its differences on one side.
#include <array>

#include "plugins/autodiff/slope_fixture.hpp"

namespace tenon::test {
namespace {

constexpr int kPlaces = 9;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// The derivative of `order` at 0 of the polynomial through f at 1, 2 ... kPlaces: from one side, so
// what a function is at a kink itself does not matter. Newton's forward differences about 1.
double from_one_side(const std::array<double, kPlaces>& f, int order) {
  std::array<double, kPlaces> differences = f;
  std::array<double, 3> sum = {};                  // value, first and second derivative at 0
  std::array<long double, 3> falling = {1, 0, 0};  // of binomial(s, k) at s = -1, with slopes
  for (int k = 0; k < kPlaces; ++k) {
    for (int d = 0; d < 3; ++d)
      sum[d] += static_cast<double>(falling[d]) * differences[0];
    for (int i = 0; i + 1 < kPlaces - k; ++i)
      differences[i] = differences[i + 1] - differences[i];
    // binomial(s, k + 1) = binomial(s, k)*(s - k)/(k + 1)
    long double by = (-1.0L - k) / (k + 1), step = 1.0L / (k + 1);
    falling = {falling[0] * by, falling[1] * by + falling[0] * step,
               falling[2] * by + 2 * falling[1] * step};
  }
  return sum[order];
}

// Slopes on both sides of a place; where there is none, or none that differences can show, no
// number.
struct Sides {
  double left, right;
};
Sides sides_of(Function slope, double x, double y, bool is_by_y, int order) {
  double at = is_by_y ? y : x, h = 2e-3 * (at == 0 ? 1 : std::fmin(std::fabs(at), 1));
  if (!std::isfinite(x) || !std::isfinite(y) || std::fabs(at) > 1e6) return {kUnknown, kUnknown};
  auto once = [&](double step) {
    std::array<double, kPlaces> f;
    for (int i = 0; i < kPlaces; ++i) {
      double moved = at + step * (i + 1);
      f[i] = is_by_y ? slope(x, moved) : slope(moved, y);
      if (!(std::fabs(f[i]) < 1e12)) return kUnknown;
    }
    return from_one_side(f, order) / std::pow(step, order);
  };
  // A step of the slope's own among the places is seen by looking from two distances.
  auto one = [&](double sign) {
    double near = once(sign * h / 2), far = once(sign * h);
    double scale = std::fmax(1, std::fabs(near));
    return std::fabs(near - far) < 1e-4 * scale && scale < 1e9 ? near : kUnknown;
  };
  return {one(-1), one(1)};
}

class HigherSlope : public SlopeFixture {
 protected:
  // Where what is chosen meets what is not, one side's slope or the mean of both is right; where
  // both sides agree they must be met.
  static bool is_right(double got, const Sides& sides, double tolerance) {
    double low = std::fmin(sides.left, sides.right), high = std::fmax(sides.left, sides.right);
    double slack = tolerance * std::fmax(1, std::fmax(std::fabs(low), std::fabs(high)));
    for (double want : {low, high, (low + high) / 2})
      if (std::fabs(got - want) <= slack) return true;
    return false;
  }

  struct Way {
    const char *name, *second, *third;
  };

  void look(const Slopes& row,
            const FloatType& type,
            const std::vector<Numbers>& at,
            const Tensor& made,
            Function slope,
            bool is_by_y,
            int order) {
    double tolerance = (order == 1 ? 1e-7 : 3e-4) + 64 * type.epsilon;
    for (size_t i = 0; i < at[0].size(); ++i) {
      double x = at[0][i], y = at.size() > 1 ? at[1][i] : 0;
      if (!std::isfinite(row.value(x, y)) || !std::isfinite(slope(x, y))) continue;
      Sides sides = sides_of(slope, x, y, is_by_y, order);
      if (std::isnan(sides.left) || std::isnan(sides.right)) continue;
      double got = number(made, type, i);
      EXPECT_TRUE(is_right(got, sides, tolerance))
          << "slope " << order + 1 << (is_by_y ? " by y" : " by x") << " at " << x << ", " << y
          << ": got " << got << ", on the left " << sides.left << ", on the right " << sides.right;
    }
  }

  // The slope of `row` by input k, and its slopes by input j, by `pass`, up to a third for one
  // input.
  void check(const Slopes& row, const FloatType& type, const std::string& backend, Way way) {
    const size_t n_inputs = row.dy ? 2 : 1;
    std::vector<Numbers> at(n_inputs);
    std::vector<double> near = {0, 0.1, 0.3, 0.5, 1, 2, 2.5, 3, 6, 20};
    for (double x : std::vector(near))
      near.push_back(-x);
    for (double x : near) {
      if (n_inputs == 1) at[0].push_back(rounded(x, type));
      for (double y : near)
        if (n_inputs == 2) at[0].push_back(rounded(x, type)), at[1].push_back(rounded(y, type));
    }
    const size_t n = at[0].size();
    OwnedGraph f = graph(row, type, n);
    ASSERT_NE(f.get(), nullptr);
    for (size_t k = 0; k < n_inputs; ++k)
      for (size_t j = 0; j < n_inputs; ++j) {
        // r, cotangent -> its slope by k -> of that the slope by j, and once more.
        OwnedGraph first, second, third;
        ASSERT_EQ(differentiate(f, "autodiff.vjp", k, first), "");
        ASSERT_EQ(differentiate(first, way.second, j, second), "");
        std::vector<Tensor> inputs, out;
        ASSERT_TRUE(fill(second, at, type, inputs));
        ASSERT_EQ(text_of(evaluate(backend, second, inputs, out)), "");
        look(row, type, at, out.back(), k == 0 ? row.dx : row.dy, j == 1, 1);
        if (n_inputs == 2 || type.dtype != TN_F64) continue;
        ASSERT_EQ(differentiate(second, way.third, j, third), "");
        ASSERT_TRUE(fill(third, at, type, inputs));
        ASSERT_EQ(text_of(evaluate(backend, third, inputs, out)), "");
        look(row, type, at, out.back(), row.dx, false, 2);
      }
  }

  // The slope by input j of the only output, which it takes the place of.
  std::string differentiate(const OwnedGraph& f, const char* pass, size_t j, OwnedGraph& out) {
    std::string failed = apply(f.get(), pass, {{"argnums", json{j}}}, out);
    return failed.empty() ? text_of(keep_last(out.get())) : failed;
  }
  static Status keep_last(tn_graph* graph) {
    TN_TRY(edit, Edit::begin(graph));
    Value last = edit.graph().outputs().back();
    for (uint64_t i = edit.graph().outputs().size(); i-- > 0;)
      TN_CHECK(services.edit->remove_output(edit.raw, i));
    TN_CHECK(edit.output("slope", last));
    return edit.commit();
  }

  // The row's inputs, then ones: cotangents and tangents.
  bool fill(const OwnedGraph& graph,
            const std::vector<Numbers>& at,
            const FloatType& type,
            std::vector<Tensor>& out) {
    out.clear();
    for (size_t i = 0; i < graph.view().inputs().size(); ++i) {
      Numbers ones(at[0].size(), 1.0);
      Result<Tensor> made = tensor(ctx_, type, i < at.size() ? at[i] : ones);
      if (!made.ok()) return false;
      out.push_back(*made);
    }
    return true;
  }

  void check_all(const std::vector<Slopes>& rows) {
    constexpr Way kWays[] = {{"reverse over reverse", "autodiff.vjp", "autodiff.vjp"},
                             {"forward over reverse", "autodiff.jvp", "autodiff.jvp"}};
    for (const Slopes& row : rows)
      for (const FloatType& type : {kTypes[0], kTypes[1]})
        for (const std::string& backend : backends_)
          for (const Way& way : kWays) {
            SCOPED_TRACE(cat(row.call, " in ", type.name, " on ", backend, ", ", way.name));
            check(row, type, backend, way);
          }
  }
};

TEST_F(HigherSlope, OfEveryRowIsThatOfItsClosedForm) {
  check_all(kSlopes);
}

TEST_F(HigherSlope, OfEveryIntrinsicIsThatOfItsClosedForm) {
  check_all(kIntrinsicSlopes);
}

}  // namespace
}  // namespace tenon::test
