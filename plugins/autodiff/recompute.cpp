// SPDX-License-Identifier: Apache-2.0
// autodiff.recompute: what the backward part reads of a segment of the forward part is computed
// again when that segment's turn comes, from what enters the segment, and is not kept until then.
// The numbers are the same to the bit: the same nodes on the same values, draws with the same
// seeds.
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "tenon/sdk/alike.hpp"
#include "tenon/sdk/draws.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "draws.hpp"
#include "joint.hpp"
#include "recompute_choice.hpp"

namespace tenon::autodiff {
namespace {

bool is_in(std::string_view scope, std::string_view region) {
  if (!scope.starts_with(region)) return false;
  return scope.size() == region.size() || scope[region.size()] == '/' ||
         scope[region.size()] == '.';
}

// Nodes that may not run twice: their results are kept.
bool is_fixed(Node node) {
  const tn_op* row = node.row();
  const tn_op_columns* columns = node.columns();
  if (!row || (row->traits & TN_OP_STATEFUL)) return true;
  return columns && columns->recompute == TN_RECOMPUTE_NEVER && !(row->traits & TN_OP_RANDOM);
}

class Recomputation {
 public:
  Recomputation(const EditView& edit, Joint joint)
      : edit_(edit),
        builder_(edit),
        joint_(std::move(joint)),
        segment_(joint_.forward().size(), -1) {}

  // Cut by the sizes of values; the last segment's backward comes at once, so it is kept.
  void by_sizes() {
    cuts_ = choose_cuts(forward_values(), static_cast<int>(segment_.size()));
    size_t first = 0;
    for (size_t k = 0; k < cuts_.ends.size(); ++k) {
      auto end = static_cast<size_t>(cuts_.ends[k]);
      for (; first <= end; ++first)
        segment_[first] = static_cast<int>(k);
    }
  }
  Status by_regions(const std::vector<std::string>& regions) {
    for (size_t k = 0; k < regions.size(); ++k) {
      size_t n = 0;
      for (size_t i = 0; i < segment_.size(); ++i) {
        if (!is_in(joint_.forward()[i].scope(), regions[k])) continue;
        segment_[i] = static_cast<int>(k);
        ++n;
      }
      if (n == 0)
        return invalid(cat("option regions: expected scopes of the forward part (", known_scopes(),
                           "), got '", regions[k], "'"));
    }
    return {};
  }

  Status rewrite() {
    find_readers();
    for (const Reader& reader : readers_) {
      if (!turns_.count(reader.segment)) continue;
      TN_CHECK(edit_.set_input(reader.node, reader.input, again(reader.value, reader.segment)));
      TN_CHECK(builder_.status());
    }
    return {};
  }

  const Cuts& cuts() const { return cuts_; }
  size_t n_segments() const { return turns_.size(); }
  size_t n_again() const { return nodes_.size(); }

 private:
  struct Reader {
    Node node;
    uint64_t input;
    Value value;
    int segment;
  };

  std::vector<ForwardValue> forward_values() const {
    std::map<tn_value_id, ForwardValue> found;
    for (size_t i = 0; i < joint_.forward().size(); ++i) {
      Node node = joint_.forward()[i];
      auto place = static_cast<int>(i);
      for (Value output : node.outputs())
        if (output && base_of(output) == output)
          found[output.id] = {place, place, bytes_of(output)};
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
  template <class Change>
  static void use(std::map<tn_value_id, ForwardValue>& found, Value value, Change change) {
    auto at = found.find(base_of(value).id);
    if (at != found.end()) change(at->second);
  }

  std::string known_scopes() const {
    std::set<std::string> scopes;
    for (Node node : joint_.forward())
      if (!node.scope().empty()) scopes.insert(std::string(node.scope()));
    std::string out;
    for (const std::string& scope : scopes)
      if (out.size() < 200) out += cat(out.empty() ? "" : ", ", scope);
    return out.empty() ? "there are none" : out;
  }

  int segment_of(Node node) const {
    int place = joint_.place(node);
    return place < 0 ? -1 : segment_[static_cast<size_t>(place)];
  }
  // The segment that a value is inside of: nothing of the forward part reads it elsewhere.
  int inside(Value value) const {
    int segment = segment_of(value.producer());
    if (segment < 0 || value.is_output()) return -1;
    for (uint64_t i = 0; i < value.consumer_count(); ++i) {
      Node node = value.consumer(i);
      if (joint_.place(node) >= 0 && segment_of(node) != segment) return -1;
    }
    return segment;
  }

  // Who reads what is inside of segments; and for each segment the values that the first of them in
  // the backward part waits for: when they are there it is the segment's turn.
  void find_readers() {
    std::map<tn_value_id, std::set<int>> through;  // by values that only the backward part reads
    for (Node node : joint_.others()) {
      std::vector<Value> inputs = node.inputs(), waits;
      std::set<int> read;
      for (uint64_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i]) continue;
        if (joint_.is_backward(inputs[i])) waits.push_back(inputs[i]);
        if (auto more = through.find(inputs[i].id); more != through.end())
          read.insert(more->second.begin(), more->second.end());
        int segment = inside(inputs[i]);
        if (segment < 0) continue;
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
  Value again(Value value, int segment) {
    if (auto made = made_.find(value.id); made != made_.end()) return made->second;
    Node node = value.producer();
    if (is_fixed(node)) return value;
    if (!nodes_.insert(node.id).second) return value;
    std::vector<Value> inputs = node.inputs();
    for (Value& input : inputs)
      if (input)
        input = segment_of(input.producer()) == segment && inside(input) == segment
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
  Value entering(Value value, int segment) {
    if (value.is_constant() || joint_.is_parameter(value)) return value;
    Value& held = held_[{value.id, segment}];
    if (held) return held;
    std::vector<Value> inputs{value};
    inputs.insert(inputs.end(), turns_[segment].begin(), turns_[segment].end());
    Node barrier = builder_.node({.type = "Barrier", .inputs = inputs, .domain = "tenon"});
    return held = barrier ? barrier.output() : Value{};
  }

  const EditView& edit_;
  Builder builder_;
  Joint joint_;
  std::vector<int> segment_;  // of each forward node; -1: its results are kept
  Cuts cuts_;
  std::vector<Reader> readers_;
  std::map<int, std::vector<Value>> turns_;
  std::set<tn_node_id> nodes_;
  std::map<tn_value_id, Value> made_;
  std::map<std::pair<tn_value_id, int>, Value> held_;
};

class Recompute {
 public:
  static Result<Recompute> create(tn_ctx*, const Options& options) {
    return Recompute(options.texts("regions"));
  }

  Status run(tn_graph* graph, const Cancel&, Sink& report) {
    int64_t before = planned_peak({graph});
    nlohmann::json told;
    {
      TN_TRY(edit, Edit::begin(graph));
      TN_TRY(joint, Joint::of(edit.graph()));
      Recomputation made(edit, std::move(joint));
      if (regions_.empty())
        made.by_sizes();
      else
        TN_CHECK(made.by_regions(regions_));
      TN_CHECK(made.rewrite());
      told = {{"segments", made.n_segments()}, {"nodes_again", made.n_again()}};
      TN_CHECK(edit.commit());
    }
    told["planned_peak_before"] = before;
    told["planned_peak"] = planned_peak({graph});
    return report.write(told.dump());
  }

 private:
  explicit Recompute(std::vector<std::string> regions) : regions_(std::move(regions)) {}
  std::vector<std::string> regions_;
};

}  // namespace
}  // namespace tenon::autodiff

TENON_PASS(recompute,
           tenon::autodiff::Recompute,
           "autodiff.recompute",
           "values between forward and backward are computed again, not kept",
           R"({"properties": {
  "regions": {"type": "array", "items": {"type": "string"}, "description": "scopes whose values are computed again, each as one; none: segments by sqrt(n), cut where little crosses"}}})")
