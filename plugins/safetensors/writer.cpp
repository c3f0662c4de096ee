// SPDX-License-Identifier: Apache-2.0
// The constants of a graph (bodies and functions left aside) as a file of tensors. A constant that
// is an output has the output's name.
#include "tenon/sdk/role/writer.hpp"

#include <algorithm>

#include "tenon/half.hpp"
#include "tenon/sdk/pattern.hpp"

#include "header.hpp"

namespace tenon::safetensors_plugin {
namespace {

struct Item {
  Entry entry;
  Tensor tensor;  // dense
};

struct Form {  // how tensors are written
  tn_ctx* ctx = nullptr;
  bool rounds = false;                 // float32 to bfloat16
  std::vector<std::string> only = {};  // patterns of names; empty: all
};

Result<Tensor> rounded(tn_ctx* ctx, const Tensor& tensor) {
  DLTensor from = tensor.dl();
  TN_TRY(out, Tensor::zeros(ctx, TN_BF16, shape_of(from)));
  const float* x = data_of<const float>(from);
  std::transform(x, x + element_count(from), data_of<uint16_t>(out.dl()), bfloat_of_float);
  return out;
}

Result<Item> item_of(const Form& form, std::string_view name, const Tensor& tensor) {
  TN_TRY(plain, tensor.dense(form.ctx));
  if (form.rounds && dtype_of(plain.dl()) == TN_F32) {
    TN_TRY(shorter, rounded(form.ctx, plain));
    plain = shorter;
  }
  DLTensor dl = plain.dl();
  Item out{{std::string(name), dtype_of(dl), {}, 0, services.tensor->bytes(plain.get())}, plain};
  out.entry.dims.assign(dl.shape, dl.shape + dl.ndim);
  if (safetensors::name_of_dtype(out.entry.dtype).empty())
    return unsupported(
        cat("constant ", name, ": the format has no type ", dtype_name(out.entry.dtype)));
  if (name == "__metadata__") return invalid("constant __metadata__: the format keeps this name");
  return out;
}

Result<std::vector<Item>> items_of(const Form& form, Graph graph) {
  std::vector<Item> out;
  std::vector<Value> outputs = graph.outputs();
  for (const Value& value : graph.constants()) {
    std::vector<std::string> names;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] == value) names.emplace_back(graph.output_name(i));
    if (names.empty()) names.emplace_back(value.name());
    for (const std::string& name : names) {
      if (!form.only.empty() && matched_by(form.only, name).empty()) continue;
      TN_TRY(item, item_of(form, name, value.constant()));
      out.push_back(item);
    }
  }
  if (out.empty() && !form.only.empty())
    return invalid(cat("option only: no constant fits '", form.only.front(), "'"));
  auto by_name = [](const Item& a, const Item& b) { return a.entry.name < b.entry.name; };
  std::sort(out.begin(), out.end(), by_name);
  for (size_t i = 1; i < out.size(); ++i)
    if (out[i].entry.name == out[i - 1].entry.name)
      return invalid(cat("two constants have the name ", out[i].entry.name));
  // Widest types first keeps every tensor at a multiple of its element's size.
  std::stable_sort(out.begin(), out.end(), [](const Item& a, const Item& b) {
    return TN_DTYPE_BITS(a.entry.dtype) > TN_DTYPE_BITS(b.entry.dtype);
  });
  return out;
}

class Writer {
 public:
  static Result<Writer> create(tn_ctx* ctx, const Options& options) {
    Writer out;
    out.form_ = {ctx, options.text("dtype") == "bfloat16", options.texts("only")};
    return out;
  }

  Status write(const tn_graph* graph, tn_target* target, const Cancel& cancel) {
    TN_TRY(items, items_of(form_, {graph}));
    Header header;
    uint64_t at = 0;
    for (Item& item : items) {
      item.entry.begin = at;
      at += item.entry.end;
      item.entry.end = at;
      header.tensors.push_back(item.entry);
    }
    for (uint64_t i = 0, n = services.graph->note_count(graph, 0); i < n; ++i) {
      std::string key(view(services.graph->note_key(graph, 0, i)));
      if (key.rfind(kNoteMetadata, 0) != 0) continue;
      tn_any any{};
      TN_CHECK(services.graph->note(graph, 0, str(key), &any));
      header.metadata.emplace_back(key.substr(kNoteMetadata.size()), text_of(any));
    }
    std::string text = safetensors::print_header(header);
    TN_CHECK(services.blob->write(target, {}, text.data(), text.size()));
    for (const Item& item : items) {
      TN_CHECK(cancel.check());
      TN_CHECK(services.blob->write(target, {}, item.tensor.data<char>(),
                                    item.entry.end - item.entry.begin));
    }
    return {};
  }

 private:
  Form form_;
};

}  // namespace
}  // namespace tenon::safetensors_plugin

TENON_WRITER(writer,
             tenon::safetensors_plugin::Writer,
             "safetensors",
             "writes the constants of a graph as a safetensors file",
             R"({
  "properties": {
    "dtype": {"type": "string", "enum": ["keep", "bfloat16"], "default": "keep", "description": "of constants in float32: as they are, or rounded"},
    "only": {"type": ["array", "string"], "items": {"type": "string"}, "default": [], "description": "patterns of the names of constants to write; none: all"}},
  "extensions": [".safetensors"]})")
