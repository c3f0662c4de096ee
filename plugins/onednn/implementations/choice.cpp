// SPDX-License-Identifier: Apache-2.0
#include "choice.hpp"

namespace tenon::onednn {

std::set<std::string>& implementation_names() {
  static std::set<std::string> names;
  return names;
}

}  // namespace tenon::onednn
