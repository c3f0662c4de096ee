// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether oneDNN has a kernel for what is described, asked without an exception.

#include <string>
#include <string_view>

#include <oneapi/dnnl/dnnl.hpp>

namespace tenon::onednn {

// The last argument of a primitive_desc: it is empty where oneDNN has no kernel.
inline constexpr bool kMayFail = true;

// Empty: there is one. oneDNN's plain loops are refused unless nothing else is left.
inline std::string why_no_kernel(const dnnl::primitive_desc_base& description,
                                 bool takes_plain_loops = false) {
  if (!description) return "oneDNN has no kernel for it";
  const bool is_slow =
      !takes_plain_loops && std::string_view(description.impl_info_str()).starts_with("ref");
  return is_slow ? "oneDNN has only its plain loops for it" : "";
}

}  // namespace tenon::onednn
