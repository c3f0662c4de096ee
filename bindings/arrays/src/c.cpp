// SPDX-License-Identifier: Apache-2.0
// The functions for C and FFI.
#include "tenon/arrays.h"

#include "tenon/arrays/graph.hpp"

namespace {

using tenon::arrays::Json;
using tenon::cxx::cat, tenon::cxx::invalid, tenon::cxx::view;

struct Services : tenon::cxx::Services {
  explicit Services(const tn_host* host) { find_services(host); }
};

}  // namespace

extern "C" const char* tn_arrays_describe(void) {
  static const std::string text = tenon::cxx::dump(tenon::arrays::description());
  return text.c_str();
}

extern "C" tn_status* tn_arrays_call(const tn_host* host,
                                     tn_edit* edit,
                                     tn_str function,
                                     tn_str arguments,
                                     tn_value_id* out_values,
                                     uint64_t n_values,
                                     uint64_t* out_count) {
  *out_count = 0;
  return tenon::cxx::callback_with<Services>(host, [&](const Services& services) {
    Json given = Json::parse(view(arguments), nullptr, false);
    if (!given.is_array() && !given.is_object())
      invalid(cat("arguments: expected a list or an object in JSON, got ", view(arguments)));
    bool by_name = given.is_object();
    tenon::arrays::Graph graph(services, edit);
    std::vector<tn_value_id> made = graph.call(view(function), by_name ? Json::array() : given,
                                               by_name ? given : Json::object());
    if (made.size() > n_values)
      invalid(cat(view(function), ": expected room for ", made.size(), " values, got ", n_values));
    std::copy(made.begin(), made.end(), out_values);
    *out_count = made.size();
  });
}
