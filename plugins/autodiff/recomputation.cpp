// SPDX-License-Identifier: Apache-2.0
#include "recomputation.hpp"

#include <algorithm>
#include <unordered_map>

#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/draws.hpp"

#include "draws.hpp"

namespace tenon::autodiff {
namespace {

bool is_in(std::string_view scope, std::string_view region) {
  if (!scope.starts_with(region)) return false;
  return scope.size() == region.size() || scope[region.size()] == '/' ||
         scope[region.size()] == '.';
}

bool is_view(Node node) {
  return node.row() && (node.row()->traits & TN_OP_VIEW);
}

template <class Change>
void use(std::map<tn_value_id, ForwardValue>& found, Value value, Change change) {
  auto at = found.find(base_of(value).id);
  if (at != found.end()) change(at->second);
}

}  // namespace

bool is_fixed(Node node) {
  const tn_op* row = node.row();
  const tn_op_columns* columns = node.columns();
  if (!row || (row->traits & TN_OP_STATEFUL)) return true;
  return columns && columns->recompute == TN_RECOMPUTE_NEVER && !(row->traits & TN_OP_RANDOM);
}

Result<OwnedGraph> on_copy(const tn_graph* graph,
                           Sizes sizes,
                           const std::function<Status(Recomputation&)>& use) {
  TN_TRY(copy, OwnedGraph::copy_of(graph));
  TN_TRY(edit, Edit::begin(copy.get()));
  TN_TRY(joint, Joint::of(edit.graph()));
  Recomputation made(edit, std::move(joint), sizes);
  TN_CHECK(use(made));
  TN_CHECK(edit.commit());
  return std::move(copy);
}

Recomputation::Recomputation(const EditView& edit, Joint joint, Sizes sizes)
    : edit_(edit),
      builder_(edit),
      joint_(std::move(joint)),
      sizes_(sizes),
      segment_(joint_.forward().size(), -1) {}

void Recomputation::cut(const std::vector<int>& ends) {
  size_t first = 0;
  for (size_t k = 0; k < ends.size(); ++k)
    for (; first <= static_cast<size_t>(ends[k]); ++first)
      segment_[first] = static_cast<int>(k);
}

void Recomputation::keep(const std::set<ForwardResult>& results) {
  kept_ = results;
}

Status Recomputation::by_regions(const std::vector<std::string>& regions) {
  for (size_t k = 0; k < regions.size(); ++k) {
    size_t n = 0;
    for (size_t i = 0; i < segment_.size(); ++i) {
      if (!is_in(joint_.forward()[i].scope(), regions[k])) continue;
      segment_[i] = static_cast<int>(k);
      ++n;
    }
    if (n == 0)
      return invalid(cat("option regions: expected scopes of the forward pass (", known_scopes(),
                         "), got '", regions[k], "'"));
  }
  return {};
}

Status Recomputation::rewrite() {
  find_readers();
  for (const Reader& reader : readers_) {
    if (!turns_.count(reader.segment)) continue;
    TN_CHECK(edit_.set_input(reader.node, reader.input, again(reader.value, reader.segment)));
    TN_CHECK(builder_.status());
  }
  return {};
}

std::vector<ForwardValue> Recomputation::forward_values() const {
  std::map<tn_value_id, ForwardValue> found;
  for (size_t i = 0; i < joint_.forward().size(); ++i) {
    Node node = joint_.forward()[i];
    auto place = static_cast<int>(i);
    for (Value output : node.outputs())
      if (output && base_of(output) == output) found[output.id] = {place, place, sizes_.of(output)};
    for (Value input : node.inputs())
      if (input) use(found, input, [&](ForwardValue& v) { v.last_use = place; });
  }
  for (Node node : joint_.others())
    for (Value input : node.inputs())
      if (input) use(found, input, [](ForwardValue& v) { v.is_saved = true; });
  std::vector<ForwardValue> out;
  for (const auto& [id, value] : found)
    out.push_back(value);
  return out;
}

// Values inside of segments alone: what crosses a cut is there anyway.
std::vector<Recomputation::Inside> Recomputation::insides(const std::vector<double>& cost) const {
  std::unordered_map<tn_value_id, int> number;
  std::vector<Inside> out;
  for (size_t i = 0; i < segment_.size(); ++i) {
    if (segment_[i] < 0) continue;
    auto segment = static_cast<size_t>(segment_[i]);
    if (out.size() <= segment) out.resize(segment + 1);
    Inside& of = out[segment];
    Node node = joint_.forward()[i];
    KeepNode made{is_view(node) ? 0 : cost[i], is_fixed(node), is_view(node), {}, {}};
    for (Value input : node.inputs())
      if (input && inside(input) == segment_[i] && number.contains(input.id))
        made.inputs.push_back(number[input.id]);
    for (uint64_t k = 0; k < node.n_outputs(); ++k) {
      Value value = node.output(k);
      if (!value || inside(value) != segment_[i]) continue;
      bool is_read = false;
      for (uint64_t c = 0; c < value.consumer_count(); ++c)
        is_read = is_read || joint_.place(value.consumer(c)) < 0;
      number[value.id] = static_cast<int>(of.results.size());
      made.outputs.push_back(number[value.id]);
      of.results.push_back({static_cast<int>(i), k});
      of.problem.values.push_back({sizes_.of(value), is_read});
    }
    of.problem.nodes.push_back(std::move(made));
  }
  return out;
}

std::string Recomputation::known_scopes() const {
  std::set<std::string> scopes;
  for (Node node : joint_.forward())
    if (!node.scope().empty()) scopes.insert(std::string(node.scope()));
  std::string out;
  for (const std::string& scope : scopes)
    if (out.size() < 200) out += cat(out.empty() ? "" : ", ", scope);
  return out.empty() ? "there are none" : out;
}

int Recomputation::segment_of(Node node) const {
  int place = joint_.place(node);
  return place < 0 ? -1 : segment_[static_cast<size_t>(place)];
}
// The segment that a value is inside of: nothing of the forward pass reads it elsewhere.
int Recomputation::inside(Value value) const {
  int segment = segment_of(value.producer());
  if (segment < 0 || value.is_output()) return -1;
  for (uint64_t i = 0; i < value.consumer_count(); ++i) {
    Node node = value.consumer(i);
    if (joint_.place(node) >= 0 && segment_of(node) != segment) return -1;
  }
  return segment;
}

bool Recomputation::is_kept(Value value) const {
  if (kept_.empty()) return false;
  Node node = value.producer();
  for (uint64_t k = 0; node && k < node.n_outputs(); ++k)
    if (node.output(k) == value) return kept_.contains({joint_.place(node), k});
  return false;
}

// Who reads what is inside of segments; and for each segment the values that the first of them in
// the backward pass waits for: when they are there it is the segment's turn.
void Recomputation::find_readers() {
  std::map<tn_value_id, std::set<int>> through;  // by values that only the backward pass reads
  for (Node node : joint_.others()) {
    std::vector<Value> inputs = node.inputs(), waits;
    std::set<int> read;
    for (uint64_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      if (joint_.is_backward(inputs[i])) waits.push_back(inputs[i]);
      if (auto more = through.find(inputs[i].id); more != through.end())
        read.insert(more->second.begin(), more->second.end());
      int segment = inside(inputs[i]);
      if (segment < 0 || is_kept(inputs[i])) continue;
      read.insert(segment);
      readers_.push_back({node, i, inputs[i], segment});
    }
    for (int segment : read) {
      if (!waits.empty()) turns_.try_emplace(segment, waits);
      if (waits.empty())
        for (Value output : node.outputs())
          if (output) through[output.id].insert(segment);
    }
  }
}

// The value, computed again in its segment's turn.
Value Recomputation::again(Value value, int segment) {
  if (auto made = made_.find(value.id); made != made_.end()) return made->second;
  Node node = value.producer();
  if (is_fixed(node)) return value;
  if (!nodes_.insert(node.id).second) return value;
  std::vector<Value> inputs = node.inputs();
  for (Value& input : inputs)
    if (input)
      input = segment_of(input.producer()) == segment && inside(input) == segment && !is_kept(input)
                  ? again(input, segment)
                  : entering(input, segment);
  std::vector<Attr> attributes = attributes_of(node);
  if (std::optional<Attr> seed = seed_to_repeat(node, node.name())) attributes.push_back(*seed);
  std::string name = cat(node.name(), "/again");
  Node copy = builder_.node({.type = node.type(),
                             .inputs = inputs,
                             .attrs = attributes,
                             .n_outputs = node.n_outputs(),
                             .name = name,
                             .domain = node.domain(),
                             .scope = node.scope()});
  for (uint64_t i = 0; copy && i < node.n_outputs(); ++i)
    if (node.output(i)) made_[node.output(i).id] = copy.output(i);
  return copy ? made_[value.id] : Value{};
}

// What comes from outside: not before the segment's turn, so that nothing is made early.
Value Recomputation::entering(Value value, int segment) {
  if (value.is_constant() || joint_.is_parameter(value)) return value;
  Value& held = held_[{value.id, segment}];
  if (held) return held;
  std::vector<Value> inputs{value};
  inputs.insert(inputs.end(), turns_[segment].begin(), turns_[segment].end());
  Node barrier = builder_.node({.type = "Barrier", .inputs = inputs, .domain = "tenon"});
  return held = barrier ? barrier.output() : Value{};
}

}  // namespace tenon::autodiff
