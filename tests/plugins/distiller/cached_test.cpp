// SPDX-License-Identifier: Apache-2.0
#include "plugins/distiller/loss_test.hpp"

namespace tenon::test {
namespace {

constexpr const char* kTeacher = R"(graph {
  input %x: f32[N,2]
  constant %two: f32[] = [2]
  %twice: f32[N,2] = Mul(%x, %two) @twice
  %p: f32[N,2] = Softmax(%twice) {axis = 1} @p
  output scores = %twice
  output answer = %p
}
)";

class Cached : public LossTest {
 protected:
  void SetUp() override {
    LossTest::SetUp();
    teacher_ = parse(kTeacher);
  }
  Result<Component> cached(json options) {
    options["data"] = write("x.csv", "a,b\n1,2\n3,4\n5,6\n7,8\n9,10\n");
    tn_options* given = nullptr;
    TN_CHECK(services.options->create(ctx_, &given));
    Status set(services.options->parse(given, str(options.dump())));
    if (set.ok())
      set = Status(services.options->set(given, str("teacher"), any_graph(teacher_.get())));
    tn_component_ref* raw = nullptr;
    if (set.ok())
      set = Status(services.component->create(ctx_, str("tenon.dataset/1"), str("distiller.cached"),
                                              given, &raw));
    services.options->release(given);
    TN_CHECK(std::move(set));
    Result<Component> made = Component::share(raw, "tenon.dataset/1");
    services.component->release(raw);
    return made;
  }
};

TEST_F(Cached, GivesTheTeachersAnswersAsFurtherFields) {
  auto made = cached({{"batch", 2}});
  ASSERT_TRUE(made.ok()) << text_of(made.status());
  const auto* table = made->table<tn_dataset>();
  EXPECT_EQ(table->size(made->self()), 5u);
  StringSink text;
  ASSERT_EQ(text_of(Status(table->fields(made->self(), text.get()))), "");
  json fields = json::parse(text.text);
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0]["name"], "x");
  EXPECT_EQ(fields[1]["name"], "teacher/scores");
  EXPECT_EQ(fields[1]["dtype"], "float32");
  EXPECT_EQ(fields[1]["shape"], json::array({2}));

  uint64_t index[] = {4, 0, 4};
  Collected out(ctx_);
  ASSERT_EQ(text_of(Status(table->batch(made->self(), index, 3, 0, &out.raw))), "");

  EXPECT_THAT(out.numbers<float>(0), ElementsAre(9, 10, 1, 2, 9, 10));
  EXPECT_THAT(out.numbers<float>(1), ElementsAre(18, 20, 2, 4, 18, 20));
}

TEST_F(Cached, KeepsScoresAndNotProbabilities) {
  auto made = cached({{"outputs", {"answer"}}});
  ASSERT_TRUE(made.ok()) << text_of(made.status());
  uint64_t index[] = {1};
  Collected out(ctx_);
  const auto* table = made->table<tn_dataset>();
  ASSERT_EQ(text_of(Status(table->batch(made->self(), index, 1, 0, &out.raw))), "");
  EXPECT_THAT(out.numbers<float>(1), ElementsAre(6, 8));
}

TEST_F(Cached, RefusesAnswersThatAreNotOneForEachSample) {
  teacher_ = parse(R"(graph {
  input %x: f32[N,2]
  constant %shape: i64[1] = [-1]
  %all: f32[M] = Reshape(%x, %shape) @all
  output all = %all
}
)");
  EXPECT_THAT(text_of(cached({{"batch", 2}}).status()),
              HasSubstr("the teacher's output all: expected the 2 samples of the batch on axis 0, "
                        "got 4 entries"));
}

TEST_F(Cached, RefusesASampleThatIsNotThere) {
  auto made = cached(json::object());
  ASSERT_TRUE(made.ok()) << text_of(made.status());
  uint64_t index[] = {5};
  Collected out(ctx_);
  const auto* table = made->table<tn_dataset>();
  EXPECT_NE(text_of(Status(table->batch(made->self(), index, 1, 0, &out.raw))), "");
}

TEST_F(Cached, SaysWhatTheTeacherMisses) {
  EXPECT_THAT(text_of(cached({{"outputs", {"logits"}}}).status()),
              HasSubstr("expected one of scores, answer, got 'logits'"));
  std::string other(kTeacher);
  for (size_t at = other.find("%x"); at != std::string::npos; at = other.find("%x", at))
    other.replace(at, 2, "%pixels");
  teacher_ = parse(other);
  EXPECT_TRUE(cached(json::object()).ok());  // by its type and shape alone
}

}  // namespace
}  // namespace tenon::test
