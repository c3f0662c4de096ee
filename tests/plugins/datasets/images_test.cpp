// SPDX-License-Identifier: Apache-2.0
#include "plugins/datasets/dataset_test.hpp"
#include "plugins/datasets/zip_writer.hpp"

namespace tenon::test {
namespace {

// A 24-bit BMP of one colour.
std::string bmp(int32_t width, int32_t height, uint8_t red, uint8_t green, uint8_t blue) {
  int32_t row = (width * 3 + 3) / 4 * 4;
  std::string out = "BM";
  append(&out, 54 + row * height);
  append(&out, 0);
  append(&out, 54);
  append(&out, 40);
  append(&out, width);
  append(&out, height);
  append(&out, uint16_t{1});
  append(&out, uint16_t{24});
  out.append(24, '\0');
  for (int32_t y = 0; y < height; ++y) {
    std::string line;
    for (int32_t x = 0; x < width; ++x)
      line += {static_cast<char>(blue), static_cast<char>(green), static_cast<char>(red)};
    line.resize(static_cast<size_t>(row), '\0');
    out += line;
  }
  return out;
}

class Images : public DatasetTest {
 protected:
  json options(const json& more = json::object()) {
    json out{{"path", (folder_ / "set").string()}};
    out.update(more);
    return out;
  }
};

TEST_F(Images, ReadsOneFolderPerClassInOrder) {
  write("set/dog/1.bmp", bmp(2, 2, 0, 0, 255));
  write("set/cat/1.bmp", bmp(2, 2, 255, 0, 0));
  write("set/cat/notes.txt", "no image");
  Component data = open("datasets.images", options());
  Collected got(ctx_);

  EXPECT_EQ(batch(data, {0, 1}, &got), "");

  EXPECT_EQ(size(data), 2u);
  EXPECT_THAT(got.shape(0), ElementsAre(2, 3, 2, 2));
  EXPECT_THAT(got.numbers<int64_t>(1), ElementsAre(0, 1));
  EXPECT_FLOAT_EQ(got.numbers<float>(0)[0], 1);   // the cat is red
  EXPECT_FLOAT_EQ(got.numbers<float>(0)[20], 1);  // the dog is blue
  EXPECT_THAT(origin_of(data, 1), testing::EndsWith("dog/1.bmp"));
}

TEST_F(Images, IsForFoldersWithAndWithoutTheirSlash) {
  write("set/a.bmp", bmp(2, 2, 0, 0, 0));
  for (std::string end : {"", "/"}) {
    StringSink id;
    std::string folder = (folder_ / "set").string() + end;
    Status status(
        services.component->for_file(ctx_, str("tenon.dataset/1"), str(folder), id.get()));
    EXPECT_EQ(text_of(std::move(status)), "");
    EXPECT_EQ(id.text, "datasets.images") << folder;
  }
}

TEST_F(Images, ResizesCropsAndNormalizesAsDeclared) {
  write("set/a.bmp", bmp(8, 4, 100, 150, 200));
  Component data = open("datasets.images", options({{"resize", 2},
                                                    {"crop", {2, 3}},
                                                    {"scale", 1},
                                                    {"mean", {100, 100, 100}},
                                                    {"std", {50, 50, 50}},
                                                    {"color", "bgr"},
                                                    {"layout", "nhwc"}}));
  Collected got(ctx_);

  EXPECT_EQ(batch(data, {0}, &got), "");

  EXPECT_THAT(got.shape(0), ElementsAre(1, 2, 3, 3));
  std::vector<float> numbers = got.numbers<float>(0);
  EXPECT_THAT(std::vector<float>(numbers.begin(), numbers.begin() + 3), ElementsAre(2, 1, 0));
}

TEST_F(Images, NamesTheCorruptFile) {
  write("set/a.bmp", bmp(2, 2, 1, 2, 3));
  write("set/b.jpg", "\xff\xd8\xff and then nothing");
  Component data = open("datasets.images", options());
  Collected got(ctx_);

  EXPECT_THAT(batch(data, {0, 1}, &got), HasSubstr("b.jpg"));
}

TEST_F(Images, RefusesSizesThatDiffer) {
  write("set/a.bmp", bmp(2, 2, 1, 2, 3));
  write("set/b.bmp", bmp(3, 2, 1, 2, 3));
  Component data = open("datasets.images", options());
  Collected got(ctx_);

  EXPECT_THAT(batch(data, {0, 1}, &got), HasSubstr("b.bmp: expected 2x2"));
}

TEST_F(Images, LeavesOutWhatIsHidden) {
  write("set/.checkpoints/a.bmp", bmp(2, 2, 1, 2, 3));
  write("set/cat/a.bmp", bmp(2, 2, 1, 2, 3));
  write("set/cat/.b.bmp", "no picture");
  Component data = open("datasets.images", options());
  Collected got(ctx_);

  EXPECT_EQ(batch(data, {0}, &got), "");

  EXPECT_EQ(data.table<tn_dataset>()->size(data.self()), 1u);
  EXPECT_THAT(got.numbers<int64_t>(1), ElementsAre(0));
}

TEST_F(Images, RefusesTheNameOfTheClassesForThePictures) {
  write("set/cat/a.bmp", bmp(2, 2, 1, 2, 3));
  EXPECT_THAT(refusal(kRole, "datasets.images", options({{"field", "label"}})),
              HasSubstr("option field: expected another name than label"));
}

TEST_F(Images, RefusesFoldersAndOptionsThatCannotServe) {
  EXPECT_THAT(refusal(kRole, "datasets.images", options()), HasSubstr("expected a folder"));
  write("set/readme.txt", "nothing here");
  EXPECT_THAT(refusal(kRole, "datasets.images", options()), HasSubstr("no .jpg, .png or .bmp"));
  write("set/a.bmp", bmp(2, 2, 1, 2, 3));
  EXPECT_THAT(refusal(kRole, "datasets.images", options({{"crop", 5}})), HasSubstr("at least 5x5"));
  EXPECT_THAT(refusal(kRole, "datasets.images", options({{"mean", {1, 2}}})),
              HasSubstr("option mean: expected 1 or 3 numbers, got 2"));
  EXPECT_THAT(refusal(kRole, "datasets.images", options({{"std", 0}})), HasSubstr("above 0"));
}

}  // namespace
}  // namespace tenon::test
