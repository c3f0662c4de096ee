// SPDX-License-Identifier: Apache-2.0
#include "languages/axes.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "folders.hpp"
#include "host/text_mutation.hpp"

namespace tenon::host {
namespace {

constexpr const char* kMatMul = "B* m k, B* k n -> B* m n";
constexpr const char* kConv = "n (g c) s.., (g o) c k.., (g o)? -> n (g o) s'.. ; g = group";
constexpr const char* kLayerNorm = "b.. d~.., d.., d..? -> b.. d..";
constexpr const char* kSoftmax = "p.. d~ r.. -> p.. d r.. ; p = axis";
constexpr const char* kGather = "p.. i r.., j* -> p.. j* r.. ; p = axis";

Axes axes(std::string_view text) {
  Parsed<Axes> parsed = Axes::parse(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().text());
  return parsed ? *parsed : *Axes::parse("*");
}

AxesAttributes attribute(std::string name, int64_t value) {
  return [name, value](std::string_view asked) {
    return asked == name ? std::optional(value) : std::nullopt;
  };
}

AxesShape shape(std::initializer_list<int64_t> sizes) {
  AxesShape made;
  for (int64_t size : sizes)
    made.push_back({size, {}});
  return made;
}
AxesDim symbol(std::string text) {
  return {TN_DIM_UNKNOWN, std::move(text)};
}

std::string text_of(const Parsed<AxesInferred>& inferred) {
  if (!inferred) return inferred.error().text();
  std::string text;
  for (const AxesShape& output : inferred->outputs) {
    text += "[";
    for (const AxesDim& dim : output) {
      if (text.back() != '[') text += " ";
      text += dim.is_known() ? std::to_string(dim.size) : dim.symbol.empty() ? "?" : dim.symbol;
    }
    text += "]";
  }
  return text + (inferred->complete ? "" : " incomplete");
}

std::string inferred(std::string_view text, const AxesShapes& in, const AxesAttributes& a = {}) {
  return text_of(axes(text).infer(in, a));
}

std::string places(const Axes& of,
                   const AxesRanks& ranks,
                   std::string_view label,
                   const AxesAttributes& attributes = {}) {
  const Parsed<AxesLayout> layout = of.layout(ranks, attributes);
  if (!layout) return layout.error().text();
  std::string text;
  for (const AxesPlace& place : layout->places(*of.label(label), of.view()))
    text += std::to_string(place.operand) + ":" + std::to_string(place.axis) + "+" +
            std::to_string(place.count) + " ";
  return text;
}

std::string error_of(std::string_view text) {
  const Parsed<Axes> parsed = Axes::parse(text);
  return parsed ? "no error: " + parsed->text() : parsed.error().text();
}

TEST(Axes, PrintsTheCanonicalText) {
  EXPECT_EQ(axes(" B*  m k,B* k n->B* m n ").text(), kMatMul);
  EXPECT_EQ(axes("n (g c)s.., ( g o ) c k..,(g o) ?->n (g o) s'..;g=group").text(), kConv);
  EXPECT_EQ(axes(" * ").text(), "*");
  EXPECT_EQ(axes("[],x 1 (2 c)->[] ").text(), "[], x 1 (2 c) -> []");
}

TEST(Axes, TakesTheBatchForRunsThatOneInputFixes) {
  EXPECT_EQ(inferred("b* d~.., d.., d..? -> b* d..", {shape({2, 3, 4}), shape({4})}), "[2 3 4]");
  EXPECT_EQ(inferred("b* d~, d, d -> b* d", {shape({2, 4}), shape({4}), shape({4})}), "[2 4]");
  EXPECT_EQ(inferred("i, j* -> j*", {shape({9}), shape({2, 3})}), "[2 3]");
}

TEST(Axes, ReadsTheExamplesOfItsPage) {
  std::ifstream page(std::string(test::kSourceFolder) + "/abi/axes.md");
  size_t examples = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("    ") || line.find("->") == std::string::npos) continue;
    const std::string signature = line.substr(24);
    EXPECT_EQ(error_of(signature), "no error: " + signature);
    ++examples;
  }
  EXPECT_EQ(examples, 6u);
}

TEST(Axes, FillsTheTablesThatPluginsWalk) {
  const Axes conv = axes(kConv);
  const tn_axes view = conv.view();
  EXPECT_EQ(view.n_inputs, 3u);
  EXPECT_EQ(view.n_outputs, 1u);
  EXPECT_EQ(view.n_labels, 6u);
  const tn_axes_operand& weight = view.operands[1];
  EXPECT_EQ(weight.n_terms, 4u);
  EXPECT_EQ(weight.n_dims, 3u);
  EXPECT_EQ(view.operands[2].flags, TN_AXES_OPERAND_OPTIONAL);
  const tn_axes_term* terms = view.terms + weight.first_term;
  EXPECT_EQ(terms[0].flags, TN_AXES_TERM_GROUPED);
  EXPECT_EQ(terms[1].dim, 0u);
  EXPECT_EQ(terms[2].dim, 1u);
  EXPECT_EQ(terms[3].flags, TN_AXES_TERM_RUN);
  const tn_axes_label& g = view.labels[*conv.label("g")];
  EXPECT_EQ(conv.text().substr(g.name_offset, g.name_len), "g");
  EXPECT_EQ(conv.text().substr(g.bind_offset, g.bind_len), "group");
  for (uint32_t i = 0; i < view.n_terms; ++i) {
    const tn_axes_label& label = view.labels[view.terms[i].label];
    EXPECT_EQ(conv.text().substr(view.terms[i].column - 1, label.name_len),
              conv.text().substr(label.name_offset, label.name_len));
  }
  EXPECT_EQ(view.terms[view.n_terms - 1].flags, TN_AXES_TERM_RUN | TN_AXES_TERM_PRIMED);
}

TEST(Axes, FindsLabelsForConcreteRanks) {
  const Axes matmul = axes(kMatMul);
  EXPECT_EQ(places(matmul, {4, 2}, "k"), "0:3+1 1:0+1 ");
  EXPECT_EQ(places(matmul, {4, 3}, "B"), "0:0+2 1:0+1 2:0+2 ");
  EXPECT_EQ(places(axes(kConv), {4, 4, std::nullopt}, "o", attribute("group", 1)), "1:0+1 3:1+1 ");
  EXPECT_EQ(places(axes(kConv), {4, 4, 1}, "s", attribute("group", 1)), "0:2+2 3:2+2 ");
  EXPECT_EQ(places(axes(kLayerNorm), {3, 1}, "d"), "0:2+1 1:0+1 2:2+1 ");
  EXPECT_EQ(places(axes(kSoftmax), {4}, "d", attribute("axis", -1)), "0:3+1 1:3+1 ");
  EXPECT_EQ(places(axes(kSoftmax), {4}, "r", attribute("axis", 1)), "0:2+2 1:2+2 ");
}

TEST(Axes, InfersMatMulWithBroadcastBatches) {
  EXPECT_EQ(inferred(kMatMul, {shape({2, 3}), shape({3, 5})}), "[2 5]");
  EXPECT_EQ(inferred(kMatMul, {shape({7, 1, 2, 3}), shape({4, 3, 5})}), "[7 4 2 5]");
  EXPECT_EQ(inferred(kMatMul, {shape({2, 3}), shape({4, 5})}),
            "column 12: expected k = 3 (input 0 axis 1), got 4 (input 1 axis 0)");
  EXPECT_EQ(inferred(kMatMul, {shape({2, 2, 3}), shape({3, 3, 5})}),
            "column 9: expected B = 2 (input 0 axis 0), got 3 (input 1 axis 0)");
}

TEST(Axes, InfersConvWithGroups) {
  const auto group = attribute("group", 2);
  const AxesShapes in = {shape({1, 8, 5, 5}), shape({6, 4, 3, 3}), shape({6})};
  EXPECT_EQ(inferred(kConv, in, group), "[1 6 ? ?] incomplete");
  EXPECT_EQ(inferred(kConv, {shape({1, 9, 5, 5}), shape({6, 4, 3, 3})}, group),
            "column 4: expected product 8, got 9 (input 0 axis 1)");
  EXPECT_EQ(inferred(kConv, {shape({1, 8, 5, 5}), shape({6, 4, 3, 3}), shape({5})}, group),
            "column 28: expected 6 (input 1 axis 0), got 5 (input 2 axis 0)");
  EXPECT_EQ(inferred(kConv, in), "column 56: expected attribute group, got none");
}

TEST(Axes, SolvesAGroupFromItsOtherFactors) {
  const char* shuffle = "n (c r q) h w -> n c (h r) (w q) ; r = scale, q = scale";
  EXPECT_EQ(inferred(shuffle, {shape({1, 12, 4, 5})}, attribute("scale", 2)), "[1 3 8 10]");
  EXPECT_EQ(inferred("b.. (2 c) -> b.. c", {shape({3, 10})}), "[3 5]");
  EXPECT_EQ(inferred("b.. (2 c) -> b.. c", {shape({3, 9})}),
            "column 6: expected a multiple of 2, got 9 (input 0 axis 1)");
}

TEST(Axes, InfersNormsSoftmaxAndGather) {
  EXPECT_EQ(inferred(kLayerNorm, {shape({2, 3, 4, 5}), shape({4, 5})}), "[2 3 4 5]");
  EXPECT_EQ(inferred(kSoftmax, {shape({2, 3, 4})}, attribute("axis", -2)), "[2 3 4]");
  EXPECT_EQ(inferred(kGather, {shape({30, 8}), shape({2, 6})}, attribute("axis", 0)), "[2 6 8]");
  EXPECT_EQ(inferred(kGather, {shape({3, 30, 8}), shape({})}, attribute("axis", 1)), "[3 8]");
}

TEST(Axes, BroadcastsThePointwiseForm) {
  EXPECT_EQ(inferred("*", {shape({4, 1}), shape({3}), shape({})}), "[4 3]");
  EXPECT_EQ(inferred("*", {shape({4}), shape({3})}),
            "column 1: expected * = 4 (input 0 axis 0), got 3 (input 1 axis 0)");
}

TEST(Axes, CarriesSymbols) {
  const AxesShape x = {symbol("batch"), {16, {}}, {8, {}}};
  EXPECT_EQ(inferred(kMatMul, {x, shape({8, 4})}), "[batch 16 4]");
  EXPECT_EQ(inferred("*", {AxesShape{symbol("n")}, AxesShape{symbol("n")}}), "[n]");
  EXPECT_EQ(inferred("*", {AxesShape{symbol("n")}, AxesShape{symbol("m")}}), "[?]");
  EXPECT_EQ(inferred("*", {AxesShape{symbol("n")}, shape({1})}), "[n]");
  EXPECT_EQ(inferred("*", {AxesShape{symbol("n")}, shape({6})}), "[6]");
  EXPECT_EQ(inferred("a b, a -> b", {AxesShape{symbol("n"), symbol("m")}, shape({3})}), "[m]");
  EXPECT_EQ(inferred("(g c), (g c) -> (g c)", {AxesShape{symbol("n")}, AxesShape{{}}}), "[n]");
}

TEST(Axes, ChecksWhatTheShapeColumnSaid) {
  const Axes conv = axes(kConv);
  const AxesShapes in = {shape({1, 8, 5, 5}), shape({6, 8, 3, 3}), std::nullopt};
  const auto group = attribute("group", 1);
  EXPECT_FALSE(conv.disagreement(in, {shape({1, 6, 3, 3})}, group));
  EXPECT_EQ(conv.disagreement(in, {shape({1, 8, 3, 3})}, group)->text(),
            "column 1: expected size 6 of output 0 axis 1, got 8");
  EXPECT_EQ(conv.disagreement(in, {shape({1, 6, 3})}, group)->text(),
            "column 1: expected rank 4 of output 0, got 3");
}

TEST(Axes, NamesWrongRanksAndCounts) {
  EXPECT_EQ(inferred(kMatMul, {shape({3}), shape({3, 5})}),
            "column 1: expected rank at least 2 of input 0, got 1");
  EXPECT_EQ(inferred("m k -> m", {shape({3, 4, 5})}),
            "column 1: expected rank 2 of input 0, got 3");
  EXPECT_EQ(inferred(kMatMul, {shape({3, 3})}), "column 1: expected 2 to 2 inputs, got 1");
  EXPECT_EQ(inferred("x.., y..? -> y..", {shape({3})}),
            "column 14: expected an input that fixes the length of run 'y', got it absent");
  EXPECT_EQ(inferred(kSoftmax, {shape({3})}, attribute("axis", 3)),
            "column 1: expected rank at least 4 of input 0, got 1");
  EXPECT_EQ(inferred(kSoftmax, {shape({3})}, attribute("axis", -2)),
            "column 31: expected an axis within the rank, got -1");
}

TEST(Axes, NeverOverflows) {
  const AxesShapes in = {shape({INT64_MAX}), shape({INT64_MAX})};
  EXPECT_EQ(inferred("a, b -> (a b)", in),
            "column 10: expected a product below 2^63, got an overflow");
}

TEST(Axes, SaysWhereTheTextIsWrong) {
  EXPECT_EQ(error_of(""), "column 1: expected a label, a size, '(' or [], got end of text");
  EXPECT_EQ(error_of("m k"), "column 4: expected ',' or '->', got end of text");
  EXPECT_EQ(error_of("m -> m]"), "column 7: expected ',', ';' or the end, got ']'");
  EXPECT_EQ(error_of("(m) -> m"), "column 3: expected at least two factors in ( ), got ')'");
  EXPECT_EQ(error_of("(m k, n -> m"), "column 5: expected a label, a size or ')', got ','");
  EXPECT_EQ(error_of("(m k..) -> m"),
            "column 4: expected a plain label inside ( ), got 'k' with a mark");
  EXPECT_EQ(error_of("m -> n"),
            "column 6: expected a label of the inputs, a primed or a bound one, got 'n'");
  EXPECT_EQ(error_of("m' -> m"),
            "column 1: expected primes in outputs only, got 'm' primed in an input");
  EXPECT_EQ(error_of("s.. -> s"),
            "column 8: expected 's' as before, a run (..), got it as one axis");
  EXPECT_EQ(error_of("s.. s.. -> s.."), "column 5: expected a run once per operand, got 's' again");
  EXPECT_EQ(error_of("p.. r.. -> p.."),
            "column 5: expected ranks that fix the length of every run (bind it: ; r = attribute), "
            "got 'r' open");
  EXPECT_EQ(error_of("m -> m ; k = axis"), "column 10: expected a label of the signature, got k");
  EXPECT_EQ(error_of("m -> m ; m axis"), "column 12: expected '=', got 'axis'");
  EXPECT_EQ(error_of("0 -> m'"), "column 1: expected a size from 1 to 4294967295, got '0'");
  EXPECT_EQ(error_of("* m"), "column 3: expected the end after '*', got 'm'");
}

TEST(Axes, SurvivesRandomTextAndShapes) {
  const std::vector<std::string> corpus = {kMatMul,
                                           kConv,
                                           kLayerNorm,
                                           kSoftmax,
                                           kGather,
                                           "*",
                                           "[], x 1 -> [] ",
                                           "n (c r q) h w -> n c (h r) (w q) ; r = axis, q = axis",
                                           "a b, a -> b (2 a) i'"};
  std::mt19937 random(20261122);
  const auto below = [&](int64_t n) {
    return std::uniform_int_distribution<int64_t>(0, n - 1)(random);
  };
  size_t accepted = 0, shaped = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string text = tests::mutated(corpus, "mknBgs(),->*.~'?;=[]12 \xff", random);
    const Parsed<Axes> parsed = Axes::parse(text);
    if (!parsed) {
      EXPECT_GE(parsed.error().column, 1u);
      EXPECT_LE(parsed.error().column, text.size() + 1) << text;
      continue;
    }
    ++accepted;
    const Parsed<Axes> again = Axes::parse(parsed->text());
    ASSERT_TRUE(again) << text << " -> " << parsed->text() << ": " << again.error().text();
    EXPECT_EQ(again->text(), parsed->text());
    for (int round = 0; round < 20; ++round) {
      AxesShapes in(
          static_cast<size_t>(parsed->is_pointwise() ? 1 + below(3) : parsed->view().n_inputs));
      for (auto& input : in) {
        if (below(8) == 0) continue;
        input.emplace(static_cast<size_t>(below(5)));
        for (AxesDim& dim : *input)
          dim = below(6) ? AxesDim{1 + below(2)} : AxesDim{-1, "s"};
      }
      const auto result = parsed->infer(in, [&](std::string_view) { return below(5) - 2; });
      shaped += result ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 500u);
  EXPECT_GT(shaped, 500u);
}

}  // namespace
}  // namespace tenon::host
