// SPDX-License-Identifier: Apache-2.0
#pragma once
// A session with a few operator rows, and short ways to call the graph services through their
// tables, as a plugin does.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tenon/host/graph.h"
#include "tenon/host/graph_edit.h"
#include "tenon/host/op.h"
#include "tenon/role/op.h"

#include "graph/edit.hpp"
#include "graph/graph.hpp"
#include "graph/op_table.hpp"
#include "services/status.hpp"
#include "values/tensor.hpp"

namespace tenon::host::test {

inline const tn_host_graph& graphs = *graph_service();
inline const tn_host_graph_edit& edits = *edit_service();

// The message of a failure, or empty; releases it.
inline std::string text_of(tn_status* raw) {
  Status status(raw);
  return status.ok() ? "" : status.text();
}
inline int32_t code_of(tn_status* raw) {
  return Status(raw).code();
}

// Owns the C view of a type.
struct TypeOf {
  TypeRef type;
  tn_type view;
  TypeOf(uint32_t dtype, std::vector<int64_t> dims, std::vector<std::string> symbols = {})
      : type(seal(Type(dtype, std::move(dims), std::move(symbols)))), view(type->view()) {}
  operator const tn_type*() const { return &view; }
};

// Sets the shape from input 1, a constant; one -1 is worked out.
inline tn_status* reshape_shape(void*, tn_edit* edit, tn_node_id node) {
  const tn_graph* graph = edits.graph(edit);
  tn_type from;
  if (tn_status* failed =
          graphs.value_type(graph, graphs.io_at(graph, node, TN_LIST_INPUTS, 0), &from))
    return failed;
  tn_tensor* shape = graphs.constant(graph, graphs.io_at(graph, node, TN_LIST_INPUTS, 1));
  if (!shape) return nullptr;
  const auto* sizes = reinterpret_cast<const int64_t*>(shape->data());
  std::vector<int64_t> dims(sizes, sizes + shape->shape()[0]);
  for (int64_t dim : dims)
    if (dim < 0) return invalid("Reshape: expected sizes from 0 up").release();
  TypeOf type(from.dtype, dims);
  return edits.set_type(edit, graphs.io_at(graph, node, TN_LIST_OUTPUTS, 0), type);
}

// Double(x) = x + x
inline tn_status* double_decompose(void*, tn_edit* edit, tn_node_id node, tn_value_id* out) {
  tn_value_id x = graphs.io_at(edits.graph(edit), node, TN_LIST_INPUTS, 0);
  tn_value_id inputs[] = {x, x};
  tn_node_desc desc{};
  desc.struct_size = sizeof desc;
  desc.type = str("Add");
  desc.inputs = inputs;
  desc.n_inputs = 2;
  desc.n_outputs = 1;
  tn_node_id made;
  return edits.add_node(edit, &desc, &made, out);
}

inline tn_op op_row(std::string_view type,
                    uint32_t traits,
                    std::string_view axes,
                    std::string_view expr,
                    std::string_view attributes = "") {
  tn_op op{};
  op.struct_size = sizeof op;
  op.traits = traits;
  op.type = str(type);
  op.axes = str(axes);
  op.expr = str(expr);
  op.attributes = str(attributes);
  return op;
}

class GraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    add_row(op_row("MatMul", 0, "B* m k, B* k n -> B* m n", ""));
    add_row(op_row("Add", TN_OP_POINTWISE, "", "x + y"));
    add_row(op_row("Relu", TN_OP_POINTWISE, "", "max(x, 0)"));
    add_row(op_row("Less", TN_OP_POINTWISE, "", "x < y"));
    add_row(op_row("Scale", TN_OP_POINTWISE, "", "x * alpha",
                   R"([{"name": "alpha", "type": "float", "default": 2},
                       {"name": "axes", "type": "ints"}, {"name": "body", "type": "graph"},
                       {"name": "captures", "type": "int", "default": 0}])"));
    tn_op reshape = op_row("Reshape", TN_OP_VIEW, "", "");
    reshape.shape = reshape_shape;
    add_row(reshape);
    tn_op twice = op_row("Double", TN_OP_POINTWISE, "", "x + x");
    twice.decompose = double_decompose;
    add_row(twice);
    ASSERT_EQ(text_of(graphs.create(ctx(), &graph_)), "");
  }
  void TearDown() override {
    if (edit_) edits.rollback(edit_);
    graphs.release(graph_);
    EXPECT_EQ(ctx()->held[static_cast<size_t>(Held::kGraph)], 0);
    EXPECT_EQ(ctx()->held[static_cast<size_t>(Held::kTensor)], 0);
  }

  tn_ctx* ctx() { return session_.own; }
  void add_row(const tn_op& op) {
    Status added = session_.ops->add(&op, ctx());
    ASSERT_EQ(added.text(), "");
  }

  void begin() { ASSERT_EQ(text_of(edits.begin(graph_, &edit_)), ""); }
  std::string commit() { return text_of(edits.commit(std::exchange(edit_, nullptr))); }
  void rollback() { edits.rollback(std::exchange(edit_, nullptr)); }
  const tn_graph* now() { return edit_ ? edits.graph(edit_) : graph_; }

  tn_value_id input(std::string_view name, const tn_type* type) {
    tn_value_id id = 0;
    EXPECT_EQ(text_of(edits.add_input(edit_, str(name), type, &id)), "");
    return id;
  }
  void output(std::string_view name, tn_value_id id) {
    EXPECT_EQ(text_of(edits.add_output(edit_, str(name), id)), "");
  }
  tn_value_id constant(std::string_view name,
                       uint32_t dtype,
                       std::vector<int64_t> dims,
                       int64_t first = 0) {
    auto made = alloc_tensor(ctx(), dtype, dims);
    EXPECT_TRUE(made.ok());
    if (dtype == TN_I64 && (*made)->bytes >= 8)
      for (uint64_t i = 0; i < (*made)->bytes / 8; ++i)
        static_cast<int64_t*>((*made)->dl.data)[i] = first + static_cast<int64_t>(i);
    tn_value_id id = 0;
    EXPECT_EQ(text_of(edits.add_constant(edit_, str(name), made->get(), &id)), "");
    return id;
  }

  struct Made {
    tn_node_id node = 0;
    tn_value_id value = 0;  // its output
    std::string failure;
  };
  struct Attr {
    std::string name;
    tn_any value;
  };
  Made try_node(std::string_view type,
                std::vector<tn_value_id> inputs,
                std::string_view name = "",
                std::vector<Attr> attrs = {}) {
    Made made;
    std::vector<tn_str> names;
    std::vector<tn_any> values;
    for (const Attr& attr : attrs) {
      names.push_back(str(attr.name));
      values.push_back(attr.value);
    }
    tn_node_desc desc{};
    desc.struct_size = sizeof desc;
    desc.type = str(type);
    desc.name = str(name);
    desc.inputs = inputs.data();
    desc.n_inputs = inputs.size();
    desc.n_outputs = 1;
    desc.attr_names = names.data();
    desc.attr_values = values.data();
    desc.n_attrs = attrs.size();
    made.failure = text_of(edits.add_node(edit_, &desc, &made.node, &made.value));
    return made;
  }
  Made node(std::string_view type,
            std::vector<tn_value_id> inputs,
            std::string_view name = "",
            std::vector<Attr> attrs = {}) {
    Made made = try_node(type, std::move(inputs), name, std::move(attrs));
    EXPECT_EQ(made.failure, "");
    return made;
  }

  std::string type_of(tn_value_id id) {
    const Value* value = now()->tables->values.find(id);
    return value ? type_text(*value->type) : "stale";
  }
  std::string print(const tn_graph* graph, uint32_t flags = 0) {
    std::string out;
    tn_sink sink{&out, [](void* to, const void* data, uint64_t n) -> tn_status* {
                   static_cast<std::string*>(to)->append(static_cast<const char*>(data), n);
                   return nullptr;
                 }};
    EXPECT_EQ(text_of(graphs.print(graph, flags, &sink)), "");
    return out;
  }
  std::string print() { return print(now()); }

  // x: f32[batch, 4] -> MatMul w -> Relu -> y
  void build_mlp() {
    begin();
    tn_value_id x = input("x", TypeOf(TN_F32, {-1, 4}, {"batch", ""}));
    tn_value_id w = constant("w", TN_F32, {4, 3});
    output("y", node("Relu", {node("MatMul", {x, w}, "fc").value}, "act").value);
    ASSERT_EQ(commit(), "");
  }
  tn_node_id find_node(std::string_view name) { return id_of(*now()->tables->node_names, name); }
  tn_value_id find(std::string_view name) { return graphs.find_value(now(), str(name)); }

  Session session_;
  tn_graph* graph_ = nullptr;
  tn_edit* edit_ = nullptr;
};

inline tn_any any_i64(int64_t value) {
  return {TN_ANY_I64, 0, 1, {.i = value}};
}
inline tn_any any_f64(double value) {
  return {TN_ANY_F64, 0, 1, {.f = value}};
}
inline tn_any any_text(std::string_view value) {
  return {TN_ANY_TEXT, 0, value.size(), {.p = value.data()}};
}

}  // namespace tenon::host::test
