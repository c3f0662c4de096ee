// SPDX-License-Identifier: Apache-2.0
// The backend "onednn": see README.md. This file is the ABI's side of it.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "tenon/sdk/backend/inputs.hpp"
#include "tenon/sdk/backend/states.hpp"

#include "choosing/choosing.hpp"
#include "choosing/fingerprint.hpp"
#include "claim.hpp"
#include "cpu.hpp"
#include "executable.hpp"
#include "graph/importer.hpp"
#include "kernels/code/code_store.h"
#include "kernels/copy.h"
#include "lowering/constants.hpp"
#include "lowering/state_layout.hpp"
#include "report.hpp"
#include "rewrites/rewrites.hpp"
#include "settings.hpp"

namespace tenon::onednn {
namespace {

constexpr size_t kInlinePointers = 64;

bool is_cancelled(const void* cancel) {
  return services.cancel->requested(static_cast<const tn_cancel*>(cancel)) != 0;
}

// A compiled part with what the ABI wants to know about it.
struct Compiled {
  tn_ctx* ctx;
  std::vector<Tensor> constants;  // that steps read in place
  std::unique_ptr<Executable> executable;
  std::vector<DenseView> inputs;   // what a run must bring
  std::vector<DenseView> outputs;  // what it asks for
  std::vector<DenseView> states;   // in the order of Graph::states
  std::vector<std::string> state_names;
  std::vector<Dims> state_strides;  // how each lies in memory
  int64_t least_bytes_moved = 0;
  std::string precision;  // of floating-point numbers between nodes, and why not the one asked for
  std::mutex mutex;       // guards step_ns
  std::vector<uint64_t> step_ns;  // of the last profiled run
};

void span(const void* traced, const std::string* name) {
  auto* ctx = static_cast<tn_ctx*>(const_cast<void*>(traced));
  name ? services.trace->begin(ctx, str("node"), str(*name)) : services.trace->end(ctx);
}

// States in another order of axes, by our kernel.
void copy_strided(const DLTensor& like,
                  const void* from,
                  const Dims& from_strides,
                  void* to,
                  const Dims& to_strides) {
  kernels::StridedCopy copy{.src = from, .dst = to};
  copy.element_bytes = static_cast<int64_t>(bytes_of(dtype_of(like), 1));
  copy.rank = like.ndim;
  std::copy_n(like.shape, like.ndim, copy.dims);
  std::copy_n(from_strides.begin(), like.ndim, copy.src_strides);
  std::copy_n(to_strides.begin(), like.ndim, copy.dst_strides);
  kernels::strided_copy(kernels::make_context(best_level(), {}), copy);
}

// As aligned_bytes, counted as this plugin's: tenon_plugin_balance reports what packed weights
// take.
std::shared_ptr<void> counted_bytes(tn_ctx* ctx, int64_t bytes) {
  BlockForm form = block_form(bytes);
  void* memory = services.memory->alloc(ctx, form.bytes, form.align, str("packed weights"));
  if (memory == nullptr) throw std::bad_alloc();
  prepare_block(memory, form);
  return {memory,
          [ctx, form](void* block) { services.memory->free(ctx, block, form.bytes, form.align); }};
}

// nullptr where packed weights are kept nowhere.
std::unique_ptr<PackedFiles> packed_files(tn_ctx* ctx, const Options& options) {
  if (!options.flag("keep_packed")) return nullptr;
  return std::make_unique<PackedFiles>(
      PackedFiles::default_folder(), fingerprint(), options.integer("keep_packed_mb", 4096) << 20,
      [ctx](const std::string& what) { log_line(ctx, TN_LOG_WARNING, what); });
}

}  // namespace

class OneDnn {
 public:
  static Result<OneDnn> create(tn_ctx* ctx, const Options& options) {
    OneDnn made;
    made.ctx_ = ctx;
    made.store_ = std::make_unique<WeightStore>(
        [ctx, n_packed = made.n_packed_](int64_t bytes) {
          n_packed->fetch_add(1, std::memory_order_relaxed);
          return counted_bytes(ctx, bytes);
        },
        packed_files(ctx, options));
    TN_TRY(settings, Settings::of(options));
    made.settings_ = std::move(settings);
    TN_TRY(chooser, new_chooser(ctx, options));
    made.chooser_ = std::move(chooser);
    return Result<OneDnn>(std::move(made));
  }

  static tn_backend table() {
    tn_backend t = BackendRole<OneDnn>::cpu_table();
    backend::add_states<OneDnn, backend::StateStore>(t);
    return t;
  }

  Status devices(Sink& out) {
    const char* bf16 = computes_in_bf16() ? R"(, "bf16")" : "";
    return out.write(cat(R"([{"id": 0, "type": 1, "name": "CPU, oneDNN", "memory_bytes": 0, )",
                         R"("precisions": ["fp32")", bf16, R"(, "int8"]}])"));
  }

  Result<backend::StateStore*> new_state(int32_t) {
    return new backend::StateStore(ctx_, copy_strided);
  }

  // Static shapes and folded weights are what a plan is compiled from.
  Status prepare(Sink& out) { return out.write("fusion.default\n"); }

  Status claim(const tn_graph* graph, int32_t, const tn_claims& claims) {
    TN_TRY(imported, import_graph(graph));
    rewrite_before_claiming(imported);
    std::vector<std::string> why;
    for (size_t i = 0; i < imported.nodes.size(); ++i) {
      why.push_back(why_not(imported, static_cast<int>(i)));
    }
    std::vector<bool> taken(why.size(), false);
    // Last first: a group is taken before the nodes in it alone.
    for (size_t i = why.size(); i-- > 0;) {
      if (imported.nodes[i].source.id == 0) continue;  // of the node beside it
      if (!why[i].empty()) {
        claims.refuse(claims.ctx, imported.nodes[i].source.id, str(why[i]));
        continue;
      }
      if (taken[i]) continue;
      std::vector<tn_node_id> group;
      for (int member : claim_group(imported, static_cast<int>(i))) {
        taken[static_cast<size_t>(member)] = true;
        group.push_back(imported.node(member).source.id);
      }
      claims.take(claims.ctx, group.data(), group.size());
    }
    return {};
  }

  Result<void*> compile(const tn_graph* part, int32_t, const Options& options) {
    auto made = std::make_unique<Compiled>();
    made->ctx = ctx_;
    TN_TRY(graph, import_graph(part));
    rewrite_before_claiming(graph);
    rewrite(graph);
    CompileOptions compile = settings_.with(options);
    compile.chooser = chooser_.get();
    compile.code_store = code_store_.get();
    for (int input : graph.inputs)
      made->inputs.push_back(header(graph, input));
    for (int output : graph.outputs)
      made->outputs.push_back(header(graph, output));
    for (const auto& [before, after] : graph.states) {
      made->states.push_back(header(graph, before));
      made->state_names.push_back(graph.value(before).name);
      made->state_strides.push_back(kept_strides(graph, before));
    }
    Constants constants(graph);
    // A form that finds all weights packed has read none of them: asking the system to take pages
    // back that are not there costs it a tenth of a millisecond.
    auto n_made = [&] { return n_packed_->load(std::memory_order_relaxed) + store_->n_found(); };
    compile.packs = [n_made, n_before = n_made()] { return n_made() != n_before; };
    compile.has_packed = [&](const void* data) { constants.has_been_packed(data); };
    compile.identify = [&](const void* data) { return constants.identity(data); };
    compile.compile_body = [&](const Graph& body, size_t n_captured) {
      return compile_body(body, compile, n_captured);
    };
    try {
      made->executable = std::make_unique<Executable>(graph, compile, *store_);
    } catch (const CompileError& error) {
      return unsupported(cat("onednn: ", error.what()));
    } catch (const dnnl::error& error) {
      return unsupported(cat("onednn: ", error.what()));
    }
    made->constants = constants.read_in_place(made->executable->plan());
    made->least_bytes_moved = least_bytes_moved(graph);
    made->precision = precision_of(made->executable->plan(), compile);
    made->step_ns.resize(made->executable->plan().steps.size());
    return static_cast<void*>(made.release());
  }

  uint64_t workspace(void* exe) {
    return static_cast<uint64_t>(static_cast<Compiled*>(exe)->executable->workspace_bytes());
  }

  Status run(void* exe,
             void* state,
             const DLTensor* const* in,
             uint64_t n_in,
             const tn_outputs* outputs,
             const tn_exec* exec) {
    Compiled& compiled = *static_cast<Compiled*>(exe);
    size_t n_out = compiled.outputs.size();
    if (n_in != compiled.inputs.size()) {
      return invalid(cat("onednn: expected ", compiled.inputs.size(), " inputs, got ", n_in));
    }
    size_t n_states = compiled.states.size();
    auto* store = static_cast<backend::StateStore*>(state);
    if (n_in + n_out + n_states <= kInlinePointers) {
      std::array<void*, kInlinePointers> pointers;
      return run_with(compiled, pointers.data(), store, in, outputs, exec);
    }
    std::vector<void*> pointers(n_in + n_out + n_states);
    return run_with(compiled, pointers.data(), store, in, outputs, exec);
  }

  void exe_free(void* exe) { delete static_cast<Compiled*>(exe); }

  Status describe(void* exe, Sink& out) {
    const Compiled& compiled = *static_cast<Compiled*>(exe);
    return out.write(
        described(*compiled.executable, compiled.least_bytes_moved, compiled.precision));
  }

  Status profile(void* exe, Sink& out) {
    Compiled& compiled = *static_cast<Compiled*>(exe);
    std::lock_guard<std::mutex> lock(compiled.mutex);
    return out.write(profiled(compiled.executable->plan(), compiled.step_ns));
  }

 private:
  // With what its steps read in place.
  std::shared_ptr<Executable> compile_body(Graph body,
                                           const CompileOptions& around,
                                           size_t n_captured) {
    struct Body {
      std::vector<Tensor> constants;
      std::unique_ptr<Executable> executable;
    };
    rewrite(body);
    Constants constants(body);
    CompileOptions compile = around;
    compile.n_captured = n_captured;
    compile.packs = {};
    compile.identify = [&](const void* data) { return constants.identity(data); };
    auto made = std::make_shared<Body>();
    made->executable = std::make_unique<Executable>(body, compile, *store_);
    made->constants = constants.read_in_place(made->executable->plan());
    return {made, made->executable.get()};
  }

  // Warns where bf16 was asked for and the plan is another: once, however many parts and shapes it
  // is compiled for.
  std::string precision_of(const Plan& plan, const CompileOptions& asked) const {
    if (plan.real_type == ElementType::kBf16) return "bf16";
    if (!asked.bf16) return "fp32";
    const std::string made = "fp32: " + why_not_bf16();
    std::call_once(*warned_, [&] {
      log_line(ctx_, TN_LOG_WARNING, cat("precision=bf16 keeps floating-point values in ", made));
    });
    return made;
  }

  static DenseView header(const Graph& graph, int value) {
    const Value& v = graph.value(value);
    return DenseView(v.dtype, v.dims);
  }

  static Status run_with(Compiled& compiled,
                         void** pointers,
                         backend::StateStore* store,
                         const DLTensor* const* in,
                         const tn_outputs* outputs,
                         const tn_exec* exec) {
    size_t n_in = compiled.inputs.size();
    size_t n_out = compiled.outputs.size();
    for (size_t i = 0; i < n_in; ++i) {
      if (const char* why = backend::why_not_as_compiled(*in[i], *compiled.inputs[i]))
        return invalid(cat("onednn: input ", i, ": ", why));
      pointers[i] = data_of<void>(*in[i]);
    }
    for (size_t i = 0; i < n_out; ++i) {
      DLTensor out{};
      TN_CHECK(outputs->get(outputs->ctx, i, compiled.outputs[i].get(), &out));
      pointers[n_in + i] = data_of<void>(out);
    }
    for (size_t i = 0; i < compiled.states.size(); ++i) {
      TN_TRY(place,
             store->place(compiled.state_names[i], *compiled.states[i], compiled.state_strides[i]));
      pointers[n_in + n_out + i] = place;
    }
    uint64_t needed = static_cast<uint64_t>(compiled.executable->workspace_bytes());
    if (needed > 0 && (exec->workspace == nullptr || exec->workspace_bytes < needed)) {
      return {TN_FAILED_PRECONDITION, cat("onednn: expected a workspace of ", needed,
                                          " bytes, got ", exec->workspace_bytes)};
    }
    RunRequest request;
    request.inputs = std::span<const void* const>(pointers, n_in);
    request.outputs = std::span<void* const>(pointers + n_in, n_out);
    request.states = std::span<void* const>(pointers + n_in + n_out, compiled.states.size());
    request.workspace = exec->workspace;
    if (exec->cancel != nullptr) {
      request.is_cancelled = is_cancelled;
      request.cancel = exec->cancel;
    }
    if (services.trace->enabled(compiled.ctx)) {
      request.span = span;
      request.traced = compiled.ctx;
    }
    std::vector<uint64_t> step_ns;
    if (exec->flags & TN_EXEC_PROFILE) {
      step_ns.resize(compiled.step_ns.size());
      request.step_ns = &step_ns;
    }
    const Step* where = nullptr;
    const char* error = compiled.executable->run(request, &where);
    if (error != nullptr) {
      bool cancelled = std::string_view(error) == kCancelled;
      return {cancelled ? TN_CANCELLED : TN_INVALID_ARGUMENT,
              cancelled ? kCancelled : cat("onednn: node ", where->name, ": ", error)};
    }
    if (exec->flags & TN_EXEC_PROFILE) {
      std::lock_guard<std::mutex> lock(compiled.mutex);
      compiled.step_ns = std::move(step_ns);
    }
    return {};
  }

  tn_ctx* ctx_ = nullptr;
  Settings settings_;
  std::unique_ptr<Chooser> chooser_;  // nullptr: rules choose
  // How many blocks of packed weights have been made; shared with what makes them.
  std::shared_ptr<std::atomic<int64_t>> n_packed_ = std::make_shared<std::atomic<int64_t>>(0);
  std::unique_ptr<WeightStore> store_;
  std::unique_ptr<kernels::code::CodeStore> code_store_ =
      std::make_unique<kernels::code::CodeStore>();
  std::unique_ptr<std::once_flag> warned_ = std::make_unique<std::once_flag>();
};

}  // namespace tenon::onednn

TENON_BACKEND(onednn,
              tenon::onednn::OneDnn,
              "onednn",
              "CPU by oneDNN: int8, bf16 and fp32, fused, with layouts chosen for the whole graph",
              R"({"preference": 10, "properties": {
  "precision": {"type": "string", "enum": ["fp32", "bf16", "int8"], "default": "fp32",
                "description": "how floating-point values are kept between nodes; quantized nodes run in int8 in any case, and bf16 needs AVX-512: fp32 elsewhere, with a warning"},
  "winograd": {"type": "string", "enum": ["auto", "off", "all"], "default": "auto",
               "description": "3x3 convolutions by minimal filtering where that is faster. auto: in fp32 those of constant weights (off by less than 1e-5 of the range), in bf16 those that train (rounding errors about twice as large); all: both in both; off: none"},
  "sparse": {"type": "string", "enum": ["auto", "off", "all"], "default": "auto",
             "description": "products and 1x1 convolutions whose constant weights are mostly zeros leave these out. auto: where that is measured to be faster; all: wherever the kernel can; off: nowhere"},
  "without": {"type": "array", "items": {"type": "string"}, "default": [],
              "description": "implementations that no layer may choose, as `tenon bench --layers` names them: to compare, or to step around one"},
  "choose": {"type": "string", "enum": ["rules", "kept", "measured"], "default": "rules",
             "description": "who decides between implementations that all apply to a layer. rules: limits from sweeps; measured: the time of a few runs on this machine, which is kept on disk and holds for later compiles; kept: what was measured earlier, else rules"},
  "choose_ms": {"type": "integer", "minimum": 1, "maximum": 3600000, "default": 500,
                "description": "of choose=measured: how long a plan may measure, all its shapes together; layers beyond that follow the rules"},
  "choices": {"type": "array", "items": {"type": "string"}, "default": [],
              "description": "decisions that an earlier plan reports as `choices`: they hold for the same layers, whatever is kept on disk"},
  "deterministic": {"type": "boolean", "default": false,
                    "description": "measures nothing: choose=measured is choose=kept"},
  "keep_packed": {"type": "boolean", "default": false,
                  "description": "keeps packed weights in files in the user's cache folder (tenon/onednn/packed), which later processes map in place of packing again: all processes of a machine share their memory"},
  "keep_packed_mb": {"type": "integer", "minimum": 1, "maximum": 1048576, "default": 4096,
                     "description": "of keep_packed: what all files may take together, in MiB; those that were not used for the longest time go"},
  "threads": {"type": "integer", "minimum": 0, "maximum": 1024, "default": 0,
              "description": "threads per run; 0: OMP_NUM_THREADS, or as many as the CPU mask and the control group leave"}}})")
