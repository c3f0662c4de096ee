// SPDX-License-Identifier: Apache-2.0
// Rows: bad columns are refused when a row is added, versions stand beside each other, and columns
// are handed out parsed.
#include <cmath>

#include <gmock/gmock.h>

#include "tenon/host/op_columns.h"

#include "host/graph/graph_fixture.hpp"

namespace tenon::host::test {
namespace {

using testing::HasSubstr;

class OpTableTest : public GraphTest {
 protected:
  std::string refusal(const tn_op& op) { return session_.ops->add(&op, ctx()).text(); }
  std::string set_text(tn_node_id id, std::string_view name, std::string_view text) {
    tn_any value{TN_ANY_TEXT, 0, text.size(), {.p = text.data()}};
    return text_of(edits.set_attr(edit_, id, str(name), value));
  }
  static tn_op row(tn_str tn_op::* column, std::string_view text) {
    tn_op op = op_row("Odd", 0, "B* m k, B* k n -> B* m n", "");
    op.*column = str(text);
    return op;
  }
};

TEST_F(OpTableTest, ABadColumnIsRefusedWithItsNameAndPlace) {
  EXPECT_EQ(refusal(row(&tn_op::quant, "compute act=0 weight=2")),
            "operator Odd: quant: column 22: expected an input from 0 to 1, got 2");
  EXPECT_THAT(refusal(row(&tn_op::cast, "cpu=half")), HasSubstr("operator Odd: cast: column 5: "));
  EXPECT_THAT(refusal(row(&tn_op::recompute, "often")),
              HasSubstr("operator Odd: recompute: column 1: "));
  EXPECT_EQ(refusal(row(&tn_op::coupling, "concat axis=along")),
            "operator Odd: coupling: column 13: expected an attribute of the row, got 'along'");
  EXPECT_EQ(refusal(op_row("Odd", 0, "", "x + x")),
            "operator Odd: expr: expected the trait TN_OP_POINTWISE beside it");
  EXPECT_EQ(session_.ops->find("", "Odd"), nullptr);
}

TEST_F(OpTableTest, AttributesHaveKnownMembersAndOneNameEach) {
  auto refused = [&](std::string_view attributes) {
    return refusal(row(&tn_op::attributes, attributes));
  };

  EXPECT_THAT(refused(R"([{"name": "a", "type": "int", "defalt": 3}])"),
              HasSubstr("unknown member defalt (did you mean 'default'?)"));
  EXPECT_THAT(refused(R"([{"name": "a", "type": "int"}, {"name": "a", "type": "float"}])"),
              HasSubstr("expected each name once, got 'a'"));
  EXPECT_THAT(refused(R"([{"name": "", "type": "int"}])"), HasSubstr("each name once, got ''"));
  EXPECT_EQ(refused(R"([{"name": "a", "type": "int", "default": 3, "help": "any"}])"), "");
}

TEST_F(OpTableTest, ATextWithoutDataIsNoType) {
  tn_op op = op_row("Odd", 0, "", "");
  op.type.data = nullptr;

  EXPECT_THAT(refusal(op), HasSubstr("expected a type"));
}

TEST_F(OpTableTest, ColumnsAreHandedOutParsed) {
  ASSERT_EQ(refusal(row(&tn_op::quant, "compute act=0 weight=1 axis=1")), "");
  const tn_op* odd = &session_.ops->find("", "Odd")->op;

  const tn_op_columns* columns = op_columns_service()->columns(odd);

  ASSERT_NE(columns, nullptr);
  EXPECT_EQ(columns->quant, TN_QUANT_COMPUTE);
  ASSERT_EQ(columns->n_products, 1u);
  EXPECT_EQ(columns->products[0].axis.value, 1);
  EXPECT_EQ(columns->recompute, TN_RECOMPUTE_EXPENSIVE);
  tn_op own = *odd;  // only looks like one of the host's
  EXPECT_EQ(op_columns_service()->columns(&own), nullptr);
}

TEST_F(OpTableTest, AxesAreLaidOverANode) {
  begin();
  tn_value_id a = input("a", TypeOf(TN_F32, {5, 2, 3})), b = input("b", TypeOf(TN_F32, {3, 4}));
  tn_node_id id = node("MatMul", {a, b}).node;
  uint64_t n = 0;
  std::vector<tn_axes_place> places(16);

  ASSERT_EQ(text_of(op_columns_service()->layout(now(), id, places.data(), places.size(), &n)), "");

  ASSERT_EQ(n, 9u);  // B* m k, B* k n -> B* m n
  EXPECT_EQ(places[0].count, 1u);
  EXPECT_EQ(places[2].axis, 2u) << "k of the first input";
  EXPECT_EQ(places[3].count, 0u) << "the second has no batch";
  EXPECT_EQ(places[4].operand, 1u);
  EXPECT_EQ(places[4].axis, 0u);
  tn_node_id relu = node("Relu", {a}).node;
  EXPECT_EQ(code_of(op_columns_service()->layout(now(), relu, nullptr, 0, &n)), TN_NOT_FOUND);
}

TEST_F(OpTableTest, VersionsOfOneOperatorStandBesideEachOther) {
  for (uint64_t version : {3, 7}) {
    tn_op op = op_row("Odd", TN_OP_POINTWISE, "", "x");
    op.since_version = version;
    ASSERT_EQ(refusal(op), "");
    EXPECT_THAT(refusal(op), HasSubstr("operator Odd: brought by")) << "the same once more";
  }
  auto version = [&](uint64_t asked) {
    const OpRow* found = session_.ops->find("", "Odd", asked);
    return found ? found->op.since_version : 0;
  };
  EXPECT_EQ(version(2), 0u);
  EXPECT_EQ(version(3), 3u);
  EXPECT_EQ(version(6), 3u);
  EXPECT_EQ(version(7), 7u);
  EXPECT_EQ(version(OpTable::kNewest), 7u);
  EXPECT_EQ(session_.ops->find("", "Odc"), nullptr);
}

// By its type first: domains are long, and like each other.
TEST_F(OpTableTest, AnUnknownNameIsLikeOneOfItsTypeOrOfItsDomain) {
  for (auto [domain, type] : {std::pair{"", "Odd"}, {"acme", "Eighth"}, {"acme", "Odder"}}) {
    tn_op op = op_row(type, TN_OP_POINTWISE, "", "x");
    op.domain = str(domain);
    ASSERT_EQ(refusal(op), "");
  }
  auto hint = [&](std::string_view name) { return session_.ops->hint(name); };
  EXPECT_EQ(hint("acme.Odd"), " (did you mean 'Odd'?)");
  EXPECT_EQ(hint("Eighth"), " (did you mean 'acme.Eighth'?)");
  EXPECT_EQ(hint("acne.Eighth"), " (did you mean 'acme.Eighth'?)");
  EXPECT_EQ(hint("acme.Odde"), " (did you mean 'acme.Odder'?)");
  EXPECT_EQ(hint("acme.Zzzz"), "");
}

TEST_F(OpTableTest, AProgramIsKeptForEachSetOfTexts) {
  add_row(op_row("Either", TN_OP_POINTWISE, "",
                 R"(a == "p" ? (b == "z" ? x : x + 1) : (b == "z" ? x + 2 : x + 3))",
                 R"([{"name": "a", "type": "string", "default": ""},
                     {"name": "b", "type": "string", "default": ""}])"));
  begin();
  tn_value_id x = input("x", TypeOf(TN_F32, {1}));
  auto program = [&](std::string_view a, std::string_view b) {
    tn_node_id id = node("Either", {x}).node;
    EXPECT_EQ(set_text(id, "a", a) + set_text(id, "b", b), "");
    const tn_expr_program* made = nullptr;
    EXPECT_EQ(text_of(op_service()->expr(now(), id, &made)), "");
    return made;
  };

  EXPECT_NE(program("p", "y|4:z"), program("p|4:y", "z"));
}

class Evaluate : public testing::Test {
 protected:
  std::string refusal(uint32_t domain = TN_EXPR_DOMAIN_FLOAT, uint32_t bits = 0) {
    tn_expr_program program{nodes_.data(), nodes_.size(), 1, domain, bits, 0};
    const void* in[] = {&x_, nullptr};
    return Status(op_service()->evaluate(&program, in, 2, 1, &out_)).text();
  }
  double x_ = 2, out_ = 0;
  std::vector<tn_expr_node> nodes_{{TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_MUL, 0, 0, 0, 0}};
};

TEST_F(Evaluate, GivesTheValueOfAProgram) {
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(out_, 4);
}

TEST_F(Evaluate, RefusesWhatIsNoProgram) {
  nodes_[1].b = 1;
  EXPECT_THAT(refusal(), HasSubstr("evaluate: node 1: expected operands before it"));
  nodes_[1] = {TN_EXPR_SHL, 0, 0, 0, 0};
  EXPECT_THAT(refusal(), HasSubstr("node 1: no intrinsic 86 in its domain"));
  EXPECT_THAT(refusal(TN_EXPR_DOMAIN_INT, 65), HasSubstr("1 to 64 bits"));
  nodes_[1] = {9999, 0, 0, 0, 0};
  EXPECT_THAT(refusal(), HasSubstr("no intrinsic 9999"));
  for (uint32_t input : {1u, 2u}) {  // absent, and beyond the list
    nodes_ = {{TN_EXPR_INPUT, input, 0, 0, 0}};
    EXPECT_THAT(refusal(), HasSubstr(cat("it reads input ", input, ", which is not there")));
  }
  nodes_.clear();
  EXPECT_THAT(refusal(), HasSubstr("expected at least one node"));
}

TEST_F(Evaluate, RefusesConstantsThatTheirTypeDoesNotHold) {
  for (double number : {128.0, -129.0, 0.5, 1e300, std::nan("")}) {
    nodes_ = {{TN_EXPR_CONST, 0, 0, 0, number}};
    EXPECT_THAT(refusal(TN_EXPR_DOMAIN_INT, 8),
                HasSubstr("node 0: expected a whole number that its type holds, got "));
    EXPECT_EQ(refusal(), "");
  }
  nodes_[0].imm = -1;
  EXPECT_THAT(refusal(TN_EXPR_DOMAIN_UINT, 8), HasSubstr("got -1"));
  EXPECT_EQ(refusal(TN_EXPR_DOMAIN_INT, 8), "");
}

}  // namespace
}  // namespace tenon::host::test
