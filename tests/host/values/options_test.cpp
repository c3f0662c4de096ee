// SPDX-License-Identifier: Apache-2.0
#include "values/options.hpp"

#include <gmock/gmock.h>

#include "host/host_fixture.hpp"
#include "values/tensor.hpp"

namespace tenon::host {
namespace {

using ::testing::HasSubstr;

class Options : public HostTest {
 protected:
  Options() { EXPECT_EQ(text(api.create(ctx(), &options)), ""); }
  ~Options() override {
    api.release(options);
    EXPECT_EQ(held(Held::kOptions), 0);
    EXPECT_EQ(held(Held::kTensor), 0);
  }
  std::string shown(std::string_view key) {
    tn_any value{};
    EXPECT_EQ(api.get(options, str(key), &value), nullptr);
    return any_text(value);
  }
  const tn_host_options& api = service<tn_host_options>("tenon.host.options/1");
  tn_options* options = nullptr;
};

TEST_F(Options, CopyWhatTheyAreGiven) {
  std::string name = "entropy";
  std::string words[] = {"first word of some length", "b"};
  tn_str views[] = {str(words[0]), str(words[1])};
  int64_t numbers[] = {1, -2};
  tn_any given[] = {{TN_ANY_TEXT, 0, name.size(), {.p = name.data()}},
                    {TN_ANY_TEXTS, 0, 2, {.p = views}},
                    {TN_ANY_I64S, 0, 2, {.p = numbers}}};
  for (auto [key, i] : {std::pair{"a", 0}, {"b", 1}, {"c", 2}})
    ASSERT_EQ(text(api.set(options, str(key), given[i])), "");
  name = words[0] = words[1] = "changed";
  numbers[0] = 99;

  EXPECT_EQ(shown("a"), "'entropy'");
  EXPECT_EQ(shown("b"), "['first word of some length', 'b']");
  EXPECT_EQ(shown("c"), "[1, -2]");
  EXPECT_EQ(shown("absent"), "nothing");
}

TEST_F(Options, KeepOrderAndReplaceByKey) {
  ASSERT_EQ(text(api.parse(options, str(R"({"b": 1, "a": 2, "b": 3})"))), "");
  ASSERT_EQ(text(api.parse(options, str(R"({"b": 4})"))), "");

  EXPECT_EQ(api.count(options), 2u);
  EXPECT_EQ(view(api.key_at(options, 0)), "b");
  EXPECT_EQ(api.key_at(options, 2).len, 0u);
  EXPECT_EQ(shown("b"), "4");
}

TEST_F(Options, ParseEveryKindOfJson) {
  ASSERT_EQ(text(api.parse(options, str(R"({"i": 7, "f": 0.5, "b": true, "t": "x", "is": [1, 2],
                                "fs": [1, 2.5], "ts": ["u", "v"], "o": {"k": [1]}, "n": null,
                                "big": 18446744073709551615, "mixed": [1, "a"], "e": []})"))),
            "");

  EXPECT_EQ(shown("i") + shown("f") + shown("b") + shown("t"), "70.5true'x'");
  EXPECT_EQ(shown("is") + shown("fs") + shown("ts"), "[1, 2][1, 2.5]['u', 'v']");
  EXPECT_EQ(shown("o"), R"('{"k":[1]}')");
  EXPECT_EQ(shown("n"), "nothing");
  EXPECT_EQ(shown("big"), "1.84467440737e+19");
  EXPECT_EQ(shown("mixed"), R"('[1,"a"]')");
  EXPECT_EQ(shown("e"), "[]");
}

TEST_F(Options, RefuseTextThatIsNoObject) {
  EXPECT_THAT(text(api.parse(options, str("[1]"))), HasSubstr("expected a JSON object, got array"));
  EXPECT_THAT(text(api.parse(options, str(R"({"a": )"))), HasSubstr("line 1, column 7"));
  EXPECT_THAT(text(api.parse(options, str("{\"a\": \"\xff\"}"))), HasSubstr("options: "));
  std::string deep = "{\"a\": " + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_THAT(text(api.parse(options, str(deep))), HasSubstr("nested deeper than 64"));
  EXPECT_EQ(text(api.parse(options, {})), "");
  EXPECT_EQ(api.count(options), 0u);
}

TEST_F(Options, RetainObjects) {
  auto tensor = alloc_tensor(ctx(), TN_F32, {});
  ASSERT_TRUE(tensor.ok());
  ASSERT_EQ(text(api.set(options, str("w"), {TN_ANY_TENSOR, 0, 1, {.p = tensor->get()}})), "");
  Any copy = *options->find("w");
  auto tensors = [&] { return ctx()->held[static_cast<size_t>(Held::kTensor)].load(); };

  *tensor = Ref<tn_tensor>();
  EXPECT_EQ(tensors(), 1);
  options->set("w", Any::i64(1));
  EXPECT_EQ(tensors(), 1);  // the copy's
  copy = Any();
  EXPECT_EQ(tensors(), 0);
}

TEST_F(Options, RefuseBrokenValues) {
  EXPECT_THAT(text(api.set(options, str("k"), {TN_ANY_TENSOR, 0, 1, {}})),
              HasSubstr("set: argument value: expected a pointer, got NULL"));
  EXPECT_THAT(text(api.set(options, str("k"), {TN_ANY_F64S, 0, 3, {}})), HasSubstr("got NULL"));
  EXPECT_THAT(text(api.set(options, str("k"), {77, 0, 1, {}})), HasSubstr("got 77"));
  EXPECT_THAT(text(api.set(options, {}, {})), HasSubstr("expected a key"));
  EXPECT_EQ(api.count(options), 0u);
}

}  // namespace
}  // namespace tenon::host
