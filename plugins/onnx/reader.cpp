// SPDX-License-Identifier: Apache-2.0
// The component: file -> skeleton -> protobuf -> graph.
#include "tenon/sdk/role/reader.hpp"

#include "importer.hpp"
#include "notes.hpp"
#include "skeleton.hpp"

namespace tenon::onnx_plugin {
namespace {

Status graph_notes(const EditView& edit, const onnx::ModelProto& model) {
  auto text = [&](std::string_view key, const std::string& value) -> Status {
    return value.empty() ? Status() : edit.set_note(0, key, any_text(value));
  };
  if (model.producer_name() != kOurProducer) TN_CHECK(text(kNoteProducer, model.producer_name()));
  TN_CHECK(text(kNoteProducerVersion, model.producer_version()));
  TN_CHECK(text(kNoteDomain, model.domain()));
  TN_CHECK(text(kNoteModelDoc, model.doc_string()));
  TN_CHECK(text(kNoteGraphName, model.graph().name()));
  TN_CHECK(text(kNoteDoc, model.graph().doc_string()));
  if (model.model_version())
    TN_CHECK(edit.set_note(0, kNoteModelVersion, any_int(model.model_version())));
  for (const auto& entry : model.graph().metadata_props())
    TN_CHECK(edit.set_note(0, cat(kNoteGraphMetadata, entry.key()), any_text(entry.value())));
  for (const auto& entry : model.metadata_props())
    if (entry.key().rfind(kMetadataState, 0) != 0)
      TN_CHECK(edit.set_note(0, cat(kNoteMetadata, entry.key()), any_text(entry.value())));
  return {};
}

// Pairs what the writer noted as pairs; what no longer fits is dropped.
void pair_states(const EditView& edit, const onnx::ModelProto& model) {
  for (const auto& entry : model.metadata_props()) {
    if (entry.key().rfind(kMetadataState, 0) != 0) continue;
    Value input = edit.graph().find(std::string_view(entry.key()).substr(kMetadataState.size()));
    Value output;
    std::vector<Value> outputs = edit.graph().outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (edit.graph().output_name(i) == entry.value()) output = outputs[i];
    if (input && output) Status ignored(services.edit->pair_state(edit.raw, input.id, output.id));
  }
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

class Reader {
 public:
  explicit Reader(tn_ctx* ctx) : ctx_(ctx) {}
  static Result<Reader> create(tn_ctx* ctx, const Options&) { return Reader(ctx); }

  // A ModelProto has no magic number; nearly all begin with ir_version: field 1, a small number.
  int probe(std::span<const std::byte> head, std::string_view name) const {
    bool begins = head.size() >= 2 && head[0] == std::byte{0x08} && head[1] < std::byte{0x40};
    if (ends_with(name, ".onnx")) return begins ? 100 : 60;
    return begins ? 40 : 0;
  }

  Status read(tn_blob* blob, tn_graph* into, const Cancel& cancel) {
    const void* data = nullptr;
    uint64_t size = services.blob->size(blob);
    if (size == 0) return invalid("expected an ONNX model, got an empty file");
    TN_CHECK(services.blob->map(blob, 0, size, &data));
    TN_TRY(skeleton, make_skeleton({static_cast<const char*>(data), size}));
    if (skeleton.had_training)
      log_line(ctx_, TN_LOG_WARNING, "the file's training part is left out");
    onnx::ModelProto model;
    if (!model.ParseFromString(skeleton.bytes))
      return {TN_DATA_LOSS, "expected an ONNX model, got bytes that are none"};
    skeleton.bytes = {};
    ModelFiles files(ctx_, blob);
    TN_TRY(edit, Edit::begin(into));
    Importer importer(files, model, cancel);
    TN_CHECK(importer.run(edit));
    warn_of(importer.contradicted());
    TN_CHECK(graph_notes(edit, model));
    pair_states(edit, model);
    return edit.commit();
  }

 private:
  void warn_of(const std::vector<std::string>& contradicted) const {
    if (contradicted.empty()) return;
    std::string more =
        contradicted.size() > 1 ? cat(" (and ", contradicted.size() - 1, " more)") : "";
    log_line(ctx_, TN_LOG_WARNING, cat(contradicted[0], more, ", which counts"));
    for (const std::string& line : contradicted)
      log_line(ctx_, TN_LOG_DEBUG, line);
  }

  tn_ctx* ctx_;
};

}  // namespace
}  // namespace tenon::onnx_plugin

TENON_READER(reader,
             tenon::onnx_plugin::Reader,
             "onnx",
             "reads ONNX models of opsets 7 to 28",
             R"({"properties": {}, "extensions": [".onnx"]})")
