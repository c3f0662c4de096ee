// SPDX-License-Identifier: Apache-2.0
#include "plugins/datasets/dataset_test.hpp"

namespace tenon::test {
namespace {

class Csv : public DatasetTest {
 protected:
  json options(std::string_view text, const json& more = json::object()) {
    json out{{"path", write("table.csv", text)}};
    out.update(more);
    return out;
  }
  std::string refused(std::string_view text, const json& more = json::object()) {
    return refusal(kRole, "datasets.csv", options(text, more));
  }
};

TEST_F(Csv, ReadsNumbersAndALabelByName) {
  Component data = open("datasets.csv", options("a,kind,b\n1,cat,2.5\r\n-3,dog,4e1\n\n5,cat,6\n",
                                                {{"label", "kind"}}));
  Collected got(ctx_);

  EXPECT_EQ(batch(data, {0, 1, 2}, &got), "");

  EXPECT_THAT(got.numbers<float>(0), ElementsAre(1, 2.5, -3, 40, 5, 6));
  EXPECT_THAT(got.numbers<int64_t>(1), ElementsAre(0, 1, 0));
  EXPECT_EQ(fields(data)[1]["name"], "label");
}

TEST_F(Csv, TakesTheLastColumnAsLabelWithoutHeader) {
  for (const json& last : {json("-1"), json(-1), json(2)}) {
    Component data = open("datasets.csv", options("1,2,0\n3,4,1\n", {{"label", last}}));
    Collected got(ctx_);

    EXPECT_EQ(batch(data, {1}, &got), "");

    EXPECT_EQ(size(data), 2u);
    EXPECT_THAT(got.numbers<float>(0), ElementsAre(3, 4));
    EXPECT_THAT(got.numbers<int64_t>(1), ElementsAre(1));
  }
}

TEST_F(Csv, KeepsFractionsOfALabelAsNumbers) {
  Component data = open("datasets.csv", options("x,y\n1,0.5\n2,1\n", {{"label", "y"}}));
  Collected got(ctx_);

  EXPECT_EQ(batch(data, {0, 1}, &got), "");

  EXPECT_THAT(got.numbers<float>(1), ElementsAre(0.5, 1));
}

TEST_F(Csv, KeepsAllBitsOfLabels) {
  Component data = open("datasets.csv",
                        options("1,9007199254740993\n2,-9223372036854775808\n", {{"label", -1}}));
  Collected got(ctx_);

  EXPECT_EQ(batch(data, {0, 1}, &got), "");

  EXPECT_THAT(got.numbers<int64_t>(1), ElementsAre((int64_t{1} << 53) + 1, INT64_MIN));
}

TEST_F(Csv, ReadsQuotedCells) {
  Component data =
      open("datasets.csv", options("\"a, \"\"b\"\"\";c\n\"1\";2\n", {{"delimiter", ";"}}));

  EXPECT_EQ(fields(data)[0]["shape"], json::array({2}));
}

TEST_F(Csv, TakesTheColumnsThatAreNamedInTheirOrder) {
  Component data = open("datasets.csv", options("id,a,b,kind\nx,1,2,0\ny,3,4,1\n",
                                                {{"label", "kind"}, {"columns", {"b", "1"}}}));
  Collected got(ctx_);

  EXPECT_EQ(batch(data, {1, 0}, &got), "");

  EXPECT_THAT(got.numbers<float>(0), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(got.numbers<int64_t>(1), ElementsAre(1, 0));
  EXPECT_THAT(refused("a,b\n1,2\n", {{"columns", {"c"}}}),
              HasSubstr("option columns: expected a column's name or a number below 2, got 'c'"));
}

TEST_F(Csv, RefusesNumbersThatFloat32DoesNotHold) {
  EXPECT_THAT(refused("1,2\n-1e39,4\n"),
              HasSubstr("line 2, column 1: expected a number that float32 holds, got '-1e39'"));
  EXPECT_THAT(refused("1,0.5\n2,1e39\n", {{"label", "1"}}), HasSubstr("line 2, column 2"));
}

// It would make texts of all labels, whose numbers as classes are others.
TEST_F(Csv, RefusesALabelThatIsMissing) {
  EXPECT_THAT(refused("x,y\n1,10\n2, \n3,2\n", {{"label", "y"}}),
              HasSubstr("line 3, column 2: expected a label, got an empty cell"));
}

TEST_F(Csv, RefusesTwoFieldsOfOneName) {
  EXPECT_THAT(refused("1,2\n3,4\n", {{"label", "1"}, {"field", "label"}}),
              HasSubstr("expected fields of different names, got two that are called label"));
}

TEST_F(Csv, NamesTheLineOfWhatIsWrong) {
  EXPECT_THAT(refused("1,2\n3,4\n5\n"), HasSubstr("table.csv: line 3: expected 2 cells, got 1"));
  EXPECT_THAT(refused("a,b\n1,2\n1,x\n"),
              HasSubstr("line 3, column 2: expected a number, got 'x'"));
  EXPECT_THAT(refused("1,\"2\n3,4\n"), HasSubstr("line 1: a quote is never closed"));
  EXPECT_THAT(refused(""), HasSubstr("empty"));
  EXPECT_THAT(refused("a,b\n"), HasSubstr("a header and no rows"));
  EXPECT_THAT(refused("1,2\n", {{"label", "kind"}}), HasSubstr("option label"));
  EXPECT_THAT(refused("1,2\n", {{"label", "2"}}), HasSubstr("a number below 2"));
  EXPECT_THAT(refused("1,2\n", {{"delimiter", "::"}}), HasSubstr("expected one character"));
}

}  // namespace
}  // namespace tenon::test
