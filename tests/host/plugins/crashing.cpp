// SPDX-License-Identifier: Apache-2.0
// An operator of a third party whose kernel ends the process, or throws, in the way that its
// attribute says.
#include <cstdlib>
#include <stdexcept>

#include "tenon/sdk/role/op.hpp"

namespace {

using tenon::Status;

[[gnu::noinline]] int deeper(const volatile int* above) {
  volatile int here[1024];
  here[0] = above ? *above + 1 : 0;
  return here[0] < 0 ? 0 : deeper(here) + here[0];
}

// Not inlined: the innermost function on the stack is the plugin's, not its role's wrapper.
[[gnu::noinline]] void end_by(std::string_view how) {
  if (how == "segv") *static_cast<volatile int*>(nullptr) = 1;
  if (how == "abort") std::abort();
  if (how == "overflow") deeper(nullptr);
  if (how == "throw") throw std::runtime_error("thrown by the test plugin");
}

Status shape(tenon::EditView edit, tenon::Node node) {
  if (node.attr_text("how") == "throw in shape") end_by("throw");
  return edit.set_type(node.output(), node.input(0).type());
}

Status ref(const tenon::Call& call) {
  end_by(call.node().attr_text("how"));
  TN_TRY(out, call.out(0, call.dtype(0), call.shape(0)));
  static_cast<void>(out);
  return {};
}

constexpr tn_op kCrash =
    tenon::op_row({.type = "Crash",
                   .domain = "crashing",
                   .attributes = R"([{"name": "how", "type": "string", "default": ""}])",
                   .shape = tenon::shape<shape>,
                   .ref = tenon::ref<ref>});

}  // namespace

TENON_OPS(crashing, &kCrash)
