// SPDX-License-Identifier: Apache-2.0
// The component: graph -> messages without weights -> bytes, the weights streamed between them.
#include "tenon/sdk/role/writer.hpp"

#include "tenon/sdk/run.hpp"

#include "exporter.hpp"
#include "n_bits.hpp"
#include "notes.hpp"
#include "opset.hpp"
#include "sparse.hpp"

namespace tenon::onnx_plugin {
namespace {

// Readers that know no better than protobuf's limit must be able to open the file itself.
constexpr uint64_t kLargestFile = 2'000'000'000;
constexpr uint64_t kSmallestExternal = 1024;
constexpr uint64_t kExternalAlignment = 64;

// Wire tags: number << 3 | 2 (length-delimited).
constexpr char kTagGraph = 7 << 3 | 2;        // ModelProto.graph
constexpr char kTagInitializer = 5 << 3 | 2;  // GraphProto.initializer
constexpr char kTagRawData = 9 << 3 | 2;      // TensorProto.raw_data

std::string field_start(char tag, uint64_t length) {
  std::string out(1, tag);
  for (; length >= 0x80; length >>= 7)
    out.push_back(static_cast<char>(length | 0x80));
  out.push_back(static_cast<char>(length));
  return out;
}

struct Piece {  // of an initializer's field, as it is written
  std::string before;
  const Tensor* data = nullptr;
};

class Writer {
 public:
  static Result<Writer> create(tn_ctx* ctx, const Options& options) {
    Writer made;
    made.ctx_ = ctx;
    made.external_ = options.flag("external_data");
    made.opset_ = options.integer("opset", 0);
    made.n_bits_ = options.flag("matmul_nbits");
    made.sparse_ = options.text("sparse", "off");
    made.metadata_ = options.flag("metadata");
    return made;
  }

  Status write(const tn_graph* graph, tn_target* target, const Cancel& cancel) {
    const bool as_gaps_too = sparse_ == "gaps";
    if (!n_bits_ && !as_gaps_too) return write_as_it_is(graph, target, cancel);
    TN_TRY(other, OwnedGraph::copy_of(graph));
    if (n_bits_) TN_CHECK(as_n_bits(other.get()));
    if (as_gaps_too) TN_CHECK(as_gaps(other.get()));
    return write_as_it_is(other.get(), target, cancel);
  }

 private:
  Status write_as_it_is(const tn_graph* graph, tn_target* target, const Cancel& cancel) {
    Exporter made;
    made.keeps_metadata = metadata_;
    TN_CHECK(made.run({graph}));
    if (sparse_ == "tensors") TN_CHECK(as_sparse_tensors(made));
    TN_CHECK(set_versions({graph}, made));
    warn_of(made.own_nodes);
    uint64_t bytes = made.model.ByteSizeLong();
    for (const Weight& weight : made.weights)
      bytes += services.tensor->bytes(weight.tensor.get());
    if (external_ || bytes > kLargestFile) TN_CHECK(write_external(made, target, cancel));
    return write_model(made, target, cancel);
  }

  void warn_of(const std::vector<std::string>& own_nodes) const {
    constexpr size_t kListed = 3;
    if (own_nodes.empty()) return;
    std::string names;
    for (size_t i = 0; i < std::min(kListed, own_nodes.size()); ++i)
      names += cat(i ? ", " : "", own_nodes[i]);
    if (own_nodes.size() > kListed) names += cat(" and ", own_nodes.size() - kListed, " more");
    log_line(
        ctx_, TN_LOG_WARNING,
        cat("onnx: Tenon alone runs ", names,
            "; the pass fusion.expand makes operators of ONNX of those that have such a form"));
  }

  // The versions of rows, where no note says one: what reads the file means the same operators.
  static void add_versions(Graph graph, std::map<std::string, int64_t>& domains) {
    for (Node node : graph.nodes()) {
      if (is_plain_copy(node)) continue;
      const tn_op* row = node.row();
      int64_t& version = domains.try_emplace(std::string(node.domain()), 1).first->second;
      if (row) version = std::max(version, static_cast<int64_t>(row->since_version));
      for (uint64_t i = 0, n = services.graph->attr_count(graph.raw, node.id); i < n; ++i) {
        tn_any any = node.attr(view(services.graph->attr_name(graph.raw, node.id, i)));
        if (any.tag == TN_ANY_GRAPH) add_versions({static_cast<const tn_graph*>(any.v.p)}, domains);
      }
    }
  }
  Status set_versions(Graph graph, Exporter& made) const {
    int64_t opset = std::max(opset_, made.opset);
    if (opset_ != 0 && opset_ < made.opset)
      return invalid(
          cat("option opset: ", made.opset_node, " needs at least ", made.opset, ", got ", opset_));
    if (opset_ == 0 && opset > kHighestUnasked)
      return unsupported(cat(made.opset_node, " needs opset ", opset, ", above ", kHighestUnasked,
                             " (few runtimes take it: ask for it with option opset)"));
    made.model.set_ir_version(ir_version_of(opset));
    auto add = [&](auto& list, std::string_view domain, int64_t version) {
      auto& import = *list.add_opset_import();
      import.set_domain(std::string(domain));
      import.set_version(version);
    };
    std::map<std::string, int64_t> domains;
    for (const auto& node : made.model.graph().node())
      if (!node.domain().empty()) domains.emplace(node.domain(), 1);
    for (auto& function : made.model.functions())
      domains.emplace(function.domain(), 1);
    for (uint64_t i = 0, n = services.graph->note_count(graph.raw, 0); i < n; ++i) {
      std::string key(view(services.graph->note_key(graph.raw, 0, i)));
      if (key.rfind(kNoteOpset, 0) != 0) continue;
      tn_any any{};
      Status ignored(services.graph->note(graph.raw, 0, str(key), &any));
      domains[key.substr(kNoteOpset.size())] = int_of(any, 1);
    }
    add_versions(graph, domains);
    domains.erase("");
    add(made.model, "", opset);
    for (const auto& [domain, version] : domains)
      add(made.model, domain, version);
    for (auto& function : *made.model.mutable_functions()) {
      add(function, "", opset);
      for (const auto& [domain, version] : domains)
        add(function, domain, version);
    }
    return {};
  }

  // Moves the data of all but small tensors into "<file>.data" beside the model.
  Status write_external(Exporter& made, tn_target* target, const Cancel& cancel) const {
    std::string path(view(services.blob->target_path(target)));
    std::string sibling = path.substr(path.find_last_of('/') + 1) + ".data";
    const std::string zeros(kExternalAlignment, '\0');
    uint64_t at = 0;
    for (Weight& weight : made.weights) {
      TN_CHECK(cancel.check());
      uint64_t bytes = services.tensor->bytes(weight.tensor.get());
      if (bytes < kSmallestExternal) continue;
      uint64_t padding = (kExternalAlignment - at % kExternalAlignment) % kExternalAlignment;
      TN_CHECK(services.blob->write(target, str(sibling), zeros.data(), padding));
      at += padding;
      TN_CHECK(services.blob->write(target, str(sibling), weight.tensor.data<char>(), bytes));
      auto entry = [&](std::string_view key, std::string value) {
        auto& made_entry = *weight.header.add_external_data();
        made_entry.set_key(std::string(key));
        made_entry.set_value(std::move(value));
      };
      entry("location", sibling);
      entry("offset", std::to_string(at));
      entry("length", std::to_string(bytes));
      weight.header.set_data_location(onnx::TensorProto::EXTERNAL);
      at += bytes;
    }
    return {};
  }

  static Piece piece_of(const Weight& weight) {
    std::string header = weight.header.SerializeAsString();
    if (weight.header.data_location() == onnx::TensorProto::EXTERNAL)
      return {field_start(kTagInitializer, header.size()) + header, nullptr};
    uint64_t bytes = services.tensor->bytes(weight.tensor.get());
    std::string raw = field_start(kTagRawData, bytes);
    uint64_t length = header.size() + raw.size() + bytes;
    return {field_start(kTagInitializer, length) + header + raw, &weight.tensor};
  }

  static Status write_model(Exporter& made, tn_target* target, const Cancel& cancel) {
    std::string graph = made.model.graph().SerializeAsString();
    made.model.clear_graph();
    std::string model = made.model.SerializeAsString();
    std::vector<Piece> pieces;
    uint64_t length = graph.size();
    for (const Weight& weight : made.weights) {
      const Piece& piece = pieces.emplace_back(piece_of(weight));
      length += piece.before.size();
      if (piece.data) length += services.tensor->bytes(piece.data->get());
    }
    std::string head = model + field_start(kTagGraph, length) + graph;
    TN_CHECK(services.blob->write(target, {}, head.data(), head.size()));
    for (const Piece& piece : pieces) {
      TN_CHECK(cancel.check());
      TN_CHECK(services.blob->write(target, {}, piece.before.data(), piece.before.size()));
      if (!piece.data) continue;
      TN_CHECK(services.blob->write(target, {}, piece.data->data<char>(),
                                    services.tensor->bytes(piece.data->get())));
    }
    return {};
  }

  tn_ctx* ctx_ = nullptr;
  bool external_ = false;
  int64_t opset_ = 0;
  bool n_bits_ = false;
  std::string sparse_ = "off";
  bool metadata_ = true;
};

}  // namespace
}  // namespace tenon::onnx_plugin

TENON_WRITER(writer,
             tenon::onnx_plugin::Writer,
             "onnx",
             "writes ONNX models of the lowest opset from 21 up that serves",
             R"({"properties": {
               "opset": {"type": "integer", "minimum": 21, "maximum": 28,
                 "description": "the opset to write; default: the lowest that serves, up to 26"},
               "external_data": {"type": "boolean", "default": false,
                 "description": "weights in a file beside the model; always so over 2 GB"},
               "metadata": {"type": "boolean", "default": true,
                 "description": "what other tools have noted at nodes, such as the calls that an exporter traced; false: without it"},
               "matmul_nbits": {"type": "boolean", "default": false,
                 "description": "products of 4-bit weights as ONNX Runtime's MatMulNBits, not as DequantizeLinear and MatMul"},
               "sparse": {"type": "string", "enum": ["off", "tensors", "gaps"], "default": "off",
                 "description": "weights with many zeros without these. tensors: ONNX's sparse initializers, 8 bytes of index a number; gaps: nodes that put the numbers in their places, 1 byte"}},
               "extensions": [".onnx"]})")
