// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operator rows in C++. A row is a tn_op; its function columns are wrapped so that nothing throws:
//
//   tenon::Status shape(tenon::EditView edit, tenon::Node node);
//   tenon::Status ref(const tenon::Call& call);
//   constexpr tn_op kConcat = tenon::op_row({
//       .type = "Concat", .since = 13,
//       .attributes = R"([{"name": "axis", "type": "int"}])",
//       .quant = "same_scale", .shape = tenon::shape<shape>, .ref = tenon::ref<ref>, ...});
//   TENON_OPS(concat, &kConcat)
//
// A column's function may take an OpSelf& in front: the context that the rows were made with, and
// whatever state the plugin keeps for them.
//
// TENON_OPS defines tenon_ops_concat, the word that tenon_add_plugin(... OPS concat) lists.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <typeindex>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"
#include "tenon/sdk/sized.hpp"

namespace tenon {

// What the functions of a plugin's rows share: one for each time that the host creates the
// component which brings them.
class OpSelf {
 public:
  explicit OpSelf(tn_ctx* ctx) : ctx_(ctx) {}
  tn_ctx* ctx() const { return ctx_; }  // the plugin's own
  // The one State of these rows, made when it is first used. Any thread; what is in it guards
  // itself.
  template <class State>
  State& state() {
    std::lock_guard hold(lock_);
    std::shared_ptr<void>& kept = states_[std::type_index(typeid(State))];
    if (!kept) kept = std::make_shared<State>();
    return *static_cast<State*>(kept.get());
  }

 private:
  tn_ctx* ctx_;
  std::mutex lock_;
  std::map<std::type_index, std::shared_ptr<void>> states_;
};

// What the host calls `self` in a row.
struct OpsObject {
  std::unique_ptr<OpSelf> shared;
  static Result<OpsObject> create(tn_ctx* ctx, const Options&) {
    return OpsObject{std::make_unique<OpSelf>(ctx)};
  }
};

// Calls a column's function, with the OpSelf where it wants one.
template <auto F, class... Args>
auto call_column(void* self, Args&&... args) {
  if constexpr (std::is_invocable_v<decltype(F), OpSelf&, Args...>) {
    return F(*object_of<OpsObject>(self).shared, std::forward<Args>(args)...);
  } else {
    return F(std::forward<Args>(args)...);
  }
}

// What Call::in throws; ref<F> makes it an error. A file may leave out any input.
struct AbsentInput {
  uint64_t index;
};

// What Call::data throws where a kernel reads elements of another size than the tensor has.
struct WrongElement {
  uint64_t index;
  uint32_t dtype;
};

// One evaluation of a row's plain kernel.
class Call {
 public:
  explicit Call(const tn_op_call& raw) : raw_(raw) {}
  Node node() const { return {raw_.graph, raw_.node}; }
  tn_ctx* ctx() const { return raw_.ctx; }
  uint64_t n_in() const { return raw_.n_in; }
  bool has(uint64_t i) const { return i < raw_.n_in && raw_.in[i] != nullptr; }
  const DLTensor& in(uint64_t i) const {
    if (!has(i)) [[unlikely]]
      throw AbsentInput{i};
    return *raw_.in[i];
  }
  std::span<const int64_t> shape(uint64_t i) const { return shape_of(in(i)); }
  uint32_t dtype(uint64_t i) const { return dtype_of(in(i)); }
  template <class T>
  const T* data(uint64_t i) const {
    if (sizeof(T) > 1 && TN_DTYPE_BITS(dtype(i)) != 8 * sizeof(T)) [[unlikely]]
      throw WrongElement{i, dtype(i)};
    return data_of<const T>(in(i));
  }
  Result<DLTensor> out(uint64_t i, uint32_t dtype, std::span<const int64_t> shape) const {
    return Outputs(raw_.outputs).get(i, dtype, shape);
  }
  Result<DLTensor> out(uint64_t i, uint32_t dtype, std::initializer_list<int64_t> shape) const {
    return out(i, dtype, std::span<const int64_t>(shape.begin(), shape.size()));
  }
  const tn_body* body(std::string_view name) const {
    for (uint64_t i = 0; i < raw_.n_bodies; ++i) {
      if (view(raw_.bodies[i].name) == name) return &raw_.bodies[i];
    }
    return nullptr;
  }
  Cancel cancel() const { return Cancel(raw_.cancel); }
  const tn_op_call& raw() const { return raw_; }

 private:
  const tn_op_call& raw_;
};

template <auto F>
tn_status* shape(void* self, tn_edit* edit, tn_node_id node) {
  return guard([&] {
    EditView view{edit};
    return call_column<F>(self, view, view.node(node));
  });
}

template <auto F>
tn_status* ref(void* self, const tn_op_call* call) {
  return guard([&]() -> Status {
    Sized<tn_op_call> given(call);
    try {
      return call_column<F>(self, Call(*given.get()));
    } catch (const AbsentInput& absent) {
      return invalid(cat("input ", absent.index, ": expected a tensor, got none"));
    } catch (const WrongElement& wrong) {
      return invalid(
          cat("input ", wrong.index, ": unexpected element type ", dtype_name(wrong.dtype)));
    }
  });
}

// F returns the values that replace the node's outputs, in order.
template <auto F>
tn_status* decompose(void* self, tn_edit* edit, tn_node_id node, tn_value_id* out) {
  return guard([&]() -> Status {
    EditView view{edit};
    TN_TRY(values, call_column<F>(self, view, view.node(node)));
    const size_t n_outputs = view.node(node).n_outputs();  // the last ones may be left out
    for (size_t i = 0; i < std::min(values.size(), n_outputs); ++i)
      out[i] = values[i].id;
    return {};
  });
}

template <auto F>
tn_status* sample(void* self, tn_edit* edit, uint64_t seed, tn_node_id* out) {
  return guard([&]() -> Status {
    *out = 0;
    TN_TRY(node, call_column<F>(self, EditView{edit}, seed));
    *out = node.id;
    return {};
  });
}

// The gradient of one node, for its vjp column; nodes are built through it.
class Gradients : public Builder {
 public:
  Gradients(EditView edit,
            Node node,
            const tn_value_id* cotangents,
            const uint8_t* wanted,
            tn_value_id* out)
      : Builder(edit), of_(node), cotangents_(cotangents), wanted_(wanted), out_(out) {}
  Node of() const { return of_; }
  Value in(uint64_t i) const { return of_.input(i); }
  Value out(uint64_t i = 0) const { return of_.output(i); }
  // Falsy: zero.
  Value cotangent(uint64_t output = 0) const { return edit().value(cotangents_[output]); }
  bool wanted(uint64_t input) const { return input < of_.n_inputs() && wanted_[input] != 0; }
  void set(uint64_t input, Value gradient) { out_[input] = gradient.id; }

 private:
  Node of_;
  const tn_value_id* cotangents_;
  const uint8_t* wanted_;
  tn_value_id* out_;
};

template <auto F>
tn_status* vjp(void* self,
               tn_edit* edit,
               tn_node_id node,
               const tn_value_id* cotangents,
               const uint8_t* wanted,
               tn_value_id* out) {
  return guard([&]() -> Status {
    EditView view{edit};
    Gradients gradients(view, view.node(node), cotangents, wanted, out);
    TN_CHECK(call_column<F>(self, gradients));
    return gradients.status();
  });
}

// One node with a new first axis on some of its inputs, for its batch column.
class Batching : public Builder {
 public:
  Batching(EditView edit,
           Node node,
           const tn_value_id* in,
           const uint8_t* batched,
           tn_value_id* out,
           uint8_t* out_batched)
      : Builder(edit), of_(node), in_(in), batched_(batched), out_(out), marks_(out_batched) {}
  Node of() const { return of_; }
  Value in(uint64_t i) const { return edit().value(i < of_.n_inputs() ? in_[i] : 0); }
  bool batched(uint64_t i) const { return i < of_.n_inputs() && batched_[i] != 0; }
  void set(uint64_t output, Value value, bool has_axis = true) {
    out_[output] = value.id;
    marks_[output] = has_axis;
  }

 private:
  Node of_;
  const tn_value_id* in_;
  const uint8_t* batched_;
  tn_value_id* out_;
  uint8_t* marks_;
};

template <auto F>
tn_status* batch(void* self,
                 tn_edit* edit,
                 tn_node_id node,
                 const tn_value_id* in,
                 const uint8_t* batched,
                 tn_value_id* out,
                 uint8_t* out_batched) {
  return guard([&]() -> Status {
    EditView view{edit};
    Batching batching(view, view.node(node), in, batched, out, out_batched);
    TN_CHECK(call_column<F>(self, batching));
    return batching.status();
  });
}

// F as of vjp, but what it sets is the squared norm of each example's gradient.
template <auto F>
constexpr auto example_norms = vjp<F>;

struct OpCost {
  double flops = 0;
  double bytes = 0;
};
template <auto F>
tn_status* cost(void* self, const tn_graph* graph, tn_node_id node, double* flops, double* bytes) {
  return guard([&]() -> Status {
    OpCost cost = call_column<F>(self, Node{graph, node});
    *flops = cost.flops;
    *bytes = cost.bytes;
    return {};
  });
}

struct OpRow {
  const char* type;
  uint64_t since = 1;
  const char* domain = "";
  uint32_t traits = 0;
  const char* axes = "";
  const char* expr = "";
  const char* attributes = "[]";
  const char* quant = "";
  decltype(tn_op::shape) shape = nullptr;
  decltype(tn_op::decompose) decompose = nullptr;
  decltype(tn_op::cost) cost = nullptr;
  decltype(tn_op::ref) ref = nullptr;
  decltype(tn_op::sample) sample = nullptr;
  decltype(tn_op::vjp) vjp = nullptr;
  uint64_t vjp_inputs = ~uint64_t{0};
  uint64_t vjp_outputs = ~uint64_t{0};
  decltype(tn_op::batch) batch = nullptr;
  const char* cast = "";
  const char* recompute = "";
  const char* coupling = "";
  decltype(tn_op::example_norms) example_norms = nullptr;
};

constexpr tn_op op_row(const OpRow& row) {
  return {sizeof(tn_op),
          row.traits,
          literal(row.domain),
          literal(row.type),
          row.since,
          literal(row.axes),
          literal(row.expr),
          literal(row.attributes),
          literal(row.quant),
          row.shape,
          row.decompose,
          row.cost,
          row.ref,
          row.sample,
          row.vjp,
          row.vjp_inputs,
          row.vjp_outputs,
          row.batch,
          literal(row.cast),
          literal(row.recompute),
          nullptr,
          literal(row.coupling),
          row.example_norms};
}

struct OpRows {
  const tn_op* const* rows;
  uint64_t count;
};

// The component that gives all rows of a plugin to the host.
template <const OpRows* const* kLists, uint64_t kCount>
struct OpsRole {
  using Object = OpsObject;
  static constexpr std::string_view kId = "tenon.ops/1";
  static const tn_ops* table() {
    static const std::vector<const tn_op*> rows = [] {
      std::vector<const tn_op*> all;
      for (uint64_t i = 0; i < kCount; ++i) {
        all.insert(all.end(), kLists[i]->rows, kLists[i]->rows + kLists[i]->count);
      }
      return all;
    }();
    static const tn_ops table{sizeof table, 0, rows.size(), rows.data()};
    return &table;
  }
};

}  // namespace tenon

#define TENON_DECLARE_OPS(word) extern "C" const tenon::OpRows tenon_ops_##word;
// Rows of one file: TENON_OPS(reduce, &kReduceSum, &kReduceMean)
#define TENON_OPS(word, ...)                                        \
  TENON_DECLARE_OPS(word)                                           \
  static const tn_op* const tenon_op_list_##word[] = {__VA_ARGS__}; \
  const tenon::OpRows tenon_ops_##word = {tenon_op_list_##word,     \
                                          sizeof(tenon_op_list_##word) / sizeof(const tn_op*)};
// Rows that were made into an array of tn_op* elsewhere (a table).
#define TENON_OPS_TABLE(word, rows, count) \
  TENON_DECLARE_OPS(word)                  \
  const tenon::OpRows tenon_ops_##word = {rows, count};
// The build writes this one, from the words of OPS: the component `word` = "ops".
#define TENON_OPS_COMPONENT(word, component_id, summary, ...)                             \
  static const tenon::OpRows* const tenon_op_lists[] = {__VA_ARGS__};                     \
  using TenonOps =                                                                        \
      tenon::OpsRole<tenon_op_lists, sizeof(tenon_op_lists) / sizeof(tenon_op_lists[0])>; \
  TENON_COMPONENT_(word, TenonOps, "tenon.ops/1", component_id, summary, "{}", 0)
