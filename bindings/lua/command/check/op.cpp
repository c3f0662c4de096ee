// SPDX-License-Identifier: Apache-2.0
// Operator rows, each by its own sample: it runs, gives the types that were inferred, and every
// column says the same as the plain kernel does.
#include "tenon/host/op.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tenon/role/op.h"

#include "check.hpp"
#include "edit.hpp"
#include "sampled.hpp"

namespace tenon::command::check {
namespace {

using cxx::Model;
using cxx::Tensor;
using Tensors = std::vector<Tensor>;

constexpr uint64_t kSeeds = 8;

const tn_host_op& table_of(const SessionPtr& session) {
  const tn_host* host = tenon_host(session->raw());
  return *static_cast<const tn_host_op*>(host->get_interface(host, cxx::str("tenon.host.op/1")));
}

class Row {
 public:
  Row(const SessionPtr& session, const tn_op* row, uint64_t seed)
      : session_(session), row_(row), first_(seed + 1), end_(first_ + kSeeds) {}

  // One random node with its outputs as the graph's; `more` adds to it before the commit.
  template <class More>
  Model sample(uint64_t seed, More&& more) const {
    Model model = graph_for(session_, row_);
    Edit edit(session_, const_cast<tn_graph*>(model.get()));
    tn_node_id node = 0;
    cxx::check(row_->sample ? row_->sample(row_->self, edit.raw(), seed, &node)
                            : pointwise(edit, seed, &node));
    std::vector<tn_value_id> outputs = edit.ends(node, TN_LIST_OUTPUTS);
    for (size_t i = 0; i < outputs.size(); ++i)
      edit.output(cat("y", i), outputs[i]);
    more(edit, node);
    edit.commit();
    return model;
  }
  Model sample(uint64_t seed) const {
    return sample(seed, [](Edit&, tn_node_id) {});
  }
  Tensors inputs(const Model& model, uint64_t seed) const {
    std::mt19937_64 random(seed);
    Tensors out;
    for (const cxx::Port& port : model.inputs())
      out.push_back(random_tensor(session_, port.dtype, port.dims, random));
    return out;
  }
  static Tensors run(const Model& model, const Tensors& inputs) {
    return cxx::Plan(model, {{"backend", "reference"}}).run(inputs);
  }

  bool makes_tensors() const;
  void runs() const;
  void decomposes() const;
  void differentiates() const;
  void batches() const;
  const tn_op* raw() const { return row_; }

 private:
  static constexpr int64_t kEntries = 3;  // of a batch

  Model with_gradients(const Model& plain,
                       uint64_t seed,
                       const std::vector<bool>& weighted,
                       std::vector<size_t>* positions) const;
  void compare_slopes(const Model& plain, uint64_t seed, const std::vector<bool>& weighted) const;
  double slope(const Model& plain,
               const Tensors& point,
               size_t p,
               const Tensor& way,
               std::span<const Tensor> cotangents) const;
  std::optional<Model> batched(const Model& plain,
                               uint64_t seed,
                               std::vector<uint8_t>* out_batched) const;
  // A row that is an expression needs no sample: inputs of one shape will do, of the first type in
  // which it can be computed.
  tn_status* pointwise(const Edit& edit, uint64_t seed, tn_node_id* out) const {
    for (uint32_t dtype : {TN_F32, TN_I64, TN_I32, TN_U8, TN_BOOL}) {
      Model scratch = graph_for(session_, row_);
      Edit trial(session_, const_cast<tn_graph*>(scratch.get()));
      tn_node_id node = 0;
      const tn_expr_program* program = nullptr;
      tn_status* refused = pointwise(trial, dtype, seed, &node);
      if (!refused && row_->expr.len > 0)
        refused = table_of(session_).expr(trial.graph(), node, &program);
      if (!refused) return pointwise(edit, dtype, seed, out);
      tenon_status_release(refused);
    }
    return pointwise(edit, TN_F32, seed, out);
  }
  tn_status* pointwise(const Edit& edit, uint32_t dtype, uint64_t seed, tn_node_id* out) const {
    tn_status* last = nullptr;
    std::vector<tn_value_id> in;
    for (uint64_t n = 1; n <= 4; ++n) {
      in.push_back(edit.input(cat("x", n), dtype, {2, static_cast<int64_t>(1 + seed % 4)}));
      tn_node_desc desc{sizeof desc, 0, row_->domain, row_->type, {}, {},     in.data(),
                        n,           1, nullptr,      nullptr,    0,  nullptr};
      tenon_status_release(last);
      last = session_->edit->add_node(edit.raw(), &desc, out, nullptr);
      if (!last) return nullptr;
    }
    return last;
  }
  SessionPtr session_;
  const tn_op* row_;
  uint64_t first_, end_;  // seeds of samples
};

bool Row::makes_tensors() const {
  std::vector<cxx::Port> results = sample(first_).outputs();
  return std::ranges::all_of(results,
                             [](const cxx::Port& port) { return port.kind == TN_KIND_TENSOR; });
}

void Row::runs() const {
  for (uint64_t seed = first_; seed < end_; ++seed) {
    Model model = sample(seed);
    Tensors got = run(model, inputs(model, seed));
    std::vector<cxx::Port> ports = model.outputs();
    for (size_t i = 0; i < got.size(); ++i) {
      bool open = (row_->traits & TN_OP_DATA_SHAPE) != 0;
      require(ports[i].dtype == got[i].dtype() && ports[i].ranked &&
                  ports[i].dims.size() == got[i].shape().size(),
              cat("seed ", seed, ": inferred ", ports[i].text(), ", computed ", got[i].text()));
      for (size_t d = 0; d < ports[i].dims.size(); ++d)
        require(ports[i].dims[d] == got[i].shape()[d] || (open && ports[i].dims[d] < 0),
                cat("seed ", seed, ": inferred ", ports[i].text(), ", computed ", got[i].text()));
    }
  }
}

void Row::decomposes() const {
  for (uint64_t seed = first_; seed < end_; ++seed) {
    Model model = sample(seed);
    Model pieces = sample(seed, [&](Edit& edit, tn_node_id node) {
      cxx::check(table_of(session_).decompose(edit.raw(), node));
    });
    Tensors given = inputs(model, seed), want = run(model, given), got = run(pieces, given);
    for (size_t i = 0; i < want.size(); ++i)
      same_numbers(got[i], want[i], cat("seed ", seed, ": output ", i, " of decompose"), 1e-4);
  }
}

// A column may leave a form of its operator to the rules after it.
void answered(tn_status* answer) {
  try {
    cxx::check(answer);
  } catch (const cxx::Error& failed) {
    if (failed.code() == TN_UNIMPLEMENTED) throw Skipped{failed.what()};
    throw;
  }
}

// The sample with the row's gradients as further outputs, and as further inputs the cotangents of
// the outputs that are `weighted`; the others have none. positions: which input of the sample each
// gradient is of. There are no gradients where the node itself reads none of the float inputs.
Model Row::with_gradients(const Model& plain,
                          uint64_t seed,
                          const std::vector<bool>& weighted,
                          std::vector<size_t>* positions) const {
  std::vector<cxx::Port> ports = plain.inputs(), results = plain.outputs();
  return sample(seed, [&](Edit& edit, tn_node_id node) {
    std::vector<tn_value_id> in = edit.ends(node, TN_LIST_INPUTS), cotangents;
    for (size_t i = 0; i < results.size(); ++i)
      cotangents.push_back(weighted[i] ? edit.input(cat("g", i), results[i].dtype, results[i].dims)
                                       : 0);
    auto is_input = [&](size_t p, size_t i) {
      return session_->graph->value_at(edit.graph(), TN_LIST_INPUTS, p, 0) == in[i];
    };
    std::vector<uint8_t> wanted(in.size());
    std::vector<tn_value_id> gradients(in.size());
    for (size_t i = 0; i < in.size(); ++i)
      for (size_t p = 0; p < ports.size(); ++p)
        wanted[i] |= cxx::is_float(ports[p].dtype) && is_input(p, i);
    if (std::ranges::count(wanted, 1) == 0) return;
    answered(row_->vjp(row_->self, edit.raw(), node, cotangents.data(), wanted.data(),
                       gradients.data()));
    for (size_t i = 0; i < in.size(); ++i) {
      require(wanted[i] || gradients[i] == 0, "a gradient that was not asked for");
      if (gradients[i] == 0) continue;
      for (size_t p = 0; p < ports.size(); ++p)
        if (is_input(p, i)) positions->push_back(p);
      edit.output(cat("d", i), gradients[i]);
    }
  });
}

// How fast the results, weighted by cotangents, change when input p moves along `way` from `point`.
double Row::slope(const Model& plain,
                  const Tensors& point,
                  size_t p,
                  const Tensor& way,
                  std::span<const Tensor> cotangents) const {
  constexpr double kStep = 1e-3;
  auto moved = [&](double by) {
    Tensors at = point;
    at[p] = Tensor::copy_of(session_, *point[p].view());
    for (int64_t i = 0; i < way.size(); ++i)
      at[p].set(i, at[p].at(i) + by * way.at(i));
    Tensors out = run(plain, at);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i)
      if (cotangents[i]) sum += dot(out[i], cotangents[i]);
    return sum;
  };
  return (moved(kStep) - moved(-kStep)) / (2 * kStep);
}

// Moves along a random direction: by finite differences, and by the gradient. Only gradients of the
// input's own shape are looked at; those that broadcast are summed by the caller.
void Row::compare_slopes(const Model& plain,
                         uint64_t seed,
                         const std::vector<bool>& weighted) const {
  size_t n_in = plain.inputs().size(), n_out = plain.outputs().size();
  std::vector<size_t> positions;
  Model model = with_gradients(plain, seed, weighted, &positions);
  Tensors given = inputs(model, seed), got = run(model, given), cotangents(n_out);
  for (size_t i = 0, next = n_in; i < n_out; ++i)
    if (weighted[i]) cotangents[i] = given[next++];
  Tensors point(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(n_in));
  for (size_t k = 0; k < positions.size(); ++k) {
    const Tensor& gradient = got[n_out + k];
    size_t p = positions[k];
    if (gradient.text() != point[p].text()) continue;
    std::mt19937_64 random(seed + 100);
    Tensor way = random_tensor(session_, point[p].dtype(),
                               {point[p].shape().begin(), point[p].shape().end()}, random);
    double want = slope(plain, point, p, way, cotangents), is = dot(gradient, way);
    require(std::fabs(is - want) <= 0.03 * (1 + std::fabs(want)),
            cat("seed ", seed, ": gradient of input ", p, " along a direction: expected about ",
                want, " (finite differences), got ", is));
  }
}

// All cotangents at once; of several outputs also one alone, the others zero.
void Row::differentiates() const {
  if (row_->traits & TN_OP_DATA_SHAPE) throw Skipped{"its shapes depend on data"};
  for (uint64_t seed = first_; seed < end_; ++seed) {
    Model plain = sample(seed);
    size_t n_out = plain.outputs().size();
    bool has_slopes = std::ranges::all_of(
        plain.outputs(), [](const cxx::Port& port) { return cxx::is_float(port.dtype); });
    if (!has_slopes) continue;  // its results are steps
    compare_slopes(plain, seed, std::vector<bool>(n_out, true));
    for (size_t alone = 0; n_out > 1 && alone < n_out; ++alone) {
      std::vector<bool> weighted(n_out);
      weighted[alone] = true;
      compare_slopes(plain, seed, weighted);
    }
  }
}

// The sample's node for kEntries examples at once, whose outputs come behind the sample's own.
// out_batched: which of them have an entry for each; false where the node reads no input.
std::optional<Model> Row::batched(const Model& plain,
                                  uint64_t seed,
                                  std::vector<uint8_t>* out_batched) const {
  size_t n_in = plain.inputs().size(), n_out = plain.outputs().size();
  bool is_read = false;  // by the node itself: a sample may have nodes in front of it
  Model model = sample(seed, [&](Edit& edit, tn_node_id node) {
    std::vector<tn_value_id> in = edit.ends(node, TN_LIST_INPUTS), out(n_out);
    std::vector<uint8_t> batched(in.size());
    for (size_t p = 0; p < n_in; ++p) {
      tn_value_id own = session_->graph->value_at(edit.graph(), TN_LIST_INPUTS, p, 0);
      cxx::Port port = plain.inputs()[p];
      port.dims.insert(port.dims.begin(), kEntries);
      tn_value_id wide = edit.input(cat("b", p), port.dtype, port.dims);
      for (size_t i = 0; i < in.size(); ++i)
        if (in[i] == own) in[i] = wide, batched[i] = 1;
    }
    is_read = std::find(batched.begin(), batched.end(), 1) != batched.end();
    if (!is_read) return;
    answered(row_->batch(row_->self, edit.raw(), node, in.data(), batched.data(), out.data(),
                         out_batched->data()));
    for (size_t i = 0; i < n_out; ++i)
      edit.output(cat("b", i), out[i]);
  });
  return is_read ? std::optional(std::move(model)) : std::nullopt;
}

// Part `entry` of a tensor of such parts, one behind the other.
Tensor part_of(const Tensor& all, const Tensor& like, int64_t entry) {
  Tensor part =
      Tensor::zeros(all.session(), like.dtype(), {like.shape().begin(), like.shape().end()});
  for (int64_t i = 0; i < part.size(); ++i)
    part.set(i, all.at(entry * part.size() + i));
  return part;
}

// Three entries at once against one after the other.
void Row::batches() const {
  for (uint64_t seed = first_; seed < end_; ++seed) {
    Model plain = sample(seed);
    size_t n_in = plain.inputs().size(), n_out = plain.outputs().size();
    if (n_in == 0) continue;
    std::vector<uint8_t> out_batched(n_out);
    std::optional<Model> model = batched(plain, seed, &out_batched);
    if (!model) continue;
    Tensors given = inputs(*model, seed), got = run(*model, given);
    for (int64_t entry = 0; entry < kEntries; ++entry) {
      Tensors one;
      for (size_t p = 0; p < n_in; ++p)
        one.push_back(part_of(given[n_in + p], given[p], entry));
      Tensors want = run(plain, one);
      for (size_t i = 0; i < n_out; ++i) {
        const Tensor& all = got[n_out + i];
        require(all.size() == want[i].size() * (out_batched[i] ? kEntries : 1),
                cat("seed ", seed, ": batched output ", i, ": got ", all.text()));
        same_numbers(part_of(all, want[i], out_batched[i] ? entry : 0), want[i],
                     cat("seed ", seed, ": entry ", entry, " of batch"), 1e-4);
      }
    }
  }
}

// What is asked of a node alone, without a plan.
void check_sampled(const Subject& subject,
                   const std::string& name,
                   const tn_op* row,
                   Report& report) {
  uint64_t first = subject.seed + 1;
  bool has_kernel = row->ref && (row->traits & TN_OP_CONTROL) == 0;
  if (row->cost) report.check(name + " cost", [&] { check_cost(subject.session, row, first); });
  if (row->shape && row->axes.len > 0)
    report.check(name + " axes", [&] { check_axes(subject.session, row, first); });
  if (row->shape)
    report.check(name + " open sizes", [&] { check_open_sizes(subject.session, row, first); });
  if (row->traits & (TN_OP_VIEW | TN_OP_READS_SHAPE | TN_OP_COMMUTATIVE))
    report.check(name + " traits", [&] { check_traits(subject.session, row, first); });
  if (!has_kernel) return;
  report.check(name + " buffers", [&] { check_buffers(subject.session, row, first); });
  report.check(name + " leaks", [&] { check_leaks(subject.session, row, first); });
}

void check_row(const Subject& subject,
               const std::string& name,
               const tn_op* found,
               Report& report) {
  Row row(subject.session, found, subject.seed);
  bool pointwise = (found->traits & TN_OP_POINTWISE) != 0;
  if (!found->sample && !pointwise)
    return report.check(name + " sample", [] { broken("expected a sample column, got none"); });
  if (found->sample) check_sampled(subject, name, found, report);
  bool makes_lists = false;
  report.check(name + " runs", [&] {
    makes_lists = !row.makes_tensors();
    if (makes_lists) throw Skipped{"its results are sequences or optional values"};
    row.runs();
  });
  if (makes_lists) return;
  if (found->decompose) report.check(name + " decompose", [&] { row.decomposes(); });
  if (found->vjp) report.check(name + " vjp", [&] { row.differentiates(); });
  if (found->batch) report.check(name + " batch", [&] { row.batches(); });
  check_transforms(name, found, [&](uint64_t seed) { return row.sample(seed); }, report);
}

}  // namespace

void check_operators(Subject& subject, Report& report) {
  const tn_host_op& table = table_of(subject.session);
  for (const auto& [domain, type] : subject.operators) {
    std::vector<const tn_op*> versions;
    for (uint64_t i = 0; i < table.count(subject.session->ctx()); ++i) {
      const tn_op* row = table.at(subject.session->ctx(), i);
      if (cxx::view(row->domain) == domain && cxx::view(row->type) == type) versions.push_back(row);
    }
    std::string name = domain.empty() ? type : cat(domain, ":", type);
    for (const tn_op* row : versions)
      check_row(subject, versions.size() > 1 ? cat(name, " ", row->since_version) : name, row,
                report);
  }
}

}  // namespace tenon::command::check
