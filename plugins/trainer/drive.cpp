// SPDX-License-Identifier: Apache-2.0
// "trainer.drive": numbers of a step become inputs, so that a schedule needs no new plan.
#include "drive.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"
#include "tenon/sdk/setting.hpp"

#include "groups.hpp"

namespace tenon::trainer {
namespace {

constexpr std::string_view kInput = "setting/";

bool is_number(const Type& type) {
  return (type.dtype == TN_F32 || type.dtype == TN_F64) && type.rank() == 0;
}

// Constants that can be driven, by name: those that are marked, and what is one number with a name.
std::map<std::string, std::vector<Value>> drivable(Graph graph) {
  std::map<std::string, std::vector<Value>> found;
  for (Value constant : graph.constants()) {
    if (tn_any name = constant.note(kSettingNote); name.tag == TN_ANY_TEXT) {
      found[std::string(text_of(name))].push_back(constant);
    } else if (Type type = constant.type(); is_number(type)) {
      found[std::string(constant.name())].push_back(constant);
    }
  }
  return found;
}

// Those that somebody has named: numbers of a graph are called constant, constant_1, ...
std::string known_names(const std::map<std::string, std::vector<Value>>& found) {
  std::string out;
  for (const auto& [name, constants] : found)
    if (!name.starts_with("constant")) out += cat(out.empty() ? "" : ", ", name);
  return out.empty() ? "none here: an option that is 0 is left out" : out;
}

double number_of(Value scalar) {
  const Tensor tensor = scalar.constant();
  return scalar.dtype() == TN_F64 ? *tensor.data<double>() : *tensor.data<float>();
}

// By what each of these is multiplied when a schedule gives the first optimizer's own number:
// groups of parameters keep their ratio to it.
Result<std::vector<double>> factors_of(const std::vector<Value>& constants,
                                       const std::string& name) {
  if (constants.empty()) return std::vector<double>();  // all were driven before
  auto group_of = [](Value one) { return text_of(one.note(kSettingGroupNote)); };
  auto own = std::ranges::find_if(constants, [&](Value one) { return group_of(one).empty(); });
  const Value base = own == constants.end() ? constants.front() : *own;
  std::vector<double> out;
  for (Value one : constants) {
    const bool is_of_group = !group_of(one).empty(), differs = number_of(one) != number_of(base);
    if (differs && is_of_group && own == constants.end())
      return invalid(cat(name, ": groups ", group_of(base), " and ", group_of(one), " have ",
                         number_of(base), " and ", number_of(one),
                         ", and the optimizer itself has ",
                         "none that they could be shares of; give it one, or the groups the same"));
    out.push_back(differs && is_of_group ? number_of(one) / number_of(base) : 1);
  }
  return out;
}

class Drive {
 public:
  static Result<Drive> create(tn_ctx*, const Options& options) {
    return Drive{options.texts("names"), options.flag("may_miss")};
  }
  Status run(tn_graph* graph, const Cancel&, Sink& report) {
    size_t before = Graph{graph}.inputs().size();
    TN_CHECK(drive(graph, names_, may_miss_));
    nlohmann::json made = nlohmann::json::array();
    std::vector<Value> inputs = Graph{graph}.inputs();
    for (size_t i = before; i < inputs.size(); ++i)
      made.push_back(inputs[i].name().substr(kInput.size()));
    return report.write(nlohmann::json{{"inputs", made}}.dump());
  }
  std::vector<std::string> names_;
  bool may_miss_ = false;
};

}  // namespace

Status drive(tn_graph* graph, const std::vector<std::string>& names, bool may_miss) {
  if (names.empty()) return {};
  TN_TRY(edit, Edit::begin(graph));
  std::map<std::string, std::vector<Value>> found = drivable(edit.graph());
  for (const std::string& name : names) {
    Value input = edit.graph().find(cat(kInput, name));
    if (!input && !found.contains(name) && may_miss) continue;
    if (!input && !found.contains(name))
      return invalid(cat("expected numbers that are in the step (", known_names(found), "), got '",
                         name, "'"));
    if (!input) {
      const auto is_double = [](Value constant) { return constant.dtype() == TN_F64; };
      const uint32_t dtype = std::ranges::any_of(found[name], is_double) ? TN_F64 : TN_F32;
      TN_TRY(made, edit.input(cat(kInput, name), Type(dtype, {})));
      input = made;
    }
    Builder b(edit);
    TN_TRY(factors, factors_of(found[name], name));
    for (size_t i = 0; i < factors.size(); ++i) {
      Value constant = found[name][i], scaled = input;
      if (factors[i] != 1) scaled = b.mul(input, b.number(factors[i], input.dtype()));
      Value typed = b.cast(scaled, constant.dtype());
      TN_CHECK(b.status());
      TN_CHECK(edit.replace(constant, typed));
    }
  }
  return edit.commit();
}

}  // namespace tenon::trainer

TENON_PASS(drive,
           tenon::trainer::Drive,
           "trainer.drive",
           "numbers of a step become its inputs, so that schedules can drive them",
           R"({
  "required": ["names"],
  "properties": {
    "names": {"type": ["array", "string"], "items": {"type": "string"}, "description": "options of loss and optimizer, or names of scalar constants of float32 or float64; each becomes the input setting/NAME"},
    "may_miss": {"type": "boolean", "default": false, "description": "leaves out names that are not there yet; the report says which inputs were made"}}})")
