// SPDX-License-Identifier: Apache-2.0
#include "schemas/option_schema.hpp"

#include <gmock/gmock.h>

#include "host/host_fixture.hpp"

namespace tenon::host {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kSchema = R"({"type": "object", "properties": {
  "sparsity": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
  "bins": {"type": "integer", "exclusiveMinimum": 1, "default": 2048},
  "observer": {"type": "string", "enum": ["minmax", "entropy", "mse"], "default": "minmax"},
  "symmetric": {"type": "boolean", "default": true},
  "skip": {"type": "array", "items": {"type": "string"}},
  "mean": {"type": "array", "items": {"type": "number", "minimum": 0}},
  "backend": {"type": ["array", "string"]},
  "data": {"type": "component", "role": "tenon.dataset/1"},
  "extra": {"type": "object"},
  "file": {"type": "path"}}, "required": ["data"], "extensions": [".npz"]})";

class OptionSchema : public HostTest {
 protected:
  ~OptionSchema() override { EXPECT_EQ(held(Held::kOptions), 0); }

  Result<Ref<tn_options>> checked(std::string_view json, std::string_view schema = kSchema) {
    Ref<tn_options> given = new_options(ctx());
    TN_CHECK(parse_options(given.get(), json));
    return validate_options(ctx(), schema, given.get(), "quantizer.static");
  }
  // What the option becomes, or the error.
  std::string value(std::string_view json, std::string_view key) {
    auto out = checked(json);
    if (!out.ok()) return out.status().text();
    const Any* found = (*out)->find(key);
    return found ? any_text(found->get()) : "absent";
  }
  std::string failure(std::string_view json, std::string_view schema = kSchema) {
    auto out = checked(json, schema);
    return out.ok() ? "no failure" : out.status().text();
  }
};

TEST_F(OptionSchema, FillsInDefaults) {
  EXPECT_EQ(value(R"({"data": "x.npz"})", "sparsity"), "0.5");
  EXPECT_EQ(value(R"({"data": "x.npz"})", "bins"), "2048");
  EXPECT_EQ(value(R"({"data": "x.npz", "observer": null})", "observer"), "'minmax'");
  EXPECT_EQ(value(R"({"data": "x.npz"})", "symmetric"), "true");
  EXPECT_EQ(value(R"({"data": "x.npz"})", "skip"), "absent");
  EXPECT_EQ(value(R"({"data": "x.npz"})", "data"), "'x.npz'");
}

TEST_F(OptionSchema, TurnsNumbersIntoTheTypeOfTheSchema) {
  auto out = checked(R"({"data": "d", "sparsity": 1, "bins": 8.0, "mean": [1, 2]})");

  ASSERT_TRUE(out.ok());
  EXPECT_EQ((*out)->find("sparsity")->tag(), TN_ANY_F64);
  EXPECT_EQ((*out)->find("bins")->tag(), TN_ANY_I64);
  EXPECT_EQ((*out)->find("mean")->tag(), TN_ANY_F64S);
}

constexpr std::string_view kNeeds = R"({"properties": {
  "bits": {"type": "integer", "default": 8},
  "group": {"type": "integer", "default": 32, "needs": {"bits": [4]}},
  "rank": {"type": ["integer", "string"], "default": "evbmf"},
  "budget": {"type": "number"},
  "energy": {"type": "number", "default": 0.9, "needs": [{"rank": ["energy", "share"]}, {"budget": "given"}]},
  "reduce": {"type": "boolean", "default": false, "needs": {"budget": "absent", "bits": [8]}}}})";

TEST_F(OptionSchema, RefusesWhatHasNoEffectBesideTheOthers) {
  EXPECT_EQ(failure(R"({"group": 64})", kNeeds),
            "quantizer.static: option group: expected bits = 4 beside it, as it has no effect "
            "otherwise, got bits = 8");
  EXPECT_EQ(
      failure(R"({"energy": 0.5})", kNeeds),
      "quantizer.static: option energy: expected rank = 'energy' or 'share', or budget beside "
      "it, as it has no effect otherwise, got rank = 'evbmf', no budget");
  EXPECT_THAT(failure(R"({"reduce": true, "budget": 1})", kNeeds),
              HasSubstr("expected no budget and bits = 8 beside it, as it has no effect "
                        "otherwise, got budget = 1"));
}

TEST_F(OptionSchema, TakesWhatHasAnEffectAndDefaultsAnywhere) {
  for (std::string_view json :
       {R"({"group": 64, "bits": 4})", R"({"group": 32})", R"({"group": null})",
        R"({"energy": 0.5, "rank": "share"})", R"({"energy": 0.5, "budget": 1})",
        R"({"energy": 0.5, "budget": 1, "rank": 3})", R"({"reduce": true})"})
    EXPECT_EQ(failure(json, kNeeds), "no failure") << json;
}

TEST_F(OptionSchema, RefusesNeedsThatCannotBeAsked) {
  auto fault = [](std::string_view needs) {
    return check_schema(cat(R"({"properties": {"a": {"type": "number", "needs": )", needs, "}}}"),
                        "quantizer.static")
        .text();
  };
  EXPECT_THAT(fault(R"({"b": "given"})"), HasSubstr("option a: needs: unknown option b"));
  EXPECT_THAT(fault(R"({"a": 3})"), HasSubstr("needs: a: expected a list of values"));
  EXPECT_THAT(fault(R"({"a": []})"), HasSubstr("needs: a: expected a list of values"));
  EXPECT_THAT(fault("[3]"), HasSubstr("needs: expected an object"));
}

TEST_F(OptionSchema, NamesRangeTypeAndValue) {
  EXPECT_EQ(failure(R"({"sparsity": 1.5})"),
            "quantizer.static: option sparsity: expected a number in [0, 1], got 1.5");
  EXPECT_EQ(failure(R"({"bins": 1})"),
            "quantizer.static: option bins: expected an integer > 1, got 1");
  EXPECT_THAT(failure(R"({"bins": 2.5})"), HasSubstr("got 2.5"));
  EXPECT_THAT(failure(R"({"bins": 1e300})"), HasSubstr("got 1e+300"));
  EXPECT_THAT(failure(R"({"symmetric": 1})"), HasSubstr("expected true or false, got 1"));
  EXPECT_THAT(failure(R"({"skip": "fc1"})"),
              HasSubstr("expected a list, each element a text, got 'fc1'"));
  EXPECT_THAT(failure(R"({"mean": [0.5, -1]})"),
              HasSubstr("each element a number >= 0, got [0.5, -1]"));
  EXPECT_THAT(failure(R"({"backend": 3})"), HasSubstr("expected a text or a list, got 3"));
  EXPECT_THAT(failure(R"({"extra": "[1"})"), HasSubstr("expected an object, got '[1'"));
  EXPECT_THAT(failure(R"({"file": 3})"), HasSubstr("expected a path, got 3"));
}

TEST_F(OptionSchema, RefusesNanEvenWithoutLimits) {
  Ref<tn_options> given = new_options(ctx());
  given->set("x", Any::f64(std::nan("")));

  auto out =
      validate_options(ctx(), R"({"properties": {"x": {"type": "number"}}})", given.get(), "p");
  EXPECT_EQ(out.status().text(), "p: option x: expected a number, got nan");
}

TEST_F(OptionSchema, NamesTheNearest) {
  EXPECT_EQ(failure(R"({"observer": "entrop"})"),
            "quantizer.static: option observer: expected one of minmax, entropy, mse, got 'entrop' "
            "(did you mean 'entropy'?)");
  EXPECT_EQ(failure(R"({"spasity": 1})"),
            "quantizer.static: unknown option 'spasity' (did you mean 'sparsity'?)");
  EXPECT_THAT(failure(R"({"zzzzzzzz": 1})"), HasSubstr("(known: sparsity, bins, observer"));
  EXPECT_EQ(failure(R"({"a": 1})", ""),
            "quantizer.static: unknown option 'a' (it takes no options)");
}

TEST_F(OptionSchema, AsksForWhatIsRequired) {
  EXPECT_EQ(failure("{}"),
            "quantizer.static: option data: expected a component of role "
            "tenon.dataset/1, an id or a file, got nothing");
  EXPECT_FALSE(validate_options(ctx(), kSchema, nullptr, "p").ok());
  EXPECT_TRUE(validate_options(ctx(), "", nullptr, "p").ok());
}

TEST_F(OptionSchema, TakesOptionsOfAnyName) {
  constexpr std::string_view kOpen =
      R"({"properties": {"n": {"type": "integer", "default": 3}},
          "additionalProperties": {"type": "number", "minimum": 0}})";
  auto out = checked(R"({"a": 1, "b": 2.5, "c": null})", kOpen);
  ASSERT_TRUE(out.ok()) << out.status().text();
  EXPECT_EQ((*out)->find("a")->tag(), TN_ANY_F64);
  EXPECT_EQ(any_text((*out)->find("b")->get()), "2.5");
  EXPECT_EQ((*out)->find("c"), nullptr);
  EXPECT_EQ(any_text((*out)->find("n")->get()), "3");
  EXPECT_EQ(failure(R"({"a": -1})", kOpen),
            "quantizer.static: option a: expected a number >= 0, got -1");
  EXPECT_THAT(failure(R"({"a": 1})", R"({"properties": {}, "additionalProperties": false})"),
              HasSubstr("unknown option 'a'"));
  EXPECT_THAT(check_schema(R"({"additionalProperties": {"type": "x"}})", "p").text(),
              HasSubstr("additionalProperties: unknown type 'x'"));
}

TEST_F(OptionSchema, RefusesBrokenSchemas) {
  auto fault = [](std::string_view schema) { return check_schema(schema, "p").text(); };

  EXPECT_EQ(fault(kSchema), "");
  EXPECT_THAT(fault("{"), HasSubstr("p: options schema: "));
  EXPECT_THAT(fault("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(fault(R"({"properties": 1})"), HasSubstr("properties is no object"));
  EXPECT_THAT(fault(R"({"properties": {"a": 1}})"), HasSubstr("option a: expected an object"));
  EXPECT_THAT(fault(R"({"properties": {"a": {}}})"), HasSubstr("option a: expected a type"));
  EXPECT_THAT(fault(R"({"properties": {"a": {"type": "float"}}})"),
              HasSubstr("unknown type 'float'"));
  EXPECT_THAT(fault(R"({"properties": {"a": {"type": "number", "minimum": "0"}}})"),
              HasSubstr("minimum is no number"));
  EXPECT_THAT(fault(R"({"properties": {"a": {"type": "string", "enum": []}}})"),
              HasSubstr("enum is no list"));
  EXPECT_THAT(fault(R"({"properties": {"a": {"type": "integer", "default": "x"}}})"),
              HasSubstr("option a: default: expected an integer, got 'x'"));
  EXPECT_THAT(fault(R"({"properties": {}, "required": ["a"]})"), HasSubstr("unknown option"));
  EXPECT_THAT(fault(R"({"properties": {"a": {"type": "array", "items": {"type": "x"}}}})"),
              HasSubstr("unknown type 'x'"));
}

TEST_F(OptionSchema, ComparesAllOfAValue) {
  constexpr std::string_view kValues = R"({"properties": {
    "scale": {"type": "number", "enum": [0.5, 1], "default": 1},
    "sizes": {"type": "array", "items": {"type": "integer"},
              "default": [1, 2, 3, 4, 5, 6, 7, 8, 9]},
    "fill": {"type": "integer", "default": 0, "needs": {"sizes": "given"}}}})";

  EXPECT_EQ(failure(R"({"scale": 0.5000000000001})", kValues),
            "quantizer.static: option scale: expected one of 0.5, 1, got 0.5");
  EXPECT_EQ(failure(R"({"scale": 1})", kValues), "no failure");
  EXPECT_EQ(failure(R"({"sizes": [1, 2, 3, 4, 5, 6, 7, 8, 10], "fill": 1})", kValues),
            "no failure");
  EXPECT_THAT(failure(R"({"sizes": [1, 2, 3, 4, 5, 6, 7, 8, 9], "fill": 1})", kValues),
              HasSubstr("expected sizes beside it"));
  auto out = checked(R"({"scale": 1})", kValues);
  EXPECT_EQ((*out)->find("scale")->tag(), TN_ANY_F64);
}

}  // namespace
}  // namespace tenon::host
