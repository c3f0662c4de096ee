// SPDX-License-Identifier: Apache-2.0
#include "trial.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>

#include "tenon/role/op.h"

#include "folders.hpp"
#include "plugins/all_rows.hpp"

namespace tenon::fuzz {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 20;  // of all values of a mutant together
constexpr uint64_t kSamples = 200;                   // seeds of a row

void say(Tally& tally, std::string_view text) {
  std::snprintf(tally.what, sizeof tally.what, "%.*s", static_cast<int>(text.size()), text.data());
}

struct Results {
  tn_ctx* ctx;
  std::vector<Tensor> tensors = {};
  tn_outputs raw{this, [](void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
                   auto* all = static_cast<Results*>(self);
                   return guard([&]() -> Status {
                     if (all->tensors.size() <= i) all->tensors.resize(i + 1);
                     TN_TRY(made, Tensor::zeros(all->ctx, dtype_of(*proto), shape_of(*proto)));
                     all->tensors[i] = made;
                     *out = made.dl();
                     return {};
                   });
                 }};
};

// Takes the elements of a type off what is left; what is not known counts as one.
void take(int64_t& left, const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t dim : dims)
    if (__builtin_mul_overflow(n, std::max<int64_t>(dim, 1), &n)) n = kMostElements;
  left -= std::min(n, kMostElements);
}

// Whether what is known of the sizes fits into little memory.
bool is_small(const tn_graph* graph) {
  int64_t left = kMostElements;
  for (Value v : Graph{graph}.inputs())
    take(left, v.type().dims);
  for (Node node : Graph{graph}.nodes())
    for (Value v : node.outputs())
      take(left, v.type().dims);
  return left > 0;
}

// A graph that every backend takes.
std::string why_not_there(tenon_session* session, const std::string& backend) {
  tn_graph* graph = nullptr;
  Status made(services.graph->parse(
      tenon_host(session)->ctx,
      str("graph {\n  input %x: f32[2]\n  %y: f32[2] = Relu(%x) @n\n  output y = %y\n}"), &graph));
  if (!made.ok()) return made.message();
  tn_plan* plan = nullptr;
  made = Status(tenon_compile(session, graph, str(cat(R"({"backend": ")", backend, "\"}")), &plan));
  if (made.ok()) services.eval->release(plan);
  services.graph->release(graph);
  return made.ok() ? "" : made.message();
}

}  // namespace

struct Trials::Mutant {
  OwnedGraph graph;
  tn_node_id node = 0;
  std::map<std::string, Type> late = {};  // inputs whose sizes come at run time, flat: their shape
  std::map<std::string, Tensor> given = {};  // inputs that were constants
  bool is_wild = false;                      // any bits may enter
};

Trials::Trials(uint64_t seed,
               std::vector<std::string> backends,
               std::string_view rows,
               std::string keep,
               bool extremes)
    : seed_(seed), backends_(std::move(backends)), keep_(std::move(keep)), extremes_(extremes) {
  std::string config = cat(R"({"plugin_path": [")", test::kPluginFolder, R"(", ")",
                           test::kTestPluginFolder, "/devices\"]}");
  if (tenon_open(str(config), &session_) || !services.fill(*tenon_host(session_)).empty())
    std::abort();
  ctx_ = tenon_host(session_)->ctx;
  Status loaded = test::load_all_rows(session_);
  for (uint64_t i = 0; i < services.op->count(ctx_); ++i) {
    const tn_op* row = services.op->at(ctx_, i);
    if (row->sample && (rows.empty() || rows == view(row->type))) rows_.push_back(row);
  }
  if (!loaded.ok()) std::abort();
  if (rows_.empty()) {
    std::fprintf(stderr, "fuzz_mutants: --row: expected an operator with a sample, got %s\n",
                 std::string(rows).c_str());
    std::exit(kCannotRun);
  }
  for (const std::string& backend : backends_)
    if (std::string why = why_not_there(session_, backend); !why.empty()) {
      std::fprintf(stderr, "fuzz_mutants: %s\n", why.c_str());
      std::exit(kCannotRun);  // every mutant would count as refused
    }
}

Trials::~Trials() {
  tenon_close(session_);
}

// Inputs whose shapes are data: the host cannot see the change before the run.
Status Trials::add_late(EditView edit, Mutant& mutant, Random& random) {
  std::vector<Value> inputs = edit.graph().inputs();
  size_t changed = random.below(inputs.size() + 1), i = 0;  // none, once in a while
  for (Value v : inputs) {
    Type type = v.type();
    bool is_given = mutant.given.count(std::string(v.name())) != 0;
    if (type.kind != TN_KIND_TENSOR || !type.is_static() || is_given) continue;
    if (i++ == changed && type.rank() > 0) {
      int64_t& dim = type.dims[random.below(type.rank())];
      const int64_t sizes[] = {dim - 1, dim + 1, dim * 3, 1, 40};
      dim = random.one_of(sizes);
      if (random.one_in(6)) type.dims.insert(type.dims.begin(), 1);
      if (random.one_in(6)) type.dims.pop_back();
    }
    std::string name = cat("late", i);
    TN_TRY(flat, edit.input(name, Type(type.dtype, {TN_DIM_UNKNOWN})));
    TN_TRY(shape, edit.input(name + "_shape", Type(TN_I64, {static_cast<int64_t>(type.rank())})));
    TN_TRY(node, edit.add({.type = "Reshape", .inputs = {flat, shape}}));
    for (uint64_t k = 0; k < edit.node(mutant.node).n_inputs(); ++k)
      if (edit.node(mutant.node).input(k) == v)
        TN_CHECK(edit.set_input(edit.node(mutant.node), k, node.output()));
    mutant.late[name] = type;
  }
  return {};
}

// Constants become inputs: what they say is known at run time only.
Status Trials::add_given(EditView edit, Mutant& mutant, Random& random) {
  for (uint64_t i = 0; i < edit.node(mutant.node).n_inputs(); ++i) {
    Value v = edit.node(mutant.node).input(i);
    if (!v || !v.is_constant() || random.one_in(3)) continue;
    std::string name = cat("given", i);
    TN_TRY(tensor, Tensor::copy_of(ctx_, v.constant().dl()));
    if (mutant.is_wild && random.one_in(3)) make_wild(tensor, random);
    TN_TRY(input, edit.input(name, v.type()));
    TN_CHECK(edit.set_input(edit.node(mutant.node), i, input));
    mutant.given.emplace(name, tensor);
  }
  return {};
}

// turn: how many mutants of the row were before.
Result<Trials::Mutant> Trials::make(const tn_op* row, uint64_t turn, Random& random, Tally& tally) {
  uint64_t seed = 1 + random.below(kSamples);
  std::string said = cat(view(row->type), " seed ", seed);
  say(tally, said);
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(ctx_, &raw));
  Mutant out{OwnedGraph::take(raw)};
  TN_TRY(edit, Edit::begin(raw));
  TN_CHECK(row->sample(row->self, edit.raw, seed, &out.node));
  bool is_late = !extremes_ && random.one_in(5);
  if (extremes_) {
    TN_TRY(change, set_extreme(edit, edit.node(out.node), turn));
    said += "; " + change;
    say(tally, said);
  }
  for (size_t n = extremes_ ? 0 : is_late ? random.below(2) : 1 + random.below(5) / 4; n > 0; --n) {
    Node node = edit.node(out.node);
    TN_TRY(change, mutate(edit, node, random));
    out.node = node.id;
    said += "; " + change;
    say(tally, said);
  }
  // Any number of steps of a Loop is slow, not wrong.
  out.is_wild = !extremes_ && random.one_in(4) && !(row->traits & TN_OP_CONTROL);
  if (out.is_wild) said += "; wild numbers";
  if (random.one_in(4)) {
    TN_CHECK(add_given(edit, out, random));
    for (const auto& [name, tensor] : out.given)
      said += cat("; ", name, " at run time");
    say(tally, said);
  }
  if (is_late) {
    TN_CHECK(add_late(edit, out, random));
    for (const auto& [name, type] : out.late) {
      said += cat("; ", name, " at run time [");
      for (int64_t dim : type.dims)
        said += cat(dim, " ");
      said += "]";
    }
    say(tally, said);
  }
  std::vector<Value> outputs = edit.node(out.node).outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) TN_CHECK(edit.output("y" + std::to_string(i), outputs[i]));
  TN_CHECK(edit.commit());
  return Result<Mutant>(std::move(out));
}

Trials::Outcome Trials::run_on(const Mutant& mutant,
                               const tn_graph* graph,
                               std::string_view backend,
                               Random random,
                               Tally& tally) {
  Outcome out;
  std::string options = cat(R"({"backend": ")", backend, R"(", "max_value_bytes": 67108864})");
  tn_plan* plan = nullptr;
  Status made(tenon_compile(session_, graph, str(options), &plan));
  if (!made.ok()) return out;
  Status status = [&]() -> Status {
    std::vector<Tensor> tensors;
    for (Value input : Graph{graph}.inputs()) {
      std::string name(input.name());
      Type type = input.type();
      if (auto late = mutant.late.find(name); late != mutant.late.end())
        type.dims = {std::max<int64_t>(late->second.elements(), 0)};
      if (auto given = mutant.given.find(name); given != mutant.given.end()) {
        tensors.push_back(given->second);
        continue;
      }
      TN_TRY(tensor, filled(ctx_, type, random));
      if (mutant.is_wild) make_wild(tensor, random);
      size_t end = name.rfind("_shape");
      auto late = mutant.late.find(name.substr(0, end));
      if (end != name.npos && late != mutant.late.end())
        std::copy(late->second.dims.begin(), late->second.dims.end(), tensor.data<int64_t>());
      tensors.push_back(tensor);
    }
    std::vector<DLTensor> views;
    for (const Tensor& tensor : tensors)
      views.push_back(tensor.dl());
    std::vector<const DLTensor*> in;
    for (const DLTensor& one : views)
      in.push_back(&one);
    TN_CHECK(services.eval->prepare(plan, in.data(), in.size()));
    out.compiled = true;
    Results results{ctx_};
    TN_CHECK(tenon_run(plan, in.data(), in.size(), &results.raw, nullptr));
    out.ran = true;
    return {};
  }();
  services.eval->release(plan);
  tally.executions += out.ran;
  return out;
}

void Trials::run_decomposed(const Mutant& mutant, Random random, Tally& tally) {
  tn_graph* raw = nullptr;
  Status cloned(services.graph->clone(mutant.graph.get(), &raw));
  if (!cloned.ok()) return;
  OwnedGraph clone = OwnedGraph::take(raw);
  Status changed = [&]() -> Status {
    TN_TRY(edit, Edit::begin(raw));
    TN_CHECK(services.op->decompose(edit.raw, mutant.node));
    return edit.commit();
  }();
  if (changed.ok() && is_small(raw)) run_on(mutant, raw, "reference", random, tally);
}

void Trials::save(const Mutant& mutant, uint64_t number, bool ran) {
  if (keep_.empty() || !mutant.late.empty() || !mutant.given.empty()) return;
  std::string path = cat(keep_, "/", number, ran ? "_ran" : "_failed", ".onnx");
  Status saved(tenon_save(session_, mutant.graph.get(), str(path), str("{}"), nullptr));
}

void Trials::run(uint64_t number, Tally& tally) {
  const tn_op* row = rows_[number % rows_.size()];
  Random random(seed_ * 0x9e3779b97f4a7c15ull + number);
  ++tally.mutants;
  Result<Mutant> mutant = make(row, number / rows_.size(), random, tally);
  if (!mutant.ok()) {
    ++tally.refused;
    return;
  }
  int64_t left = kMostElements;
  for (const auto& [name, type] : mutant->late)
    take(left, type.dims);
  if (left <= 0 || !is_small(mutant->graph.get())) {
    ++tally.large;
    return;
  }
  std::string said = tally.what;
  bool ran = false;
  for (size_t i = 0; i < backends_.size(); ++i) {
    say(tally, backends_[i] + ": " + said);
    Outcome one = run_on(*mutant, mutant->graph.get(), backends_[i], random, tally);
    tally.compiled[i] += one.compiled;
    tally.ran[i] += one.ran;
    ran = ran || one.ran;
  }
  say(tally, "decomposed: " + said);
  if (row->decompose && row->ref) run_decomposed(*mutant, random, tally);
  save(*mutant, number, ran);
}

}  // namespace tenon::fuzz
