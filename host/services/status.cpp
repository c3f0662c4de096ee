// SPDX-License-Identifier: Apache-2.0
#include "services/status.hpp"

#include "services/status_object.hpp"

namespace tenon::host {

Status::Status(int32_t code, std::string_view message, std::string_view domain, Status cause)
    : raw_(new_status(nullptr, code, domain, message, cause.release())) {}

Status::~Status() {
  release_status(raw_);
}

int32_t Status::code() const {
  return raw_ ? raw_->code : TN_OK;
}

Status Status::in(std::string_view what, std::string_view domain) && {
  const int32_t failed = code();  // first: arguments are evaluated in any order
  return {failed, what, domain, std::move(*this)};
}

std::string Status::text() const {
  return status_text(raw_);
}

}  // namespace tenon::host
