// SPDX-License-Identifier: Apache-2.0
// Figures of a run in files that others read.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "event_record.hpp"
#include "gradient_shares.hpp"
#include "training_session.hpp"

namespace tenon::test {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (unsigned char c : bytes)
    for (int shift : {4, 0})
      out += "0123456789abcdef"[c >> shift & 15];
  return out;
}

// Of 100 numbers one half would be 0 in float16.
TEST(GradientShares, AdviseAScaleThatLeavesRoom) {
  trainer::GradientShares small{{100, 50, 50, 0, 1e-6}}, large{{100, 50, 50, 0, 32768}};
  EXPECT_THAT(small.advice(), HasSubstr("make 0.5 of the gradients 0: begin with loss_scale = "
                                        "{init_scale = 8589934592}"));
  EXPECT_LT(large.advised_scale(), 1);
  EXPECT_THAT(large.advice(), HasSubstr("leaves no room for a loss scale: bf16"));
  EXPECT_THAT(large.advice(), testing::Not(HasSubstr("init_scale")));
}

// Bytes that tensorboard 2.21 reads as step 7, loss 1.5, and the checksum of RFC 3720.
TEST(EventRecord, HasTheBytesThatTensorBoardReads) {
  EXPECT_EQ(trainer::crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(trainer::masked_crc32c("123456789"), 0xc78ab0e5u);
  EXPECT_EQ(hex(trainer::first_event(0)),
            "1800000000000000a37f4b220900000000000000001a0d627261696e2e4576656e743a32eedf28a3");
  EXPECT_EQ(hex(trainer::scalars_event(1, 7, {{"loss", 1.5f}})),
            "1a00000000000000129bd82d09000000000000f03f10072a0d0a0b0a046c6f7373150000c03fde327097");
}

class Figures : public TrainingTest {
 protected:
  void trained_with(const char* id, json options) {
    lent_["callbacks"] = std::move(*make("tenon.callback/1", id, options));
    auto trained = train(parse(kLinear), data(table(40)),
                         {{"epochs", 2}, {"batch", 10}, {"rate", 0.5}, {"validation", 0.25}});
    lent_.clear();
    ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  }
};

TEST_F(Figures, AreALineForEachStepAndEpoch) {
  std::string path = (folder_ / "deep" / "run.jsonl").string();
  trained_with("trainer.lines", {{"path", path}, {"every", 2}});
  std::vector<json> steps, epochs;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    json one = json::parse(line);
    (one["event"] == "step" ? steps : epochs).push_back(one);
  }
  ASSERT_EQ(steps.size(), 3u);  // of six
  EXPECT_EQ(steps[1]["step"], 4);
  EXPECT_EQ(steps[1]["epoch"], 2);
  EXPECT_EQ(steps[1]["rate"], 0.5);
  ASSERT_EQ(epochs.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    epochs[i].erase("event");
    EXPECT_EQ(epochs[i], report_["history"][i]);
  }
}

TEST_F(Figures, AreAnEventFile) {
  std::filesystem::path folder = folder_ / "board";
  trained_with("trainer.tensorboard", {{"path", folder.string()}, {"every", 3}});
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(files[0].filename().string().starts_with("events.out.tfevents."));
  std::ifstream in(files[0], std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    ASSERT_LE(at + 12, bytes.size());
    std::memcpy(&length, bytes.data() + at, 8);
    ASSERT_LE(at + 16 + length, bytes.size());
    events.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(bytes.substr(at, 16 + length), trainer::event_record(events.back()));
    at += 16 + length;
  }
  ASSERT_EQ(events.size(), 5u);  // the version, two steps, two epochs
  EXPECT_THAT(events[1], HasSubstr("step/loss"));
  EXPECT_THAT(events[2], HasSubstr("epoch/validation_loss"));
  EXPECT_THAT(events[4], HasSubstr("epoch/loss"));
  EXPECT_THAT(events[3].substr(9, 2), testing::ElementsAre('\x10', '\x06'));  // the sixth step
}

TEST_F(Figures, AFileThatCannotBeWrittenIsNamed) {
  std::string inside = write("file", "x") + "/run.jsonl";
  lent_["callbacks"] = std::move(*make("tenon.callback/1", "trainer.lines", {{"path", inside}}));
  EXPECT_THAT(failure(parse(kLinear), data(table(8)), json::object()),
              HasSubstr(cat("option path: ", inside, ": expected a file that can be written")));
}

TEST_F(Figures, AreACurveOfText) {
  std::vector<std::string> lines;
  auto keep = [](void* self, uint32_t, tn_str, tn_str message) {
    static_cast<std::vector<std::string>*>(self)->emplace_back(view(message));
  };
  tenon_on_log(session_, keep, &lines);
  Component curves = std::move(
      *make("tenon.callback/1", "trainer.curves", {{"width", 8}, {"height", 2}, {"every", 2}}));
  const auto* table = curves.table<tn_callback>();
  int32_t stop = 0;
  for (int i = 0; i < 16; ++i) {  // 15, 15, 13, 13, ... 1, 1: two steps a column
    tn_progress_point at{sizeof at, 0, static_cast<uint64_t>(i + 1), 1, 15.0 - i / 2 * 2, 0.1};
    ASSERT_EQ(text_of(Status(table->step(curves.self(), &at, &stop))), "");
  }
  OwnedGraph model = parse(kLinear);
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(text_of(Status(table->epoch(curves.self(), str("{}"), model.get(), &stop))), "");
  tenon_on_log(session_, nullptr, nullptr);
  // Of 16 eighths: 16, 13.9, 11.7, 9.6, 7.4, 5.3, 3.1, 1.
  EXPECT_THAT(lines, testing::ElementsAre("loss of 16 steps", "        15 █▆▄▂    ",
                                          "         1 ████▇▅▃▁"));
}

}  // namespace
}  // namespace tenon::test
