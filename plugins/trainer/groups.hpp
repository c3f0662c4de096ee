// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups of parameters that are updated in another way than the rest.

#include <string>
#include <vector>

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/optimizer.hpp"

namespace tenon::trainer {

// Note on a number that can be driven (tenon/sdk/setting.hpp): the group whose own optimizer reads
// it.
inline constexpr std::string_view kSettingGroupNote = "setting_group";

struct Group {
  std::string name;
  std::vector<std::string> parameters;  // patterns
  double rate = 1;                      // times the learning rate
  Component optimizer;                  // falsy: that of the rest
};

// {"NAME": {"parameters": patterns, "rate": factor, "optimizer": id, "options": {...}}}. options
// are those of the optimizer, which is the main one's kind where no id is given.
Result<std::vector<Group>> read_groups(tn_ctx* ctx, const std::string& text, const Component& main);

// The places of the parameters of each group, and in front of them of those in none.
Result<std::vector<std::vector<size_t>>> distribute(const std::vector<Group>& groups,
                                                    const std::vector<Parameter>& parameters);

}  // namespace tenon::trainer
