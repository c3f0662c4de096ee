// SPDX-License-Identifier: Apache-2.0
// autodiff.vmap: the graph of one example becomes the graph of many. Inputs get a new axis where
// in_axes says, outputs where out_axes says.
#include <charconv>
#include <optional>

#include "batching.hpp"
#include "interface.hpp"
#include "reverse.hpp"

namespace tenon::autodiff {
namespace {

using Axis = std::optional<int64_t>;  // nothing: not batched

// One axis for all, or one for each as "0, none, -1" or as a list.
class AxisOption {
 public:
  static Result<AxisOption> from(const Options& options, const char* name) {
    AxisOption out;
    out.name_ = name;
    tn_any any = options.get(name);
    if (any.tag == TN_ANY_I64) out.all_ = any.v.i;
    if (any.tag == TN_ANY_I64S) {
      for (int64_t axis : ints_of(any))
        out.each_.emplace_back(axis);
      out.listed_ = true;
    }
    if (any.tag != TN_ANY_TEXT) return out;
    out.listed_ = true;
    for (std::string_view rest = text_of(any); !rest.empty();) {
      size_t comma = std::min(rest.find(','), rest.size());
      TN_TRY(axis, word(name, rest.substr(0, comma)));
      out.each_.push_back(axis);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return out;
  }
  Result<std::vector<Axis>> for_list(size_t n, std::string_view what) const {
    if (!listed_) return std::vector<Axis>(n, all_);
    if (each_.size() == n) return each_;
    return invalid(cat("option ", name_, ": expected one entry for each of ", n, " ", what,
                       ", got ", each_.size()));
  }

 private:
  static Result<Axis> word(const char* name, std::string_view text) {
    while (text.starts_with(' '))
      text.remove_prefix(1);
    while (text.ends_with(' '))
      text.remove_suffix(1);
    if (text == "none") return Axis();
    int64_t axis = 0;
    auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), axis);
    if (wrong == std::errc() && end == text.data() + text.size()) return Axis(axis);
    return invalid(
        cat("option ", name, ": expected integers or none, separated by commas, got '", text, "'"));
  }
  std::string name_;
  Axis all_ = 0;
  std::vector<Axis> each_;
  bool listed_ = false;
};

// The order of axes that puts the first one at `axis`, or takes it from there to the front.
std::vector<int64_t> moved(size_t rank, int64_t axis, bool to_front) {
  std::vector<int64_t> perm;
  auto n = static_cast<int64_t>(rank);
  for (int64_t i = 0; i < n; ++i) {
    if (to_front)
      perm.push_back(i == 0 ? axis : i <= axis ? i - 1 : i);
    else
      perm.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
  }
  return perm;
}

Result<int64_t> place(std::string_view option, std::string_view who, int64_t axis, size_t rank) {
  auto n = static_cast<int64_t>(rank);
  if (axis >= -n && axis < n) return axis < 0 ? axis + n : axis;
  return invalid(
      cat("option ", option, ": ", who, ": expected an axis in ", -n, "..", n - 1, ", got ", axis));
}

class Vmap {
 public:
  static Result<Vmap> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(in, AxisOption::from(options, "in_axes"));
    TN_TRY(out, AxisOption::from(options, "out_axes"));
    Vmap made;
    made.ctx_ = ctx;
    made.in_ = in;
    made.out_ = out;
    made.size_ = options.integer("axis_size", 0);
    made.symbol_ = options.text("axis_name", "vmap");
    std::string random = options.text("random", "error");
    made.random_ = random == "same"        ? RandomMode::kSame
                   : random == "different" ? RandomMode::kDifferent
                                           : RandomMode::kError;
    return made;
  }

  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    TN_CHECK(fold_shapes(ctx_, graph, cancel));
    TN_TRY(edit, Edit::begin(graph));
    if (!edit.graph().list(TN_LIST_STATES).empty())
      return unsupported("a graph with state has no batched form; vmap the function without it");
    BatchContext c{edit, size_ > 0 ? size_ : TN_DIM_UNKNOWN, random_, {}, {}, {}};
    TN_TRY(old, give_axes(c));
    TN_CHECK(batch_nodes(c, edit.graph().outputs(), cancel));
    TN_CHECK(give_outputs(c));
    TN_CHECK(drop_dead_nodes(edit, c.batched));
    TN_CHECK(drop_inputs(edit, old));
    TN_CHECK(edit.commit());
    return write_report(c, report);
  }

 private:
  struct Old {
    size_t count = 0;
    std::vector<std::string> names;
  };

  // New inputs behind the old ones, which still stand for one example.
  Result<Old> give_axes(BatchContext& c) const {
    Graph graph = c.edit.graph();
    std::vector<Value> inputs = graph.inputs();
    TN_TRY(axes, in_.for_list(inputs.size(), "inputs"));
    Old old{inputs.size(), {}};
    Builder b(c.edit);
    for (size_t i = 0; i < inputs.size(); ++i) {
      old.names.emplace_back(graph.input_name(i));
      Type type = inputs[i].type();
      if (!axes[i]) {
        TN_TRY(same, c.edit.input(cat("batched/", old.names[i]), type));
        shared_.emplace_back(inputs[i], same);
        continue;
      }
      if (!type.ranked) return unsupported(cat("input ", old.names[i], ": expected a known rank"));
      TN_TRY(axis, place("in_axes", cat("input ", old.names[i]), *axes[i], type.rank() + 1));
      if (!type.symbols.empty() || c.size < 0) {
        type.symbols.resize(type.rank());
        type.symbols.insert(type.symbols.begin() + axis, c.size < 0 ? symbol_ : "");
      }
      type.dims.insert(type.dims.begin() + axis, c.size);
      TN_TRY(wide, c.edit.input(cat("batched/", old.names[i]), type));
      c.batched[inputs[i].id] =
          axis == 0 ? wide : b.transpose(wide, moved(type.rank(), axis, true));
    }
    TN_CHECK(b.status());
    for (auto& [from, to] : shared_)
      TN_CHECK(c.edit.replace(from, to));
    shared_.clear();
    return old;
  }

  Status give_outputs(BatchContext& c) const {
    std::vector<Value> outputs = c.edit.graph().outputs();
    TN_TRY(axes, out_.for_list(outputs.size(), "outputs"));
    Builder b(c.edit);
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::string name(c.edit.graph().output_name(i));
      auto found = c.batched.find(outputs[i].id);
      bool has_axis = found != c.batched.end();
      if (has_axis && !axes[i])
        return invalid(cat("option out_axes: output ", name,
                           ": expected an axis, for it differs by example, got none"));
      if (!axes[i]) continue;
      Type type = b.ranked(outputs[i], "vmap");
      TN_CHECK(b.status());
      TN_TRY(axis, place("out_axes", cat("output ", name), *axes[i], type.rank() + 1));
      Value wide = with_axis(b, c, outputs[i]);
      if (axis != 0) wide = b.transpose(wide, moved(type.rank() + 1, axis, false));
      TN_CHECK(b.status());
      TN_CHECK(services.edit->set_output(c.edit.raw, i, wide.id));
    }
    return {};
  }

  static Status drop_inputs(const EditView& edit, const Old& old) {
    for (size_t i = 0; i < old.count; ++i)
      TN_CHECK(services.edit->remove_input(edit.raw, 0));
    std::vector<Value> inputs = edit.graph().inputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      TN_CHECK(services.edit->set_value_name(edit.raw, inputs[i].id, str(old.names[i])));
    return {};
  }

  Status write_report(const BatchContext& c, Sink& report) const {
    std::string list;
    for (const std::string& loop : c.loops) {
      log_line(ctx_, TN_LOG_WARNING,
               "autodiff.vmap: " + loop + ": no batch rule, it runs as a loop");
      list += cat(list.empty() ? "\"" : ", \"", loop, "\"");
    }
    return report.write(cat("{\"loops\": [", list, "]}"));
  }

  tn_ctx* ctx_ = nullptr;
  AxisOption in_, out_;
  int64_t size_ = 0;
  std::string symbol_;
  RandomMode random_ = RandomMode::kError;
  mutable std::vector<std::pair<Value, Value>> shared_;
};

}  // namespace
}  // namespace tenon::autodiff

TENON_PASS(vmap,
           tenon::autodiff::Vmap,
           "autodiff.vmap",
           "the graph of one example becomes the graph of many",
           R"({"properties": {
  "in_axes": {"type": ["integer", "array", "string"], "items": {"type": "integer"}, "default": 0,
              "description": "where inputs get the new axis: one for all, a list, or '0, none'"},
  "out_axes": {"type": ["integer", "array", "string"], "items": {"type": "integer"}, "default": 0,
               "description": "where outputs have it, in the same form"},
  "axis_size": {"type": "integer", "minimum": 0, "default": 0,
                "description": "size of the new axis; 0: a symbol"},
  "axis_name": {"type": "string", "default": "vmap", "description": "that symbol"},
  "random": {"type": "string", "enum": ["error", "same", "different"], "default": "error",
             "description": "random operators: refuse, or the same or other numbers by example"}}})")
