// SPDX-License-Identifier: Apache-2.0
#pragma once
// What measured times hold for: this kind of CPU, with the instructions that may be used, and this
// build. One line of text.

#include <string>

namespace tenon::onednn {

const std::string& fingerprint();

}  // namespace tenon::onednn
