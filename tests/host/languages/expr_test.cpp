// SPDX-License-Identifier: Apache-2.0
#include "languages/expr.hpp"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <numbers>

#include <gtest/gtest.h>

#include "folders.hpp"
#include "host/text_mutation.hpp"
#include "languages/expr_intrinsics.hpp"

namespace tenon::host {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr ExprType kInt8{TN_EXPR_DOMAIN_INT, 8};
constexpr ExprType kInt64{TN_EXPR_DOMAIN_INT, 64};
constexpr ExprType kUint8{TN_EXPR_DOMAIN_UINT, 8};
constexpr ExprType kUint64{TN_EXPR_DOMAIN_UINT, 64};
constexpr ExprType kBool{TN_EXPR_DOMAIN_UINT, 1};

ExprBinding binding(std::vector<bool> present,
                    ExprType type = {},
                    std::map<std::string, ExprAttribute> attributes = {}) {
  return {std::move(present), type, [attributes](std::string_view name) {
            const auto found = attributes.find(std::string(name));
            return found == attributes.end() ? ExprAttribute() : found->second;
          }};
}

Parsed<ExprProgram> bound(std::string_view text, const ExprBinding& how) {
  const Parsed<Expr> expr = Expr::parse(text);
  if (!expr) return expr.error();
  return expr->bind(how);
}

// Of one element.
template <class Number>
Number evaluated(const ExprProgram& program, const std::vector<Number>& inputs) {
  std::vector<const Number*> arrays;
  for (const Number& input : inputs)
    arrays.push_back(&input);
  Number out{};
  evaluate(program.view(), arrays, {&out, 1});
  return out;
}

double value(std::string_view text, std::vector<double> inputs) {
  const auto program = bound(text, binding(std::vector<bool>(inputs.size(), true)));
  EXPECT_TRUE(program) << text << ": " << (program ? "" : program.error().text());
  return program ? evaluated(*program, inputs) : kNan;
}

int64_t integer(std::string_view text, std::vector<int64_t> inputs, ExprType type) {
  const auto program = bound(text, binding(std::vector<bool>(inputs.size(), true), type));
  EXPECT_TRUE(program) << text << ": " << (program ? "" : program.error().text());
  return program ? evaluated(*program, inputs) : -1;
}

std::string printed(std::string_view text, const ExprBinding& how) {
  const auto program = bound(text, how);
  return program ? program->text() : program.error().text();
}

std::string error_of(std::string_view text) {
  const Parsed<Expr> expr = Expr::parse(text);
  return expr ? "no error" : expr.error().text();
}

TEST(Expr, EvaluatesGelu) {
  EXPECT_DOUBLE_EQ(value("0.5*x*(1+erf(x*0.7071067811865475))", {1.0}),
                   0.5 * (1 + std::erf(std::sqrt(0.5))));
}

TEST(Expr, BindsOperatorsAsTightlyAsC) {
  EXPECT_EQ(value("1 + 2*3 - 8/4", {}), 5);
  EXPECT_EQ(value("2 - 3 - 4", {}), -5);
  EXPECT_EQ(value("-x*x", {3}), -9);
  EXPECT_EQ(value("x < 2 && y > 1 || x == 7", {7, 0}), 1);
  EXPECT_EQ(value("x > 0 ? 1 : x < 0 ? -1 : 0", {-4}), -1);
  EXPECT_EQ(integer("1 | 2 ^ 3 & 2 << 1", {}, kInt64), 3);
  EXPECT_EQ(value("!x == 1", {0}), 1);
}

TEST(Expr, KnowsEveryIntrinsicInTheHeaderOnce) {
  std::map<std::string_view, int> names;
  for (const Intrinsic& row : intrinsics()) {
    EXPECT_EQ(find_intrinsic(row.op), &row);
    EXPECT_TRUE(row.real || row.integer);
    EXPECT_EQ(++names[row.name], 1) << row.name;
  }
  EXPECT_EQ(names.size(), 32u + 24u + 1u);
  EXPECT_EQ(find_intrinsic(999u), nullptr);
}

TEST(Expr, HasAPageThatNamesEveryIntrinsic) {
  std::ifstream page(std::string(test::kSourceFolder) + "/abi/expr.md");
  const std::string text((std::istreambuf_iterator<char>(page)), {});
  const std::string table = text.substr(text.find("## Intrinsics"));
  for (const Intrinsic& row : intrinsics())
    EXPECT_NE(table.find("`" + std::string(row.name)), std::string::npos) << row.name;
}

TEST(Expr, AgreesWithTheMathLibrary) {
  const double v = 0.37;
  const std::vector<std::pair<const char*, double>> cases = {{"exp(x)", std::exp(v)},
                                                             {"expm1(x)", std::expm1(v)},
                                                             {"log(x)", std::log(v)},
                                                             {"log1p(x)", std::log1p(v)},
                                                             {"sqrt(x)", std::sqrt(v)},
                                                             {"rsqrt(x)", 1 / std::sqrt(v)},
                                                             {"reciprocal(x)", 1 / v},
                                                             {"tanh(x)", std::tanh(v)},
                                                             {"sigmoid(x)", 1 / (1 + std::exp(-v))},
                                                             {"sin(x)", std::sin(v)},
                                                             {"cos(x)", std::cos(v)},
                                                             {"tan(x)", std::tan(v)},
                                                             {"asin(x)", std::asin(v)},
                                                             {"acos(x)", std::acos(v)},
                                                             {"atan(x)", std::atan(v)},
                                                             {"sinh(x)", std::sinh(v)},
                                                             {"cosh(x)", std::cosh(v)},
                                                             {"asinh(x)", std::asinh(v)},
                                                             {"acosh(1+x)", std::acosh(1 + v)},
                                                             {"atanh(x)", std::atanh(v)},
                                                             {"atan2(x, 2)", std::atan2(v, 2)},
                                                             {"pow(x, 3)", std::pow(v, 3)},
                                                             {"cos(pi)", -1}};
  for (const auto& [text, expected] : cases)
    EXPECT_DOUBLE_EQ(value(text, {v}), expected) << text;
}

// The derivatives that abi/expr.md gives, against central differences.
TEST(Expr, DerivativesOfItsPageHold) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"exp(x)", "exp(x)"},
      {"expm1(x)", "expm1(x) + 1"},
      {"log(x)", "1/x"},
      {"log1p(x)", "1/(1 + x)"},
      {"sqrt(x)", "0.5/sqrt(x)"},
      {"rsqrt(x)", "let r = rsqrt(x); -0.5*r*r*r"},
      {"reciprocal(x)", "let r = reciprocal(x); -r*r"},
      {"erf(x)", "2/sqrt(pi)*exp(-x*x)"},
      {"tanh(x)", "let r = tanh(x); 1 - r*r"},
      {"sigmoid(x)", "let r = sigmoid(x); r*(1 - r)"},
      {"sin(x)", "cos(x)"},
      {"cos(x)", "-sin(x)"},
      {"tan(x)", "let r = tan(x); 1 + r*r"},
      {"asin(x)", "rsqrt(1 - x*x)"},
      {"acos(x)", "-rsqrt(1 - x*x)"},
      {"atan(x)", "1/(1 + x*x)"},
      {"sinh(x)", "cosh(x)"},
      {"cosh(x)", "sinh(x)"},
      {"asinh(x)", "rsqrt(x*x + 1)"},
      {"acosh(x + 1)", "let a = x + 1; rsqrt(a*a - 1)"},
      {"atanh(x)", "1/(1 - x*x)"},
      {"2/x", "let r = 2/x; -r/x"},
      {"pow(x, 3)", "3*pow(x, 2)"},
      {"pow(3, x)", "pow(3, x)*log(3)"},
      {"mod(7, x)", "-floor(7/x)"},
      {"fmod(-7, x)", "-trunc(-7/x)"},
      {"atan2(x, 2)", "2/(x*x + 4)"},
      {"atan2(2, x)", "-2/(x*x + 4)"},
      {"x < 0 ? 1 : x*x", "2*x"}};
  constexpr double kPoint = 0.43, kStep = 1e-6;
  for (const auto& [f, df] : cases) {
    const double slope = (value(f, {kPoint + kStep}) - value(f, {kPoint - kStep})) / (2 * kStep);
    EXPECT_NEAR(value(df, {kPoint}), slope, 1e-7 * std::max(1.0, std::fabs(slope))) << f;
  }
}

TEST(Expr, EvaluatesManyElementsAsItDoesOne) {  // several blocks, the last one short
  const auto program = bound("let t = exp(x); t/(1 + t*y) + 0.5", binding({true, true}));
  ASSERT_TRUE(program);
  std::vector<double> x(1000), y(1000), out(1000);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<double>(i) / 100;
    y[i] = 1 - x[i];
  }
  evaluate(program->view(), std::vector<const double*>{x.data(), y.data()}, out);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(out[i], evaluated(*program, std::vector<double>{x[i], y[i]})) << i;
}

TEST(Expr, RoundsAndCuts) {
  EXPECT_EQ(value("round(x)", {0.5}), 0);
  EXPECT_EQ(value("round(x)", {1.5}), 2);
  EXPECT_EQ(value("round(x)", {-2.5}), -2);
  EXPECT_EQ(value("floor(x)", {-0.5}), -1);
  EXPECT_EQ(value("ceil(x)", {0.5}), 1);
  EXPECT_EQ(value("trunc(x)", {-1.7}), -1);
}

TEST(Expr, GivesRemaindersTheirSign) {
  EXPECT_EQ(value("mod(x, y)", {-7, 3}), 2);
  EXPECT_EQ(value("fmod(x, y)", {-7, 3}), -1);
  EXPECT_EQ(value("mod(x, y)", {7, -3}), -2);
  EXPECT_EQ(integer("mod(x, y)", {-7, 3}, kInt64), 2);
  EXPECT_EQ(integer("fmod(x, y)", {-7, 3}, kInt64), -1);
}

TEST(Expr, TreatsNanAsWritten) {
  EXPECT_TRUE(std::isnan(value("max(x, 0)", {kNan})));
  EXPECT_TRUE(std::isnan(value("min(0, x)", {kNan})));
  EXPECT_TRUE(std::isnan(value("sign(x)", {kNan})));
  EXPECT_EQ(value("x == x", {kNan}), 0);
  EXPECT_EQ(value("x != x", {kNan}), 1);
  EXPECT_EQ(value("x ? 1 : 2", {kNan}), 1);
  EXPECT_EQ(value("isnan(x) + 2*isinf(y)", {kNan, -kInf}), 3);
}

TEST(Expr, WrapsIntegersAfterEachNode) {
  EXPECT_EQ(integer("x + y", {127, 1}, kInt8), -128);
  EXPECT_EQ(integer("(x + y)/2", {127, 1}, kInt8), -64);
  EXPECT_EQ(integer("x - y", {3, 5}, kUint8), 254);
  EXPECT_EQ(integer("-x", {-128}, kInt8), -128);
  EXPECT_EQ(integer("x * y", {INT64_MAX, 2}, kInt64), -2);
}

TEST(Expr, DividesIntegersWithoutTraps) {
  EXPECT_EQ(integer("x / y", {-7, 2}, kInt64), -3);
  EXPECT_EQ(integer("x / y", {7, 0}, kInt64), 0);
  EXPECT_EQ(integer("x / y", {INT64_MIN, -1}, kInt64), INT64_MIN);
  EXPECT_EQ(integer("x / y", {-2, 2}, kUint64), INT64_MAX);
  EXPECT_EQ(integer("mod(x, y)", {5, 0}, kInt64), 0);
}

TEST(Expr, RaisesAndShiftsIntegers) {
  EXPECT_EQ(integer("pow(x, y)", {3, 4}, kInt64), 81);
  EXPECT_EQ(integer("pow(x, y)", {2, -1}, kInt64), 0);
  EXPECT_EQ(integer("pow(x, y)", {-1, -3}, kInt64), -1);
  EXPECT_EQ(integer("x << y", {1, 7}, kUint8), 128);
  EXPECT_EQ(integer("x << y", {1, 8}, kUint8), 0);
  EXPECT_EQ(integer("x >> y", {-8, 1}, kInt8), -4);
  EXPECT_EQ(integer("x >> y", {-8, 60}, kInt8), -1);
  EXPECT_EQ(integer("~x", {0}, kUint8), 255);
}

TEST(Expr, ComputesWithBooleans) {
  EXPECT_EQ(integer("!x", {1}, kBool), 0);
  EXPECT_EQ(integer("xor(x, y)", {1, 1}, kBool), 0);
  EXPECT_EQ(integer("x || y", {0, 1}, kBool), 1);
}

TEST(Expr, ReadsAttributes) {
  const auto how = binding({true}, {}, {{"alpha", 0.25}, {"n", int64_t{3}}});
  EXPECT_EQ(printed("x < 0 ? alpha*x : n", how), "x < 0 ? 0.25*x : 3");
  EXPECT_EQ(Expr::parse("alpha*x + has(beta) + alpha*n_inputs")->attributes(),
            (std::vector<std::string>{"alpha", "beta"}));
}

TEST(Expr, ChoosesByTextWhileBinding) {
  const char* text = "approximate == \"tanh\" ? tanh(x) : erf(x)";
  EXPECT_EQ(printed(text, binding({true}, {}, {{"approximate", "tanh"}})), "tanh(x)");
  EXPECT_EQ(printed(text, binding({true}, {}, {{"approximate", "none"}})), "erf(x)");
  EXPECT_EQ(printed("approximate != \"tanh\"", binding({}, {}, {{"approximate", "tanh"}})), "0");
}

TEST(Expr, SeesAbsentInputs) {
  const char* clip = "let low = has(y) ? max(x, y) : x; has(z) ? min(low, z) : low";
  EXPECT_EQ(printed(clip, binding({true, true, true})), "min(max(x, y), z)");
  EXPECT_EQ(printed(clip, binding({true, false, true})), "min(x, z)");
  EXPECT_EQ(printed(clip, binding({true})), "x");
  EXPECT_EQ(printed("has(y) && y > 0", binding({true})), "0");
  EXPECT_EQ(printed("has(y) && y > 0", binding({true, true})), "y > 0");
  EXPECT_EQ(printed("x + y", binding({true, false})),
            "column 5: expected input 1 (optional ones are tested with has()), got 'y', absent");
}

TEST(Expr, FoldsOverAllInputs) {
  EXPECT_EQ(printed("fold(max)", binding({true, true, true, true})), "max(max(max(x, y), z), x3)");
  EXPECT_EQ(printed("fold(add)/n_inputs", binding({true, true})), "(x + y)/2");
  EXPECT_EQ(printed("fold(add)", binding({})),
            "column 1: expected at least one input to fold over, got none");
}

TEST(Expr, FoldsConstantsAndSharesParts) {
  EXPECT_EQ(printed("x*(2*3 - 5)", binding({true})), "x");
  EXPECT_EQ(printed("exp(x)/(1 + exp(x))", binding({true})), "let t0 = exp(x); t0/(1 + t0)");
  const auto program = bound("x*y + y*x", binding({true, true}));
  ASSERT_TRUE(program);
  EXPECT_EQ(program->nodes().size(), 4u);
  EXPECT_EQ(program->nodes().back().op, TN_EXPR_ADD);
}

TEST(Expr, KeepsWhatIsNotExact) {
  EXPECT_EQ(printed("x + 0", binding({true})), "x + 0");
  EXPECT_EQ(printed("x*0", binding({true})), "x*0");
  // 2^62 does not fold: imm holds integers up to 2^53 only.
  EXPECT_EQ(integer("x + pow(2, 62)", {1}, kInt64), (int64_t{1} << 62) + 1);
}

TEST(Expr, PrintsAnUnsignedNegationThatReadsBack) {
  const auto how = binding({true}, kUint64);
  EXPECT_EQ(printed("x/-n_inputs", how), "x/-1");  // 2^64 - 1 is beyond imm
  EXPECT_EQ(printed("x/-1", how), "x/-1");
  EXPECT_EQ(integer("x/-1", {-1}, kUint64), 1);
}

TEST(Expr, RefusesConstantsOutsideTheIntegerType) {
  EXPECT_EQ(printed("x*0.5", binding({true}, kInt8)),
            "column 3: expected a constant of the integer type, 8 bits signed, got 0.5");
  EXPECT_EQ(printed("x + 300", binding({true}, kUint8)),
            "column 5: expected a constant of the integer type, 8 bits unsigned, got 300");
  EXPECT_EQ(printed("max(x, -128)", binding({true}, kInt8)), "max(x, -128)");
  EXPECT_EQ(printed("exp(x)", binding({true}, kInt8)),
            "column 1: expected a function of integers, got 'exp'");
  EXPECT_EQ(printed("x & 1", binding({true})),
            "column 3: expected a function of floats, got 'bitand'");
}

TEST(Expr, SaysWhereTheTextIsWrong) {
  EXPECT_EQ(error_of(""), "column 1: expected a number, a name or '(', got end of text");
  EXPECT_EQ(error_of("1 +"), "column 4: expected a number, a name or '(', got end of text");
  EXPECT_EQ(error_of("(x"), "column 3: expected ')', got end of text");
  EXPECT_EQ(error_of("2x"), "column 2: expected an operator or the end, got 'x'");
  EXPECT_EQ(error_of("sinus(x)"), "column 1: expected a function of abi/expr.md, got 'sinus'");
  EXPECT_EQ(error_of("pow(x)"), "column 6: expected ',' (pow takes 2 arguments), got ')'");
  EXPECT_EQ(error_of("exp(x, y)"), "column 6: expected ')', got ','");
  EXPECT_EQ(error_of("a == \"b"), "column 6: expected a closing '\"', got end of text");
  EXPECT_EQ(error_of("let x = 1; x"), "column 5: expected a name that is free, got 'x'");
  EXPECT_EQ(error_of("1e999"), "column 1: expected a number that double holds, got '1e999'");
  EXPECT_EQ(error_of("x \xc3\xa9"), "column 3: expected an operator or the end, got byte 195");
}

TEST(Expr, RefusesTextThatIsTooDeepOrTooLong) {
  EXPECT_NE(error_of(std::string(50000, '(')).find("200 levels"), std::string::npos);
  EXPECT_NE(error_of(std::string(50000, '-')).find("200 levels"), std::string::npos);
  std::string sum = "x";
  for (int i = 0; i < 5000; ++i)
    sum += "+x";
  EXPECT_NE(error_of(sum).find("4096 terms"), std::string::npos);
  EXPECT_NE(error_of(std::string(70000, ' ')).find("65536 bytes"), std::string::npos);
}

TEST(Expr, SharesLetsInsteadOfGrowing) {
  std::string text = "let a0 = x + x;";
  for (int i = 1; i < 500; ++i) {
    const std::string before = "a" + std::to_string(i - 1);
    text += "let a" + std::to_string(i) + " = " + before + " + " + before + ";";
  }
  const auto program = bound(text + "a499", binding({true}));
  ASSERT_TRUE(program);
  EXPECT_EQ(program->nodes().size(), 501u);
  EXPECT_EQ(evaluated(*program, std::vector<double>{1.0}), std::ldexp(1.0, 500));
}

bool same(const ExprProgram& a, const ExprProgram& b) {
  if (a.nodes().size() != b.nodes().size()) return false;
  for (size_t i = 0; i < a.nodes().size(); ++i)
    if (std::memcmp(&a.nodes()[i], &b.nodes()[i], sizeof(tn_expr_node)) != 0) return false;
  return true;
}

TEST(Expr, SurvivesRandomTextAndPrintsWhatItReads) {
  const std::vector<std::string> corpus = {
      "0.5*x*(1+erf(x*0.7071067811865475))",
      "approximate == \"tanh\" ? 0.5*x*(1 + tanh(0.797*(x + 0.044715*pow(x, 3)))) : erf(x)",
      "let t = exp(-abs(x)); max(x, 0) + log1p(t)*t",
      "has(y) ? max(x, y) : has(alpha) ? alpha*x : x",
      "fold(max)/n_inputs - fold(add)",
      "x << 2 ^ y >> 1 | ~z & 5",
      "!(x < y && y <= z || x != 2e-3) ? nan : -inf"};
  std::mt19937 random(20261121);
  const ExprType types[] = {{}, kInt8, kUint8, kInt64, kUint64, kBool};
  size_t accepted = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string text =
        tests::mutated(corpus, "xyz01.5e+-*/%()?:<>=!&|^~,;\" \tlet\xff", random);
    for (const ExprType& type : types) {
      const auto how =
          binding({true, i % 2 == 0, true}, type, {{"alpha", 0.5}, {"approximate", "tanh"}});
      const auto program = bound(text, how);
      if (!program) {
        EXPECT_GE(program.error().column, 1u);
        EXPECT_LE(program.error().column, text.size() + 1) << text;
        continue;
      }
      ++accepted;
      const auto again = bound(program->text(), how);
      ASSERT_TRUE(again) << text << " -> " << program->text() << ": " << again.error().text();
      EXPECT_TRUE(same(*program, *again)) << text << " -> " << program->text();
      if (type.domain == TN_EXPR_DOMAIN_FLOAT)
        evaluated(*program, std::vector<double>{-1.5, 2, kNan});
      else
        evaluated(*program, std::vector<int64_t>{-1, INT64_MIN, 3});
    }
  }
  EXPECT_GT(accepted, 1000u);
}

}  // namespace
}  // namespace tenon::host
