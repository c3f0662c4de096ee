// SPDX-License-Identifier: Apache-2.0
// Reductions over every choice of axes of data that lies in memory in several orders.

#include "both_backends.hpp"

namespace tenon::test {
namespace {

using Dims = std::vector<int64_t>;

std::string list(const Dims& numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

// op(Transpose(x)): the transpose is a view, so the reduction sees memory in another order.
std::string reduction(
    const std::string& op, const Dims& dims, const Dims& perm, const Dims& axes, bool keeps_axes) {
  Dims viewed, left;
  for (int64_t axis : perm)
    viewed.push_back(dims[static_cast<size_t>(axis)]);
  for (size_t axis = 0; axis < viewed.size(); ++axis) {
    bool goes = std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
    if (!goes) left.push_back(viewed[axis]);
    if (goes && keeps_axes) left.push_back(1);
  }
  return "graph {\n  input %x: f32" + list(dims) + "\n  constant %a: i64[" +
         std::to_string(axes.size()) + "] = " + list(axes) + "\n  %t: f32" + list(viewed) +
         " = Transpose(%x) {perm = ints" + list(perm) + "} @n1\n  %y: f32" + list(left) + " = " +
         op + "(%t, %a) {keepdims = " + (keeps_axes ? "1" : "0") + "} @n2\n  output y = %y\n}";
}

class Reduce : public BothBackends, public testing::WithParamInterface<Dims> {};

TEST_P(Reduce, AgreesOverAnyAxes) {
  for (int set = 1; set < 16; ++set) {
    Dims axes;
    for (int64_t axis = 0; axis < 4; ++axis)
      if (set >> axis & 1) axes.push_back(axis);
    for (const char* op :
         {"ReduceSum", "ReduceMean", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare"})
      expect_same(reduction(op, {3, 5, 1, 7}, GetParam(), axes, set % 2 == 0), 1e-6);
    expect_same(reduction("ReduceProd", {2, 3, 2, 3}, GetParam(), axes, set % 3 == 0), 1e-5);
  }
}

// Many numbers for few results: the sum is cut into chunks.
TEST_P(Reduce, SumsManyNumbersAsInDouble) {
  for (const Dims& axes : {Dims{0, 2, 3}, Dims{0, 1, 2, 3}, Dims{1, 2}}) {
    for (const char* op : {"ReduceSum", "ReduceMean", "ReduceL1", "ReduceMax"})
      expect_same(reduction(op, {6, 40, 18, 70}, GetParam(), axes, false), 3e-7);
    // Parts of a sum over several runs are f32, and these differ in size more than their numbers.
    expect_same(reduction("ReduceSumSquare", {6, 40, 18, 70}, GetParam(), axes, false), 6e-7);
  }
}

INSTANTIATE_TEST_SUITE_P(Orders,
                         Reduce,
                         testing::Values(Dims{0, 1, 2, 3},    // row-major
                                         Dims{0, 3, 1, 2},    // channels-last
                                         Dims{3, 1, 0, 2}));  // neither

}  // namespace
}  // namespace tenon::test
