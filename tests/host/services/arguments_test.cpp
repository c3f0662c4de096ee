// SPDX-License-Identifier: Apache-2.0
// Arguments that tests/abi/arguments_test.py cannot spoil: values with a union. And the codes that
// a function gives beside those that its header states.
#include "services/arguments.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/host_fixture.hpp"
#include "services/session.hpp"
#include "values/options.hpp"

namespace tenon::host {
namespace {

using testing::HasSubstr;

template <class Table>
const Table& guarded_table(std::string_view id) {
  return *static_cast<const Table*>(find_service(id));
}

tn_any any(uint32_t tag, uint64_t len, const void* p) {
  return {tag, 0, len, {.p = p}};
}

class SpoiltAny : public testing::Test {
 protected:
  Session session_;
  Ref<tn_options> options_ = new_options(session_.own);

  std::string set(const tn_any& value) {
    const auto& options = guarded_table<tn_host_options>("tenon.host.options/1");
    return Status(options.set(options_.get(), str("key"), value)).text();
  }
};

TEST_F(SpoiltAny, IsRefusedByItsKind) {
  const tn_str no_text{nullptr, 3};
  for (const tn_any& spoilt :
       {any(TN_ANY_TEXT, 4, nullptr), any(TN_ANY_I64S, 2, nullptr), any(TN_ANY_F64S, 2, nullptr),
        any(TN_ANY_TEXTS, 1, nullptr), any(TN_ANY_TEXTS, 1, &no_text),
        any(TN_ANY_TENSOR, 1, nullptr), any(TN_ANY_GRAPH, 1, options_.get()),
        any(TN_ANY_COMPONENT, 1, options_.get())})
    EXPECT_THAT(set(spoilt), HasSubstr("set: argument value")) << spoilt.tag;
  EXPECT_EQ(set(any(TN_ANY_TEXT, 0, nullptr)), "");
}

TEST_F(SpoiltAny, IsNoDetail) {
  const auto& statuses = guarded_table<tn_host_status>("tenon.host.status/1");
  Status status(TN_INTERNAL, "it failed");

  statuses.detail(const_cast<tn_status*>(status.raw()), str("key"), any(TN_ANY_TEXT, 4, nullptr));

  EXPECT_EQ(status.text(), "it failed");
}

TEST(StatusText, HasSmallNumbersAsTheyAre) {
  const auto& statuses = guarded_table<tn_host_status>("tenon.host.status/1");
  Status status(TN_INTERNAL, "it failed");
  tn_any small{TN_ANY_F64, 0, 1, {.f = 1e-9}};

  statuses.detail(const_cast<tn_status*>(status.raw()), str("error"), small);

  EXPECT_EQ(status.text(), "it failed (error 1e-09)");
}

TEST(StatusText, IsUtf8WhateverItQuotes) {
  const auto& statuses = guarded_table<tn_host_status>("tenon.host.status/1");
  Status status(TN_INTERNAL, "got 'caf\xc3'");

  statuses.detail(const_cast<tn_status*>(status.raw()), str("node"), any(TN_ANY_TEXT, 2, "n\xff"));

  EXPECT_EQ(status.text(), "got 'caf\xef\xbf\xbd' (node n\xef\xbf\xbd)");
}

// The environment as the test presets have it, or without the variable.
class StatedCodes : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    GetParam() ? ::setenv("TENON_CHECK_ERRORS", "1", 1) : ::unsetenv("TENON_CHECK_ERRORS");
  }
  Status given(int32_t code, uint32_t stated_codes) {
    return Status(stated(Status(code, "it failed").release(), stated_codes, "acme: open"));
  }
};

TEST_P(StatedCodes, AnotherCodeIsAFaultWhereTestsAsk) {
  Status failed = given(TN_NOT_FOUND, 1u << TN_INVALID_ARGUMENT);

  EXPECT_EQ(failed.code(), GetParam() ? TN_INTERNAL : TN_NOT_FOUND);
  EXPECT_THAT(failed.text(), HasSubstr("it failed"));
  EXPECT_EQ(failed.text().find("acme: open") != std::string::npos, GetParam());
}

TEST_P(StatedCodes, WhatIsStatedPasses) {
  EXPECT_EQ(given(TN_NOT_FOUND, 1u << TN_NOT_FOUND).code(), TN_NOT_FOUND);
  EXPECT_EQ(stated(nullptr, 0, "acme: open"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Environment, StatedCodes, testing::Bool());

}  // namespace
}  // namespace tenon::host
