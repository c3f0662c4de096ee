// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "plugins/datasets/dataset_test.hpp"

namespace tenon::test {
namespace {

class Subset : public DatasetTest {
 protected:
  void SetUp() override {
    DatasetTest::SetUp();
    std::string text;
    for (int i = 0; i < 11; ++i)
      text += std::to_string(i) + "\n";
    path_ = write("n.csv", text);
  }
  json options(const json& more) {
    json out{{"data", path_}};
    out.update(more);
    return out;
  }
  std::vector<float> take(const json& more) {
    Component data = open("datasets.subset", options(more));
    std::vector<uint64_t> index(size(data));
    for (size_t i = 0; i < index.size(); ++i)
      index[i] = i;
    Collected got(ctx_);
    EXPECT_EQ(batch(data, index, &got), "");
    return got.numbers<float>(0);
  }
  std::string path_;
};

TEST_F(Subset, TwoPartsOfAShuffleAreASplit) {
  std::vector<float> a = take({{"to", 0.7}, {"seed", 3}}), b = take({{"from", 0.7}, {"seed", 3}});

  std::set<float> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  EXPECT_EQ(a.size(), 8u);
  EXPECT_EQ(b.size(), 3u);
  EXPECT_EQ(all.size(), 11u);
  EXPECT_EQ(a, take({{"to", 0.7}, {"seed", 3}}));
  EXPECT_NE(a, take({{"to", 0.7}, {"seed", 4}}));
}

TEST_F(Subset, TakesARangeInOrder) {
  EXPECT_THAT(take({{"skip", 2}, {"count", 3}}), ElementsAre(2, 3, 4));
}

TEST_F(Subset, TakesSamplesByTheirNumbers) {
  EXPECT_THAT(take({{"samples", {7, 0, 7, 10}}}), ElementsAre(7, 0, 7, 10));
  EXPECT_THAT(take({{"samples", 4}}), ElementsAre(4));
}

// Messages name the sample of the file, whatever part of a part they are about.
TEST_F(Subset, SaysWhichSamplesItsOwnAre) {
  Component data = open("datasets.subset", options({{"skip", 2}, {"count", 3}}));
  const auto* table = data.table<tn_dataset>();
  StringSink said, beyond;

  EXPECT_EQ(text_of(Status(table->origin(data.self(), 1, said.get()))), "");
  EXPECT_EQ(said.text, "sample 3");
  EXPECT_THAT(text_of(Status(table->origin(data.self(), 3, beyond.get()))),
              HasSubstr("sample 3 of 3"));
}

TEST_F(Subset, RefusesSamplesThatAreNotThere) {
  auto said = [&](json more) { return refusal(kRole, "datasets.subset", options(more)); };
  EXPECT_THAT(said({{"samples", {3, 11}}}),
              HasSubstr("option samples: expected numbers of samples below 11, got 11"));
  EXPECT_THAT(said({{"samples", json::array()}}), HasSubstr("expected at least one, got none"));
  EXPECT_THAT(said({{"samples", {3}}, {"seed", 1}}), HasSubstr("without from, to, skip, count"));
}

TEST_F(Subset, RefusesEmptyPartsAndUnknownData) {
  EXPECT_THAT(refusal(kRole, "datasets.subset", options({{"skip", 11}})), HasSubstr("empty"));
  EXPECT_THAT(refusal(kRole, "datasets.subset", options({{"count", 12}})), HasSubstr("at most 11"));
  EXPECT_THAT(refusal(kRole, "datasets.subset", options({{"from", 0.9}, {"to", 0.1}})),
              HasSubstr("option from"));
  EXPECT_THAT(refusal(kRole, "datasets.subset", {{"data", "nothing.here"}}),
              HasSubstr("option data"));
}

}  // namespace
}  // namespace tenon::test
