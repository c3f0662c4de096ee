// SPDX-License-Identifier: Apache-2.0
#include "role.hpp"

#include <cstdlib>

#include "tenon/role/op.h"

namespace tenon::quantizer {
namespace {

// "1", or "transB?0:1": the first number when the attribute is not 0.
int64_t number_or_choice(const std::string& text, Node node) {
  size_t question = text.find('?');
  if (question == std::string::npos) return std::atoll(text.c_str());
  size_t colon = text.find(':', question);
  bool is_set = node.attr_int(text.substr(0, question)) != 0;
  size_t from = is_set || colon == std::string::npos ? question + 1 : colon + 1;
  return std::atoll(text.c_str() + from);
}

// "1:1,2:1": inputs and their axes.
std::vector<std::pair<int64_t, int64_t>> pairs_of(const std::string& text) {
  std::vector<std::pair<int64_t, int64_t>> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(',', at), text.size()), colon = text.find(':', at);
    out.emplace_back(std::atoll(text.c_str() + at),
                     colon < end ? std::atoll(text.c_str() + colon + 1) : 0);
    at = end + 1;
  }
  return out;
}

}  // namespace

Role role_of(Node node) {
  Role role;
  const tn_op* row = node.row();
  role.has_row = row != nullptr;
  if (!row) return role;
  role.pointwise = row->traits & TN_OP_POINTWISE;
  std::string rest(view(row->quant));
  for (bool first = true; !rest.empty(); first = false) {
    size_t end = std::min(rest.find(' '), rest.size());
    std::string word = rest.substr(0, end);
    rest.erase(0, std::min(end + 1, rest.size()));
    if (first) {
      if (word == "compute") role.kind = Kind::kCompute;
      if (word == "same_scale") role.kind = Kind::kSameScale;
      if (word == "table") role.kind = Kind::kTable;
      if (word == "requant") role.kind = Kind::kRequant;
    }
    for (auto [key, to] : {std::pair{"act=", &role.act},
                           {"weight=", &role.weight},
                           {"bias=", &role.bias},
                           {"axis=", &role.axis},
                           {"rows=", &role.rows}})
      if (word.starts_with(key)) *to = number_or_choice(word.substr(std::string(key).size()), node);
    if (word.starts_with("stored=")) role.stored = pairs_of(word.substr(7));
  }
  return role;
}

}  // namespace tenon::quantizer
