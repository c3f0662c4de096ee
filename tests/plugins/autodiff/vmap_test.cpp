// SPDX-License-Identifier: Apache-2.0
// vmap: every row against a loop over its own sample, and what the pass does with a graph.
#include <set>

#include <gmock/gmock.h>

#include "plugins/autodiff/row_samples.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kSeeds = 3;
constexpr int64_t kExamples = 3;

class Vmap : public AutodiffTest {};

constexpr const char* kMultiply = R"(graph {
  input %x: f64[]
  input %y: f64[]
  %z: f64[] = Mul(%x, %y) @z
  output z = %z
})";

TEST_F(Vmap, Multiply) {
  OwnedGraph f = parse(kMultiply);
  OwnedGraph v = applied(f, "autodiff.vmap", {{"axis_size", 2}});
  EXPECT_EQ(v.view().input_name(0), "x");
  EXPECT_THAT(results(v, {{1, 2}, {4, 5}}), ElementsAre(Numbers{4, 10}));
  v = applied(f, "autodiff.vmap", {{"axis_size", 2}, {"in_axes", "0, none"}});
  EXPECT_THAT(results(v, {{1, 2}, {4}}), ElementsAre(Numbers{4, 8}));
  // Twice: all pairs.
  v = applied(v, "autodiff.vmap", {{"axis_size", 3}, {"in_axes", "none, 0"}});
  EXPECT_THAT(results(v, {{1, 2}, {4, 5, 6}}), ElementsAre(Numbers{4, 8, 5, 10, 6, 12}));
}

TEST_F(Vmap, PutsAxesWhereTheyAreWanted) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[2]
    %s: f64[2] = Neg(%x) @s
    constant %one: f64[] = [1]
    %c: f64[] = Exp(%one) @c
    output s = %s
    output c = %c
  })");
  OwnedGraph v =
      applied(f, "autodiff.vmap", {{"axis_size", 3}, {"in_axes", -1}, {"out_axes", "1, none"}});
  EXPECT_EQ(v.view().inputs()[0].type().dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(v.view().outputs()[0].type().dims, (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(results(v, {{1, 2, 3, 4, 5, 6}})[0], ElementsAre(-1, -2, -3, -4, -5, -6));
  EXPECT_EQ(v.view().outputs()[1].type().rank(), 0u);
}

TEST_F(Vmap, ComposesWithGrad) {
  OwnedGraph f = parse(R"(graph {
    input %w: f64[2, 2]
    input %x: f64[2]
    %y: f64[2] = MatMul(%w, %x) @y
    %t: f64[2] = Tanh(%y) @t
    %l: f64[] = ReduceSum(%t) {keepdims = 0} @l
    output l = %l
  })");
  OwnedGraph per_example = applied(applied(f, "autodiff.grad"), "autodiff.vmap",
                                   {{"axis_size", 2}, {"in_axes", "none, 0"}});
  Numbers w{0.1, 0.2, 0.3, 0.4};
  auto both = results(per_example, {w, {1, 2, 3, 4}})[0];
  OwnedGraph g = applied(f, "autodiff.grad");
  for (int k = 0; k < 2; ++k) {
    auto one = results(g, {w, {1.0 + 2 * k, 2.0 + 2 * k}})[0];
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(both[static_cast<size_t>(k) * 4 + i], one[i], 1e-12);
  }
}

TEST_F(Vmap, Errors) {
  EXPECT_THAT(refused(kMultiply, "autodiff.vmap", {{"in_axes", "0"}}),
              HasSubstr("option in_axes: expected one entry for each of 2 inputs, got 1"));
  EXPECT_THAT(refused(kMultiply, "autodiff.vmap", {{"in_axes", "0, one"}}),
              HasSubstr("expected integers or none, separated by commas, got 'one'"));
  EXPECT_THAT(refused(kMultiply, "autodiff.vmap", {{"in_axes", 2}}),
              HasSubstr("input x: expected an axis in -1..0, got 2"));
  EXPECT_THAT(refused(kMultiply, "autodiff.vmap", {{"out_axes", "none"}}),
              HasSubstr("output z: expected an axis, for it differs by example, got none"));
  EXPECT_THAT(refused(R"(graph {
    input %x: f32[2, 3]
    constant %c: f32[3] = [1, 1, 1]
    %y: f32[2, 3], %m: f32[3], %v: f32[3] = BatchNormalization(%x, %c, %c, %c, %c) {training_mode = 1} @bn
    output y = %y
  })",
                      "autodiff.vmap"),
              HasSubstr("operator BatchNormalization (node bn)"));
  OwnedGraph two = applied(parse(kMultiply), "autodiff.vmap");
  std::vector<Numbers> out;
  OwnedGraph fixed = applied(parse(kMultiply), "autodiff.vmap", {{"axis_size", 2}});
  Status other = run(two.get(), {{1, 2}, {1, 2, 3}}, out);
  EXPECT_THAT(text_of(std::move(other)),
              HasSubstr("input y: dimension 0: vmap is 2 elsewhere, got 3"));
}

class VmapConformance : public RowSamples {
 protected:
  // Compares with a loop; inputs at `shared` have no new axis. False when the row has no input.
  bool check(const OwnedGraph& f, size_t shared, std::string& loops) {
    std::vector<Value> inputs = f.view().inputs();
    if (inputs.empty() || (shared != SIZE_MAX && inputs.size() < 2)) return false;
    std::string axes;
    for (size_t i = 0; i < inputs.size(); ++i)
      axes += cat(i ? ", " : "", i == shared ? "none" : "0");
    json options{{"axis_size", kExamples}, {"in_axes", axes}};
    tn_options* parsed = nullptr;
    EXPECT_EQ(text_of(Status(services.options->create(ctx_, &parsed))), "");
    EXPECT_EQ(text_of(Status(services.options->parse(parsed, str(options.dump())))), "");
    tn_graph* made = nullptr;
    StringSink report;
    std::string failed = text_of(Status(tenon_apply(session_, f.get(), str("autodiff.vmap"), parsed,
                                                    nullptr, report.get(), &made)));
    services.options->release(parsed);
    EXPECT_EQ(failed, "");
    if (!failed.empty()) return true;
    OwnedGraph v = OwnedGraph::take(made);
    loops = json::parse(report.text)["loops"].empty() ? "" : report.text;
    std::mt19937 random(5);
    std::vector<Numbers> all;
    for (size_t i = 0; i < inputs.size(); ++i)
      all.push_back(
          random_numbers(inputs[i].type().elements() * (i == shared ? 1 : kExamples), random));
    std::vector<Numbers> wide = results(v, all);
    for (int64_t k = 0; k < kExamples; ++k) {
      std::vector<Numbers> one;
      for (size_t i = 0; i < inputs.size(); ++i) {
        int64_t n = inputs[i].type().elements(), from = i == shared ? 0 : k * n;
        one.emplace_back(all[i].begin() + from, all[i].begin() + from + n);
      }
      std::vector<Numbers> expected = results(f, one);
      EXPECT_EQ(wide.size(), expected.size());
      for (size_t o = 0; o < std::min(wide.size(), expected.size()); ++o) {
        size_t n = expected[o].size(), from = static_cast<size_t>(k) * n;
        EXPECT_GE(wide[o].size(), from + n) << "output " << o;
        double worst = 0;
        for (size_t i = 0; i < n && from + i < wide[o].size(); ++i) {
          double a = wide[o][from + i], b = expected[o][i];
          if (a == b || (std::isnan(a) && std::isnan(b))) continue;
          worst = std::max(worst, std::fabs(a - b) / std::max(1.0, std::fabs(b)));
        }
        EXPECT_LT(worst, 1e-5) << "output " << o << " example " << k;
      }
    }
    return true;
  }
};

TEST_F(VmapConformance, OperandsWithoutTheBatchTakeNoPartInIt) {
  std::string rows = cat(kTestPluginFolder, "/vmap/batched.so");
  ASSERT_EQ(text_of(Status(tenon_plugin_load(session_, str(rows)))), "");
  OwnedGraph f = parse(R"(graph {
    input %x: f32[2, 2]
    constant %a: f32[2, 3] = [1, 2, 3, 4, 5, 6]
    constant %b: f32[2, 3] = [6, 5, 4, 3, 2, 1]
    %y: f32[2, 3] = batched:TwoProducts(%x, %a, %b) @y
    output y = %y
  })");
  std::string loops;

  EXPECT_TRUE(check(f, SIZE_MAX, loops));
  EXPECT_EQ(loops, "");
  OwnedGraph v = applied(f, "autodiff.vmap", {{"axis_size", 3}});
  EXPECT_EQ(v.view().outputs()[0].type().dims, (std::vector<int64_t>{3, 2, 3}));
}

// Their results depend on more than one example, on data, or on bodies.
bool has_no_batch(std::string_view type) {
  constexpr std::string_view kNone[] = {"NonZero", "Compress", "Unique", "NonMaxSuppression",
                                        "FlexAttention"};
  return std::find(std::begin(kNone), std::end(kNone), type) != std::end(kNone);
}

TEST_F(VmapConformance, EqualsALoop) {
  int checked = 0;
  std::set<std::string> looped;
  for (const tn_op* row : sampled_rows()) {
    if (has_no_batch(view(row->type))) continue;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      auto f = sample(row, seed);
      ASSERT_TRUE(f.ok()) << view(row->type) << text_of(f.status());
      bool training = view(row->type) == "BatchNormalization" && f->view().outputs().size() > 1;
      if (training) continue;
      for (size_t shared : {SIZE_MAX, size_t{0}, size_t{1}}) {
        SCOPED_TRACE(cat(view(row->type), " seed ", seed, " shared ", shared));
        std::string loops;
        checked += check(*f, shared, loops);
        if (!loops.empty()) looped.insert(std::string(view(row->type)));
      }
    }
  }
  if (!is_for_all_rows()) return;
  EXPECT_GT(checked, 500);
  std::string list;
  for (const std::string& type : looped)
    list += type + " ";
  std::printf("rows that vmap as a loop, %zu: %s\n", looped.size(), list.c_str());
  // At most 12, and none that a model of the zoo trains with.
  EXPECT_THAT(looped,
              ElementsAre("DynamicQuantizeLinear", "DynamicQuantizeMatMul", "TfIdfVectorizer"));
}

}  // namespace
}  // namespace tenon::test
