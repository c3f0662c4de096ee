// SPDX-License-Identifier: Apache-2.0
// tenon.h: models in and out of files, and passes over them.
#include <algorithm>
#include <memory>

#include "tenon/host/blob.h"
#include "tenon/host/graph.h"
#include "tenon/host/options.h"
#include "tenon/role/pass.h"
#include "tenon/role/reader.h"
#include "tenon/role/writer.h"

#include "capi/capi.hpp"
#include "graph/graph.hpp"
#include "registry/component.hpp"
#include "services/boundary.hpp"
#include "values/json_any.hpp"

namespace tenon::host {
namespace {

constexpr std::string_view kReader = "tenon.reader/1";
constexpr std::string_view kWriter = "tenon.writer/1";
constexpr std::string_view kPass = "tenon.pass/1";
constexpr uint64_t kProbedBytes = 4096;

const tn_host_blob& blobs() {
  return *service<tn_host_blob>("tenon.host.blob/1");
}
const tn_host_graph& graphs() {
  return *service<tn_host_graph>("tenon.host.graph/1");
}

template <class T>
using Owned = std::unique_ptr<T, void(TN_CALL*)(T*)>;
using OwnedOptions = Owned<tn_options>;

// The "format" of a JSON object of options, and the rest of them.
struct FileOptions {
  std::string format;
  OwnedOptions rest;
};

Result<FileOptions> read_options(tn_ctx* ctx, std::string_view text) {
  const auto& options = *service<tn_host_options>("tenon.host.options/1");
  FileOptions out{"", {nullptr, options.release}};
  TN_TRY(json, parse_object(text, "options"));
  if (auto format = json.find("format"); format != json.end()) {
    if (!format->is_string())
      return invalid(cat("options: format: expected a text, got ", format->dump()));
    out.format = format->get<std::string>();
    json.erase(format);
  }
  tn_options* made = nullptr;
  TN_CHECK(Status(options.create(ctx, &made)));
  out.rest.reset(made);
  TN_CHECK(Status(options.parse(made, str(json.dump()))));
  return out;
}

// Format "onnx" is the component "onnx.<anything>" of the plugin "onnx"; others go by their ids.
std::string_view format_of(const ComponentText& component) {
  std::string_view id = component.id, first = id.substr(0, id.find('.'));
  return first == component.plugin ? first : id;
}

Result<std::string> by_format(tn_ctx* ctx, std::string_view role, std::string_view format) {
  std::vector<std::string_view> formats;
  std::string known;
  for (const ComponentText* one : ctx->session->registry->described(role)) {
    formats.push_back(format_of(*one));
    if (one->id == format || formats.back() == format) return one->id;
    known += cat(known.empty() ? "" : ", ", formats.back());
  }
  return not_found(cat("format: expected one of ", known.empty() ? "(no plugin was found)" : known,
                       ", got '", format, "'", did_you_mean(format, formats)));
}

int32_t probe(tn_ctx* ctx, std::string_view id, tn_bytes head, std::string_view path) {
  Result<Made<tn_reader>> reader = Made<tn_reader>::create(ctx, kReader, id, nullptr);
  if (!reader.ok()) return 0;  // another reader may do; naming this one reports what is wrong
  return (*reader)->probe(reader->self(), head, str(path));
}

Result<std::string> choose_reader(tn_ctx* ctx, tn_blob* blob, std::string_view path) {
  uint64_t bytes = std::min(blobs().size(blob), kProbedBytes);
  const void* data = nullptr;
  if (bytes) TN_CHECK(Status(blobs().map(blob, 0, bytes, &data)));
  tn_bytes head{data, bytes};
  Registry& registry = *ctx->session->registry;
  Result<std::string> named = registry.for_file(kReader, path);
  if (named.ok() && probe(ctx, *named, head, path) > 0) return named;
  std::string best;
  int32_t surest = 0;
  for (const ComponentText* one : registry.described(kReader)) {
    int32_t sure = probe(ctx, one->id, head, path);
    if (sure > surest) {
      best = one->id;
      surest = sure;
    }
  }
  if (surest > 0) return best;
  return named;  // the reader that its name asks for reports what is wrong with the file
}

Status check_no_edit(const tn_graph* graph, std::string_view id) {
  if (!graph->in_edit) return {};
  return {TN_INTERNAL, "it left an edit of the graph open: expected it committed or rolled back",
          id};
}

Status load(tn_ctx* ctx,
            std::string_view path,
            std::string_view options,
            const tn_cancel* cancel,
            tn_graph** out) {
  TN_TRY(given, read_options(ctx, options));
  tn_blob* opened = nullptr;
  TN_CHECK(Status(blobs().open(ctx, str(path), &opened)));
  Owned<tn_blob> blob(opened, blobs().release);
  TN_TRY(id, given.format.empty() ? choose_reader(ctx, opened, path)
                                  : by_format(ctx, kReader, given.format));
  TN_TRY(reader, Made<tn_reader>::create(ctx, kReader, id, given.rest.get()));
  tn_graph* made = nullptr;
  TN_CHECK(Status(graphs().create(ctx, &made)));
  Owned<tn_graph> graph(made, graphs().release);
  Status failed = reader.called("read", reader->read(reader.self(), opened, made, cancel));
  if (failed.ok()) failed = check_no_edit(made, id);
  if (!failed.ok()) return std::move(failed).in(path);
  *out = graph.release();
  return {};
}

Status save(tn_ctx* ctx,
            const tn_graph* graph,
            std::string_view path,
            std::string_view options,
            const tn_cancel* cancel) {
  TN_TRY(given, read_options(ctx, options));
  TN_TRY(id, given.format.empty() ? ctx->session->registry->for_file(kWriter, path)
                                  : by_format(ctx, kWriter, given.format));
  TN_TRY(writer, Made<tn_writer>::create(ctx, kWriter, id, given.rest.get()));
  tn_target* target = nullptr;
  TN_CHECK(Status(blobs().create(ctx, str(path), &target)));
  Status failed = writer.called("write", writer->write(writer.self(), graph, target, cancel));
  if (failed.ok()) return Status(blobs().commit(target));
  blobs().abandon(target);
  return std::move(failed).in(path);
}

tn_status* discard(void*, const void*, uint64_t) {
  return nullptr;
}

Status apply(tn_ctx* ctx,
             const tn_graph* graph,
             std::string_view id,
             const tn_options* options,
             const tn_cancel* cancel,
             const tn_sink* report,
             tn_graph** out) {
  TN_TRY(pass, Made<tn_pass>::create(ctx, kPass, id, options));
  tn_graph* made = nullptr;
  TN_CHECK(Status(graphs().clone(graph, &made)));
  Owned<tn_graph> changed(made, graphs().release);
  const tn_sink nowhere{nullptr, discard};
  TN_CHECK(pass.called("run", pass->run(pass.self(), made, cancel, report ? report : &nowhere)));
  TN_CHECK(check_no_edit(made, id));
  Status broken(graphs().verify(made));
  if (!broken.ok())
    return {TN_INTERNAL, "the graph that it made is not valid", id, std::move(broken)};
  *out = changed.release();
  return {};
}

}  // namespace
}  // namespace tenon::host

namespace tenon::host::exported {

tn_status* tenon_load(
    tenon_session* session, tn_str path, tn_str options, const tn_cancel* cancel, tn_graph** out) {
  *out = nullptr;
  return guarded([&] { return load(context(session), view(path), view(options), cancel, out); });
}

tn_status* tenon_save(tenon_session* session,
                      const tn_graph* graph,
                      tn_str path,
                      tn_str options,
                      const tn_cancel* cancel) {
  return guarded([&] { return save(context(session), graph, view(path), view(options), cancel); });
}

tn_status* tenon_apply(tenon_session* session,
                       const tn_graph* graph,
                       tn_str pass_id,
                       const tn_options* options,
                       const tn_cancel* cancel,
                       const tn_sink* report,
                       tn_graph** out) {
  *out = nullptr;
  return guarded(
      [&] { return apply(context(session), graph, view(pass_id), options, cancel, report, out); });
}

}  // namespace tenon::host::exported
