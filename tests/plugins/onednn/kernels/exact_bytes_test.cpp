// SPDX-License-Identifier: Apache-2.0
// Integers of 8 and 32 bits, and logic, that run in lanes of their width.

#include <random>

#include "exact_program.h"
#include "expr_nodes.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class ExactBytes : public EachLevel {};

int64_t quotient(uint32_t code, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (code == TN_EXPR_DIV) return a / b;
  return code == TN_EXPR_FMOD ? a % b : ((a % b) + b) % b;
}

// Quotients are cut from reals: of all bytes, and of words right below and above multiples.
template <class T>
void expect_quotients(const Context& context,
                      ElementType type,
                      const std::vector<T>& x,
                      const std::vector<T>& y) {
  const auto n = static_cast<int64_t>(x.size());
  const ExactEdge edges[] = {{type, {1}}, {type, {1}}};
  for (const uint32_t code :
       {uint32_t{TN_EXPR_DIV}, uint32_t{TN_EXPR_MOD}, uint32_t{TN_EXPR_FMOD}}) {
    const tn_expr_node nodes[] = {input(0), input(1), op(code, 0, 1)};
    std::vector<T> got(x.size());
    run_exact<T>(context, nodes, {&n, 1}, edges, {x.data(), y.data()}, type, got.data());
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(got[i], static_cast<T>(quotient(code, x[i], y[i])))
          << code << " of " << +x[i] << " and " << +y[i];
  }
}
template <class T>
void expect_word_quotients(const Context& context, ElementType type) {
  std::vector<T> x, y;
  std::mt19937 random(9);
  for (int i = 0; i < 5000; ++i) {
    const T divisor = static_cast<T>(random() >> random() % 32);
    const T multiple = static_cast<T>(divisor == 0 ? 0 : static_cast<T>(random()) / divisor);
    for (const uint32_t off : {0U, 1U, ~0U}) {
      x.push_back(
          static_cast<T>(static_cast<uint32_t>(multiple) * static_cast<uint32_t>(divisor) + off));
      y.push_back(divisor);
    }
  }
  expect_quotients<T>(context, type, x, y);
}
TEST_P(ExactBytes, DividesAsIntegersDo) {
  std::vector<uint8_t> x, y;
  std::vector<int8_t> left, right;
  for (int i = 0; i < 65536; ++i) {
    x.push_back(static_cast<uint8_t>(i >> 8));
    y.push_back(static_cast<uint8_t>(i));
    left.push_back(static_cast<int8_t>(x.back()));
    right.push_back(static_cast<int8_t>(y.back()));
  }
  expect_quotients<uint8_t>(context_, ElementType::kU8, x, y);
  expect_quotients<int8_t>(context_, ElementType::kS8, left, right);
  expect_word_quotients<int32_t>(context_, ElementType::kI32);
  expect_word_quotients<uint32_t>(context_, ElementType::kU32);
}

// 300 is no byte, so that bytes are not compared as such.
TEST_P(ExactBytes, ComparesBytesWithLargerConstants) {
  const std::vector<uint8_t> x = {0, 44, 255};
  const tn_expr_node nodes[] = {input(0), {TN_EXPR_CONST, 0, 0, 0, 300}, op(TN_EXPR_EQ, 0, 1)};
  const int64_t dims[] = {3};
  const ExactEdge edges[] = {{ElementType::kU8, {1}}};
  std::vector<uint8_t> got(3, 9);
  run_exact<uint8_t>(context_, nodes, dims, edges, {x.data()}, ElementType::kBool, got.data());
  EXPECT_EQ(got, (std::vector<uint8_t>{0, 0, 0}));
}

// Any byte but 0 is true, and what is stored is 1.
TEST_P(ExactBytes, LogicOfBooleansIsMadeOfBytes) {
  std::vector<uint8_t> x(5000), y(x.size()), got(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<uint8_t>(i % 3);
    y[i] = i % 5 == 0;
  }
  const int64_t n = static_cast<int64_t>(x.size());
  const ExactEdge edges[] = {{ElementType::kBool, {1}}, {ElementType::kBool, {1}}};
  const std::vector<uint8_t> was = x;
  const tn_expr_node nodes[] = {input(0), input(1), op(TN_EXPR_NOT, 1), op(TN_EXPR_AND, 0, 2)};
  run_exact<uint8_t>(context_, nodes, {&n, 1}, edges, {x.data(), y.data()}, ElementType::kBool,
                     x.data());
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(x[i], was[i] != 0 && y[i] == 0 ? 1 : 0) << i;
  const tn_expr_node choice[] = {input(0), input(1), op(TN_EXPR_SELECT, 1, 0, 1)};
  run_exact<uint8_t>(context_, choice, {&n, 1}, edges, {was.data(), y.data()}, ElementType::kBool,
                     got.data());
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(got[i], y[i] != 0 && was[i] != 0 ? 1 : 0) << i;
}

// A Boolean is among bytes of either sign.
TEST_P(ExactBytes, BooleansChooseBetweenSignedBytes) {
  const std::vector<uint8_t> is_first = {1, 0, 1};
  const std::vector<int8_t> x = {-128, 5, 127}, y = {1, -1, 0};
  const tn_expr_node nodes[] = {input(0), input(1), input(2), op(TN_EXPR_SELECT, 0, 1, 2)};
  const int64_t dims[] = {3};
  const ExactEdge edges[] = {
      {ElementType::kBool, {1}}, {ElementType::kS8, {1}}, {ElementType::kS8, {1}}};
  std::vector<int8_t> got(3);
  run_exact<int8_t>(context_, nodes, dims, edges, {is_first.data(), x.data(), y.data()},
                    ElementType::kS8, got.data());
  EXPECT_EQ(got, (std::vector<int8_t>{-128, -1, 127}));
}

TENON_EACH_LEVEL(ExactBytes);

}  // namespace
}  // namespace tenon::onednn::kernels
