// SPDX-License-Identifier: Apache-2.0
#include "plugins/datasets/dataset_test.hpp"
#include "plugins/datasets/zip_writer.hpp"

namespace tenon::test {
namespace {

const std::string kX = npy("'<f4'", "(3, 2)", bytes_of_numbers<float>({1, 2, 3, 4, 5, 6}));
const std::string kY = npy("'<i8'", "(3,)", bytes_of_numbers<int64_t>({7, 8, 9}));

class Npz : public DatasetTest {
 protected:
  std::string refused(std::string_view content, const json& more = json::object()) {
    json options{{"path", write("data.npz", content)}};
    options.update(more);
    return refusal(kRole, "datasets.npz", options);
  }
};

TEST_F(Npz, ReadsStoredAndDeflatedEntries) {
  for (bool deflate : {false, true}) {
    for (bool zip64 : {false, true}) {
      std::string path =
          write("a.npz", zip({{"x.npy", kX, deflate, zip64}, {"y.npy", kY, deflate}}));

      Component data = open("datasets.npz", {{"path", path}});
      Collected got(ctx_);

      EXPECT_EQ(size(data), 3u);
      EXPECT_EQ(fields(data), json::parse(R"([{"name": "x", "dtype": "float32", "shape": [2]},
                                              {"name": "y", "dtype": "int64", "shape": []}])"));
      EXPECT_EQ(batch(data, {2, 0}, &got), "");
      EXPECT_THAT(got.numbers<float>(0), ElementsAre(5, 6, 1, 2));
      EXPECT_THAT(got.shape(0), ElementsAre(2, 2));
      EXPECT_THAT(got.numbers<int64_t>(1), ElementsAre(9, 7));
    }
  }
}

TEST_F(Npz, ReadsFortranOrderAsRows) {
  std::string data = bytes_of_numbers<float>({1, 3, 5, 2, 4, 6});  // the columns of kX
  Component set =
      open("datasets.npz", {{"path", write("f.npy", npy("'<f4'", "(3, 2)", data, true))}});
  Collected got(ctx_);

  EXPECT_EQ(batch(set, {0, 1, 2}, &got), "");

  EXPECT_EQ(fields(set)[0]["name"], "f");
  EXPECT_THAT(got.numbers<float>(0), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(Npz, ReadsOnlyTheFieldsThatAreAsked) {
  std::string pickled = npy("'|O'", "(3,)", "whatever");
  std::string path = write("a.npz", zip({{"x.npy", kX}, {"names.npy", pickled}}));

  EXPECT_EQ(fields(open("datasets.npz", {{"path", path}, {"fields", {"x"}}})).size(), 1u);
  EXPECT_THAT(refusal(kRole, "datasets.npz", {{"path", path}, {"fields", {"z"}}}),
              HasSubstr("no field 'z' (it has: x, names)"));
}

TEST_F(Npz, LeavesAloneWhatHoldsNoSamples) {
  std::string pickled = npy("'|O'", "(3,)", "whatever"), one = npy("'<f4'", "()", "1234");
  std::string path = write("a.npz", zip({{"names.npy", pickled},
                                         {"mean.npy", npy("'<f4'", "(1,)", "1234")},
                                         {"scale.npy", one},
                                         {"x.npy", kX},
                                         {"y.npy", kY}}));

  json found = fields(open("datasets.npz", {{"path", path}}));

  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["name"], "x");
  EXPECT_EQ(found[1]["name"], "y");
  EXPECT_THAT(refusal(kRole, "datasets.npz", {{"path", path}, {"fields", {"x", "scale"}}}),
              HasSubstr("scale: a single number; the first axis must count samples"));
}

TEST_F(Npz, ReadsBothOrdersOfBytes) {
  std::string data("\0\1\0\2\0\3\0\4", 8);
  Component set = open("datasets.npz", {{"path", write("b.npy", npy("'>i2'", "(2, 2)", data))}});
  Collected got(ctx_);

  EXPECT_EQ(batch(set, {1, 0}, &got), "");

  EXPECT_THAT(got.numbers<int16_t>(0), ElementsAre(3, 4, 1, 2));
}

TEST_F(Npz, RefusesWhatItCannotRead) {
  EXPECT_THAT(refused(zip({{"x.npy", npy("'|O'", "(3,)", "")}})),
              HasSubstr("pickled Python objects"));
  EXPECT_THAT(refused(zip({{"x.npy", npy("[('a', '<f4')]", "(1,)", "1234")}})),
              HasSubstr("record array"));
  EXPECT_THAT(refused(zip({{"x.npy", npy("'<f4'", "()", "1234")}})),
              HasSubstr("first axis must count samples"));
  EXPECT_THAT(refused(zip({{"x.npy", kX}, {"y.npy", npy("'<f4'", "(1,)", "1234")}}),
                      {{"fields", {"x", "y"}}}),
              HasSubstr("field y has 1 samples, field x has 3"));
  EXPECT_THAT(refused(zip({{"x.npy", npy("'<f4'", "(99999999999, 99999999999)", "")}})),
              HasSubstr("overflows"));
  for (bool fortran : {false, true}) {
    std::string empty = npy("'<f4'", "(0, 4611686018427387904, 8)", "", fortran);
    EXPECT_THAT(refused(zip({{"x.npy", empty}})), HasSubstr("overflows"));
  }
  EXPECT_THAT(refused("hello"), HasSubstr("neither a zip (npz) nor an npy file"));
  EXPECT_THAT(refused(""), HasSubstr("neither"));
}

TEST_F(Npz, EveryCutAndEveryFlippedByteGivesAnErrorOrData) {
  std::string whole = zip({{"x.npy", kX, true}, {"y.npy", kY}});

  for (size_t cut = 0; cut < whole.size(); ++cut)
    EXPECT_NE(refused(whole.substr(0, cut)), "") << "cut at " << cut;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x55);
    refused(broken);  // must not crash; padding may well be flipped without harm
  }
}

TEST_F(Npz, SaysThatTheChecksumDiffers) {
  std::string whole = zip({{"y.npy", kY}});
  whole[whole.find(bytes_of_numbers<int64_t>({8}))] = 5;

  EXPECT_THAT(refused(whole), HasSubstr("entry y.npy: checksum differs"));
}

TEST_F(Npz, TruncatedNpySaysHowMuchIsMissing) {
  json options{{"path", write("y.npy", kY.substr(0, kY.size() - 3))}};

  EXPECT_THAT(refusal(kRole, "datasets.npz", options),
              HasSubstr("truncated, expected 24 bytes of elements, got 21"));
}

TEST_F(Npz, RefusesASampleBeyondTheEnd) {
  Component data = open("datasets.npz", {{"path", write("y.npy", kY)}});
  Collected got(ctx_);

  EXPECT_THAT(batch(data, {0, 3}, &got), HasSubstr("sample 3 of a data set that has 3"));
}

}  // namespace
}  // namespace tenon::test
