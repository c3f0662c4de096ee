// SPDX-License-Identifier: Apache-2.0
// The backend "reference": runs each row's plain kernel. It is what other backends are compared
// with, and what runs the nodes that they leave.
#include "tenon/sdk/role/backend.hpp"

#include "executable.hpp"

namespace tenon::reference {

class Reference {
 public:
  static Result<Reference> create(tn_ctx* ctx, const Options&) { return Reference(ctx); }

  Status devices(Sink& out) {
    return out.write(R"([{"id": 0, "type": 1, "name": "CPU, plain kernels", "memory_bytes": 0}])");
  }
  Status prepare(Sink&) { return {}; }
  Status claim(const tn_graph* graph, int32_t, const tn_claims& claims) {
    for (Node node : Graph{graph}.nodes()) {
      std::string why = backend::why_no_row(node);
      if (why.empty()) {
        claims.take(claims.ctx, &node.id, 1);
      } else {
        claims.refuse(claims.ctx, node.id, str(why));
      }
    }
    return {};
  }
  Result<void*> compile(const tn_graph* part, int32_t, const Options& options) {
    if (options.text("floats") == "refuse") TN_CHECK(refuse_floats({part}));
    TN_TRY(exe, Executable::compile(ctx_, part, options.integer("max_value_bytes", 0)));
    return static_cast<void*>(exe.release());
  }
  uint64_t workspace(void*) { return 0; }
  Status run(void* exe,
             void*,
             const DLTensor* const* in,
             uint64_t n_in,
             const tn_outputs* outputs,
             const tn_exec* exec) {
    return static_cast<Executable*>(exe)->run(in, n_in, outputs, exec);
  }
  void exe_free(void* exe) { delete static_cast<Executable*>(exe); }
  Status describe(void* exe, Sink& out) {
    return out.write(static_cast<Executable*>(exe)->describe());
  }
  Status profile(void* exe, Sink& out) {
    return out.write(static_cast<Executable*>(exe)->profile());
  }

 private:
  // But for the ends, where floats become integers and integers floats.
  static Status refuse_floats(Graph part) {
    for (Node node : part.nodes()) {
      if (node.is("QuantizeLinear") || node.is("DequantizeLinear")) continue;
      std::vector<Value> values = node.inputs(), results = node.outputs();
      values.insert(values.end(), results.begin(), results.end());
      for (Value v : values) {
        const bool is_float = v && (v.dtype() == TN_F32 || v.dtype() == TN_F64 ||
                                    v.dtype() == TN_F16 || v.dtype() == TN_BF16);
        if (is_float)
          return {TN_FAILED_PRECONDITION,
                  cat("option floats: ", node.type(), " ", node.name(), " has the float value ",
                      v.name(), "; quantizer.integers makes a quantized model's nodes integer")};
      }
    }
    return {};
  }

  explicit Reference(tn_ctx* ctx) : ctx_(ctx) {}
  tn_ctx* ctx_;
};

}  // namespace tenon::reference

TENON_BACKEND(reference,
              tenon::reference::Reference,
              "reference",
              "runs each operator's plain kernel: the oracle and the fallback",
              R"({"properties": {
  "max_value_bytes": {"type": "integer", "minimum": 0, "default": 0,
                      "description": "of one value that a node makes; 0: no limit"},
  "floats": {"type": "string", "enum": ["run", "refuse"], "default": "run",
             "description": "refuse: a model with floats in any other node than QuantizeLinear and DequantizeLinear is an error"}}})")
