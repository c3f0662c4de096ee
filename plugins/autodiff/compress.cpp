// SPDX-License-Identifier: Apache-2.0
// autodiff.compress: what the backward pass reads of the forward pass is kept in fewer bytes.
// Values in which gradients are linear are quantized to 8 bits with stochastic rounding, so
// that gradients keep their mean (Chen et al. 2021, "ActNN"; Liu et al. 2022, "GACT"); others,
// where a random error would move the mean, in bfloat16.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tenon/sdk/match.hpp"
#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "compression.hpp"
#include "saved_reads.hpp"

namespace tenon::autodiff {
namespace {

constexpr std::string_view kStep = "compress/step";  // state, i64[1]

struct PackPlan {
  int64_t group = 0;         // 0: bfloat16
  std::vector<Value> early;  // what is made of the value before it is given up
  Node place;                // that waits for it
};

// A value and those who read it or a view of it.
struct Saved {
  Value base;
  std::vector<SavedRead> reads;
  int wait_from = 0;  // of the forward nodes that may wait for it: the last one that reads it, or
                      // the next one behind its own where none does
  PackPlan plan = {};
  std::string_view why = {};  // it is kept as it is; empty: it is packed
};

// x > 0: rounding to bfloat16, which has float32's exponents, leaves it as it is.
bool is_sign_test(Node node) {
  return node.type() == "Greater" && scalar_of(node.input(1)) == 0.0;
}

// Whether what the read makes is kept in place of the value that it reads.
bool is_made_early(const SavedRead& read, int64_t group) {
  return read.kind == ReadKind::kStep && !(group == 0 && is_sign_test(read.node));
}

// A backend computes such a node again rather than keep its result.
bool is_cheap(Node node) {
  const tn_op_columns* columns = node ? node.columns() : nullptr;
  return columns && columns->recompute <= TN_RECOMPUTE_FUSIBLE;
}

// Operators with which a backend joins what comes before them are no place to wait at: it would
// keep the two apart.
bool is_wait_place(Node node) {
  const tn_op* row = node.row();
  return row && !(row->traits & (TN_OP_POINTWISE | TN_OP_VIEW)) && node.n_inputs() > 0;
}

class Compress {
 public:
  static Result<Compress> create(tn_ctx*, const Options& options) {
    Compress made;
    made.to_int8_ = options.text("form") == "int8";
    made.group_ = options.integer("group");
    made.least_bytes_ = options.integer("min_bytes");
    made.seed_ = options.integer("seed");
    made.sizes_.is_bf16 = options.text("precision") == "bf16";
    return made;
  }

  Status run(tn_graph* graph, const Cancel&, Sink& report) {
    if (Graph{graph}.find(kStep))
      return {TN_FAILED_PRECONDITION, "autodiff.compress was applied already"};
    int64_t before = sizes_.peak({graph});
    TN_CHECK(rewrite(graph));
    nlohmann::json summary{{"int8", n_int8_},
                           {"bfloat16", n_half_},
                           {"kept", kept_},
                           {"bytes_before", bytes_before_},
                           {"bytes", bytes_},
                           {"planned_peak_before", before},
                           {"planned_peak", sizes_.peak({graph})}};
    return report.write(summary.dump());
  }

 private:
  Status rewrite(tn_graph* graph) {
    TN_TRY(edit, Edit::begin(graph));
    TN_TRY(joint, Joint::of(edit.graph()));
    TN_TRY(reads, saved_reads(graph, joint));
    std::vector<Saved> all = by_value(reads, joint);
    std::vector<Compression::Form> forms;
    std::set<tn_value_id> stays;
    for (Saved& saved : all) {
      saved.why = plan_for(saved, joint, &saved.plan);
      if (!saved.why.empty()) stays.insert(saved.base.id);
    }
    for (Saved& saved : all) {
      if (saved.why.empty() && is_made_again(saved.base.producer(), stays)) saved.why = "cheap";
      if (saved.why.empty() && saved.plan.group)
        forms.push_back({saved.base.type().elements(), saved.plan.group});
    }
    Builder b(edit);
    TN_TRY(count, Slot::open(edit, std::string(kStep), Type(TN_I64, {1})));
    Value key = b.op("Concat", {b.ints({seed_}), count.before}, {{"axis", 0}});
    Compression form(b, key, Compression::n_draws(forms));
    if (form.draws()) waits_[first_place(joint).id].push_back(form.draws());
    for (const Saved& saved : all) {
      bytes_before_ += sizes_.of(saved.base);
      if (saved.why.empty()) {
        TN_CHECK(pack(b, form, saved, saved.plan));
      } else {
        ++kept_[std::string(saved.why)];
        bytes_ += sizes_.of(saved.base);
      }
    }
    TN_CHECK(wait(b));
    Value next = b.add(count.before, b.ints({1}));
    TN_CHECK(b.status());
    TN_CHECK(count.close(edit, next));
    return edit.commit();
  }

  // Why the value is kept as it is; empty: the plan is made.
  std::string_view plan_for(const Saved& saved, const Joint& joint, PackPlan* out) const {
    int64_t bytes = sizes_.of(saved.base);
    uint32_t dtype = saved.base.dtype();
    if (bytes < least_bytes_) return "small";
    if (dtype != TN_F32 && dtype != TN_BF16 && dtype != TN_F16) return "type";
    int64_t elements = saved.base.type().elements();
    bool is_linear = std::none_of(saved.reads.begin(), saved.reads.end(),
                                  [](auto& read) { return read.kind == ReadKind::kNonlinear; });
    if (to_int8_ && is_linear) out->group = Compression::group_of(elements, group_);
    int64_t packed = elements * (out->group ? 1 : 2);
    if (packed >= bytes) return is_linear ? "type" : "nonlinear";
    for (const SavedRead& read : saved.reads) {
      if (!is_made_early(read, out->group)) continue;
      if (!is_made_of_forward(read.node, joint)) return "step";
      for (Value output : read.node.outputs())
        if (output) out->early.push_back(output);
    }
    for (Value output : out->early)
      packed += sizes_.of(output);
    if (packed >= bytes) return "step";
    const std::vector<Node>& forward = joint.forward();
    auto at = std::find_if(forward.begin() + saved.wait_from, forward.end(), is_wait_place);
    if (at == forward.end()) return "last";
    out->place = *at;
    return "";
  }
  // From what stays in memory: what is packed is not the same any more.
  static bool is_made_again(Node node, const std::set<tn_value_id>& stays) {
    if (!is_cheap(node)) return false;
    std::vector<Value> inputs = node.inputs();
    return std::all_of(inputs.begin(), inputs.end(), [&](Value input) {
      return !input || input.is_constant() || stays.contains(base_of(input).id);
    });
  }

  // Random numbers are drawn before the forward pass: what draws them may be another backend, and
  // values of the forward pass need not wait for it.
  static Node first_place(const Joint& joint) {
    for (Node node : joint.forward())
      for (Value input : node.inputs())
        if (input && !input.is_constant()) return node;
    return joint.forward().front();
  }
  static bool is_made_of_forward(Node node, const Joint& joint) {
    for (Value input : node.inputs())
      if (input && joint.is_backward(input)) return false;
    return true;
  }

  Status pack(Builder& b, Compression& form, const Saved& saved, const PackPlan& plan) {
    Packed packed =
        plan.group ? form.pack_codes(saved.base, plan.group) : form.pack_half(saved.base);
    TN_CHECK(b.status());
    std::map<tn_value_id, Value> unpacked;  // by what is read: views have shapes of their own
    size_t n_replaced = 0;
    for (const SavedRead& read : saved.reads) {
      if (is_made_early(read, plan.group)) continue;
      Value& made = unpacked[read.value.id];
      if (!made)
        made = plan.group ? form.unpack_codes(packed.parts, read.value)
                          : form.unpack_half(packed.parts[0], read.value);
      TN_CHECK(b.status());
      TN_CHECK(b.edit().set_input(read.node, read.input, made));
      ++n_replaced;
    }
    std::vector<Value>& waits = waits_[plan.place.id];
    if (n_replaced > 0) {
      waits.insert(waits.end(), packed.parts.begin(), packed.parts.end());
      bytes_ += packed.bytes;
      ++(plan.group ? n_int8_ : n_half_);
    }
    waits.insert(waits.end(), plan.early.begin(), plan.early.end());
    for (Value early : plan.early)
      bytes_ += sizes_.of(early);
    return {};
  }

  // Nodes of the forward pass do not begin before what is kept is packed: it would be packed in
  // the backward pass otherwise, when the value itself is wanted.
  Status wait(Builder& b) const {
    for (const auto& [id, waits] : waits_) {
      Node node = b.edit().node(id);
      uint64_t at = 0;
      while (at + 1 < node.n_inputs() && !(node.input(at) && !node.input(at).is_constant()))
        ++at;
      std::vector<Value> inputs{node.input(at)};
      inputs.insert(inputs.end(), waits.begin(), waits.end());
      Node barrier = b.node({.type = "Barrier", .inputs = inputs, .domain = "tenon"});
      TN_CHECK(b.status());
      TN_CHECK(b.edit().set_input(node, at, barrier.output()));
    }
    return {};
  }

  static std::vector<Saved> by_value(const std::vector<SavedRead>& reads, const Joint& joint) {
    std::map<tn_value_id, size_t> number;
    std::vector<Saved> out;
    for (const SavedRead& read : reads) {
      auto [at, is_new] = number.emplace(read.base.id, out.size());
      if (is_new) out.push_back({read.base, {}, joint.place(read.base.producer()) + 1});
      out[at->second].reads.push_back(read);
    }
    for (size_t i = 0; i < joint.forward().size(); ++i)
      for (Value input : joint.forward()[i].inputs()) {
        auto at = input ? number.find(base_of(input).id) : number.end();
        if (at != number.end()) out[at->second].wait_from = static_cast<int>(i);
      }
    return out;
  }

  bool to_int8_ = true;
  Sizes sizes_;
  int64_t group_ = 256, least_bytes_ = 0, seed_ = 0;
  int64_t n_int8_ = 0, n_half_ = 0, bytes_before_ = 0, bytes_ = 0;
  std::map<std::string, int64_t> kept_;  // by the reason
  std::map<tn_node_id, std::vector<Value>> waits_;
};

}  // namespace
}  // namespace tenon::autodiff

TENON_PASS(compress,
           tenon::autodiff::Compress,
           "autodiff.compress",
           "values between forward and backward are kept in 8 bits or bfloat16",
           R"({"properties": {
  "form": {"type": "string", "enum": ["int8", "bfloat16"], "default": "int8", "description": "int8: values in which gradients are linear quantized to 8 bits with stochastic rounding, others in bfloat16; bfloat16: all"},
  "group": {"type": "integer", "minimum": 32, "maximum": 65536, "default": 256, "description": "group size: elements that share a scale, at most"},
  "min_bytes": {"type": "integer", "minimum": 0, "default": 16384, "description": "smaller values are kept as they are"},
  "precision": {"type": "string", "enum": ["fp32", "bf16"], "default": "fp32", "description": "of the plan that will run: what values take in memory where they are not packed"},
  "seed": {"type": "integer", "minimum": 0, "default": 0, "description": "seed of the stochastic rounding"}}})")
