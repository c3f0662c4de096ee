// SPDX-License-Identifier: Apache-2.0
// Another device of the same kind, with memory of its own; it takes nodes of scope "second" too.
#include "backend.hpp"

namespace tenon::fakedev {

class SecondDevice : public FakeDevice {
 public:
  static Result<SecondDevice> create(tn_ctx* ctx, const Options& options) {
    return SecondDevice(ctx, options);
  }
  static tn_backend table() { return with_memory<SecondDevice>(); }

 private:
  SecondDevice(tn_ctx* ctx, const Options& options) : FakeDevice(ctx, options, 1) {}
};

}  // namespace tenon::fakedev

TENON_BACKEND(second,
              tenon::fakedev::SecondDevice,
              "fakedev.second",
              "another device that is not there",
              TENON_FAKEDEV_SCHEMA)
