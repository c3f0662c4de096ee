// SPDX-License-Identifier: Apache-2.0
#include "services/status.hpp"

#include <algorithm>
#include <vector>

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

std::string Status::text() const {
  return status_text(raw_);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace tenon::host
