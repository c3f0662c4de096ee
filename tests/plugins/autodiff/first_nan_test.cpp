// SPDX-License-Identifier: Apache-2.0
// autodiff.first_nan: which value of a graph has a NaN first.
#include "plugins/autodiff/autodiff_test.hpp"

namespace tenon::test {
namespace {

class FirstNan : public AutodiffTest {
 protected:
  // What the pass says of a graph run on x: the name in the report, or "none".
  std::string first(const std::string& text, const Numbers& x) {
    OwnedGraph f = parse(text);
    tn_graph* made = nullptr;
    StringSink report;
    EXPECT_EQ(text_of(Status(tenon_apply(session_, f.get(), str("autodiff.first_nan"), nullptr,
                                         nullptr, report.get(), &made))),
              "");
    if (!made) return "the pass failed";
    OwnedGraph g = OwnedGraph::take(made);
    json values = json::parse(report.text)["values"];
    auto at = static_cast<size_t>(results(g, {x}).back().at(0));
    return at < values.size() ? values[at].get<std::string>() : "none";
  }
};

constexpr const char* kLoss = R"(graph {
  input %x: f64[2]
  %log: f64[2] = Log(%x) @the_log
  %root: f64[2] = Sqrt(%log) @the_root
  %loss: f64[] = ReduceSum(%root) {keepdims = 0} @sum
  output loss = %loss
})";

TEST_F(FirstNan, NamesTheNodeThatMadeIt) {
  EXPECT_EQ(first(kLoss, {2, 3}), "none");
  EXPECT_EQ(first(kLoss, {2, -1}), "operator Log (node the_log)");
  EXPECT_EQ(first(kLoss, {2, 0.5}), "operator Sqrt (node the_root)") << "log(0.5) is below zero";
  EXPECT_EQ(first(kLoss, {NAN, 1}), "input x");
}

TEST_F(FirstNan, InWhatSequencesAndOptionalValuesHold) {
  constexpr const char* kHeld = R"(graph {
    input %x: f64[2]
    %root: f64[2] = Sqrt(%x) @the_root
    %list: seq f64[2] = SequenceConstruct(%root, %root) @list
    %all: f64[4] = ConcatFromSequence(%list) {axis = 0} @all
    %maybe: opt f64[4] = Optional(%all) @maybe
    %got: f64[4] = OptionalGetElement(%maybe) @got
    output y = %got
  })";
  EXPECT_EQ(first(kHeld, {1, 4}), "none");
  EXPECT_EQ(first(kHeld, {1, -4}), "operator Sqrt (node the_root)");
}

TEST_F(FirstNan, InAGradientThatItsLossDoesNotShow) {
  // The gradient of sqrt at 0 is infinite, and infinite times 0 is NaN.
  OwnedGraph g = applied(parse(R"(graph {
    input %x: f64[]
    %square: f64[] = Mul(%x, %x) @square
    %root: f64[] = Sqrt(%square) @root
    output loss = %root
  })"),
                         "autodiff.value_and_grad");
  StringSink text;
  ASSERT_TRUE(Status(services.graph->print(g.get(), 0, text.get())).ok());
  EXPECT_EQ(first(text.text, {2}), "none");
  EXPECT_NE(first(text.text, {0}).find("operator Mul"), std::string::npos);
}

}  // namespace
}  // namespace tenon::test
