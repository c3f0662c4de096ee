// SPDX-License-Identifier: Apache-2.0
// What a row states in words and numbers says the same as the row's functions do. That words have
// their grammar the host checks when it adopts the row.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "tenon/host/op.h"

#include "edit.hpp"
#include "sampled.hpp"

namespace tenon::command::check {
namespace {

// The sizes that labels of the signature have, by operand and axis.
class Sizes {
 public:
  Sizes(const tn_axes& axes, uint64_t seed) : axes_(axes), seed_(seed) {}

  void operand(uint32_t index, const std::string& name, const std::vector<int64_t>& dims) {
    const tn_axes_operand& operand = axes_.operands[index];
    if (operand.flags & TN_AXES_OPERAND_REPEATED) return;
    size_t n_runs = 0;
    for (uint32_t t = 0; t < operand.n_terms; ++t)
      n_runs += is_run(axes_.terms[operand.first_term + t]);
    size_t n_single = operand.n_dims - n_runs;
    require(n_runs > 0 ? dims.size() >= n_single : dims.size() == n_single,
            cat("seed ", seed_, ": ", name, ": axes say ", n_runs > 0 ? "at least " : "", n_single,
                " axes, shape says ", dims.size()));
    if (n_runs > 1) return;
    size_t at = 0, run = dims.size() - n_single;
    for (uint32_t t = 0; t < operand.n_terms; ++t) {
      const tn_axes_term& term = axes_.terms[operand.first_term + t];
      bool goes_on = t + 1 < operand.n_terms && (&term)[1].dim == term.dim;
      for (size_t k = 0; k < (is_run(term) ? run : 1); ++k)
        if (is_plain(term)) one(term, k, name, dims[at + k]);
      if (!goes_on) at += is_run(term) ? run : 1;
    }
  }

 private:
  static bool is_run(const tn_axes_term& term) {
    return (term.flags & (TN_AXES_TERM_RUN | TN_AXES_TERM_BATCH)) != 0;
  }
  // Others may differ from what the label has elsewhere.
  static bool is_plain(const tn_axes_term& term) {
    return (term.flags & (TN_AXES_TERM_BATCH | TN_AXES_TERM_PRIMED | TN_AXES_TERM_GROUPED)) == 0;
  }
  void one(const tn_axes_term& term, size_t k, const std::string& name, int64_t got) {
    if (got < 0) return;
    int64_t want = static_cast<int64_t>(term.size);
    std::string label = std::to_string(want);
    if (term.label != TN_AXES_NO_LABEL) {
      const tn_axes_label& of = axes_.labels[term.label];
      label.assign(axes_.text + of.name_offset, of.name_len);
      want = known_.try_emplace({term.label, k}, got).first->second;
    }
    require(want == got, cat("seed ", seed_, ": ", name, ": axes say ", label, " = ", want,
                             ", shape says ", got));
  }

  const tn_axes& axes_;
  uint64_t seed_;
  std::map<std::pair<uint32_t, size_t>, int64_t> known_;
};

using Tensors = std::vector<cxx::Tensor>;

Tensors random_inputs(const cxx::Model& model, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensors out;
  for (const cxx::Port& port : model.inputs())
    out.push_back(random_tensor(model.session(), port.dtype, port.dims, random));
  return out;
}
Tensors run(const cxx::Model& model, const Tensors& inputs) {
  return cxx::Plan(model, {{"backend", "reference"}}).run(inputs);
}

// The sample with the node's first two inputs in the place of each other.
Sampled swapped(const SessionPtr& session, const tn_op* row, uint64_t seed) {
  Sampled out = sample_of(session, row, seed);
  Edit edit(session, const_cast<tn_graph*>(out.model.get()));
  std::vector<tn_value_id> in = edit.ends(out.node, TN_LIST_INPUTS);
  require(in.size() >= 2, cat("seed ", seed, ": commutative: expected two inputs or more"));
  for (size_t i : {0, 1})
    cxx::check(session->edit->set_input(edit.raw(), out.node, i, in[1 - i]));
  edit.commit();
  return out;
}

// The first result has the bytes of the node's first input, where that is one of the graph's.
void is_view(const Sampled& sampled, const Tensors& in, const cxx::Tensor& out, uint64_t seed) {
  const cxx::Model& model = sampled.model;
  const tn_value_id first = model.services().io_at(model.get(), sampled.node, TN_LIST_INPUTS, 0);
  for (uint64_t p = 0; p < in.size(); ++p) {
    if (model.services().value_at(model.get(), TN_LIST_INPUTS, p, 0) != first) continue;
    require(out.bytes() == in[p].bytes() && std::memcmp(out.data(), in[p].data(), out.bytes()) == 0,
            cat("seed ", seed, ": a view: expected the bytes of input 0, got other ones"));
  }
}

}  // namespace

cxx::Model graph_for(const SessionPtr& session, const tn_op* row) {
  tn_graph* raw = nullptr;
  cxx::check(session->graph->create(session->ctx(), &raw));
  cxx::Model made(session, raw);
  const tn_host* host = tenon_host(session->raw());
  const auto* table =
      static_cast<const tn_host_op*>(host->get_interface(host, cxx::str("tenon.host.op/1")));
  const tn_op* newest = table->find(session->ctx(), row->domain, row->type);
  if (newest && newest->since_version == row->since_version) return made;
  tn_any version{};
  version.tag = TN_ANY_I64;
  version.v.i = static_cast<int64_t>(row->since_version);
  Edit edit(session, raw);
  cxx::check(session->edit->set_note(edit.raw(), 0, cxx::str(cat("opset.", cxx::view(row->domain))),
                                     version));
  edit.commit();
  return made;
}

Sampled sample_of(const SessionPtr& session, const tn_op* row, uint64_t seed) {
  Sampled out{graph_for(session, row), 0};
  Edit edit(session, const_cast<tn_graph*>(out.model.get()));
  cxx::check(row->sample(row->self, edit.raw(), seed, &out.node));
  std::vector<tn_value_id> outputs = edit.ends(out.node, TN_LIST_OUTPUTS);
  for (size_t i = 0; i < outputs.size(); ++i)
    edit.output(cat("y", i), outputs[i]);
  edit.commit();
  return out;
}

void check_cost(const SessionPtr& session, const tn_op* row, uint64_t first_seed) {
  for (uint64_t seed = first_seed; seed < first_seed + 8; ++seed) {
    Sampled sampled = sample_of(session, row, seed);
    double flops = NAN, bytes = NAN;
    cxx::check(row->cost(row->self, sampled.model.get(), sampled.node, &flops, &bytes));
    for (auto [name, number] : {std::pair{"flops", flops}, std::pair{"bytes", bytes}})
      require(std::isfinite(number) && number >= 0,
              cat("seed ", seed, ": ", name, ": expected a finite number from 0, got ", number));
  }
}

void check_axes(const SessionPtr& session, const tn_op* row, uint64_t first_seed) {
  const tn_host* host = tenon_host(session->raw());
  const auto* table =
      static_cast<const tn_host_op*>(host->get_interface(host, cxx::str("tenon.host.op/1")));
  const tn_axes* axes = nullptr;
  cxx::check(table->axes(row, &axes));
  for (uint64_t seed = first_seed; seed < first_seed + 8; ++seed) {
    Sampled sampled = sample_of(session, row, seed);
    const tn_graph* graph = sampled.model.get();
    Sizes sizes(*axes, seed);
    for (uint32_t side : {TN_LIST_INPUTS, TN_LIST_OUTPUTS}) {
      bool is_input = side == TN_LIST_INPUTS;
      uint64_t n = is_input ? axes->n_inputs : axes->n_outputs;
      for (uint64_t i = 0; i < n && i < session->graph->io_count(graph, sampled.node, side); ++i) {
        tn_value_id value = session->graph->io_at(graph, sampled.node, side, i);
        tn_type type{};
        type.struct_size = sizeof type;
        if (value == 0) continue;
        cxx::check(session->graph->value_type(graph, value, &type));
        if (type.rank == TN_RANK_UNKNOWN) continue;
        sizes.operand(static_cast<uint32_t>(i + (is_input ? 0 : axes->n_inputs)),
                      cat(is_input ? "input " : "output ", i), {type.dims, type.dims + type.rank});
      }
    }
  }
}

void check_traits(const SessionPtr& session, const tn_op* row, uint64_t first_seed) {
  if (row->traits & TN_OP_RANDOM) throw Skipped{"its results are random"};
  for (uint64_t seed = first_seed; seed < first_seed + 8; ++seed) {
    Sampled sampled = sample_of(session, row, seed);
    Tensors in = random_inputs(sampled.model, seed), out = run(sampled.model, in);
    if (row->traits & TN_OP_VIEW) is_view(sampled, in, out[0], seed);
    auto same = [&](const Tensors& got, const char* what) {
      for (size_t i = 0; i < out.size(); ++i)
        same_numbers(got[i], out[i], cat("seed ", seed, ": ", what, ": result ", i), 1e-6);
    };
    if (row->traits & TN_OP_READS_SHAPE)
      same(run(sampled.model, random_inputs(sampled.model, seed + 1000)),
           "reads shapes alone, given other numbers");
    if (row->traits & TN_OP_COMMUTATIVE)
      same(run(swapped(session, row, seed).model, in), "commutative, inputs 0 and 1 swapped");
  }
}

void check_open_sizes(const SessionPtr& session, const tn_op* row, uint64_t first_seed) {
  for (uint64_t seed = first_seed; seed < first_seed + 8; ++seed) {
    cxx::Model known = sample_of(session, row, seed).model;
    std::vector<cxx::Port> inputs = known.inputs(), results = known.outputs();
    std::vector<tn_type> types;
    std::vector<const tn_type*> list;
    for (cxx::Port& port : inputs) {
      std::ranges::fill(port.dims, int64_t{TN_DIM_UNKNOWN});
      types.push_back({sizeof(tn_type), port.kind, port.dtype,
                       static_cast<uint32_t>(port.dims.size()), port.dims.data(), nullptr});
    }
    for (const tn_type& type : types)
      list.push_back(&type);
    tn_graph* raw = nullptr;
    cxx::check(session->graph->bind(known.get(), list.data(), list.size(), &raw));
    std::vector<cxx::Port> open = cxx::Model(session, raw).outputs();
    for (size_t i = 0; i < results.size(); ++i) {
      bool fits = !open[i].ranked || open[i].dims.size() == results[i].dims.size();
      for (size_t d = 0; fits && open[i].ranked && d < open[i].dims.size(); ++d)
        fits = open[i].dims[d] < 0 || open[i].dims[d] == results[i].dims[d];
      require(fits, cat("seed ", seed, ": result ", i, " is ", results[i].text(),
                        ": with inputs of unknown sizes expected a type that allows it, got ",
                        open[i].text()));
    }
  }
}

}  // namespace tenon::command::check
