// SPDX-License-Identifier: Apache-2.0
// Arguments that tests/abi/arguments_test.py cannot spoil: values with a union.
#include "services/arguments.hpp"

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

}  // namespace
}  // namespace tenon::host
