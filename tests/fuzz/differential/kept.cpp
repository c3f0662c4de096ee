// SPDX-License-Identifier: Apache-2.0
#include "kept.hpp"

#include <fstream>
#include <map>

namespace tenon::fuzz {
namespace {

// NumPy's format 1.0 (its enhancement proposal 1); "" for a type that NumPy has not.
std::string npy_type(uint32_t dtype) {
  std::string bytes = std::to_string(TN_DTYPE_BITS(dtype) / 8);
  switch (TN_DTYPE_CODE(dtype)) {
    case kDLFloat:
      return "<f" + bytes;
    case kDLInt:
      return TN_DTYPE_BITS(dtype) < 8 ? "" : "<i" + bytes;
    case kDLUInt:
      return TN_DTYPE_BITS(dtype) < 8 ? "" : "<u" + bytes;
    case kDLBool:
      return "|b1";
    default:
      return "";
  }
}

bool write_npy(const std::string& path, const Tensor& tensor) {
  DLTensor t = tensor.dl();
  std::string type = npy_type(dtype_of(t)), shape;
  if (type.empty()) return false;
  for (int64_t dim : shape_of(t))
    shape += cat(dim, ",");
  std::string header =
      cat("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.put(static_cast<char>(header.size() & 0xff)).put(static_cast<char>(header.size() >> 8));
  file << header;
  file.write(data_of<const char>(t),
             static_cast<std::streamsize>(bytes_of(dtype_of(t), element_count(t))));
  return file.good();
}

bool write_all(tenon_session* session,
               const tn_graph* graph,
               const std::vector<Tensor>& inputs,
               const std::string& path) {
  std::string file = path + ".onnx";
  if (!Status(tenon_save(session, graph, str(file), str("{}"), nullptr)).ok()) return false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!write_npy(cat(path, ".in", i, ".npy"), inputs[i])) return false;
  return true;
}

}  // namespace

std::string printed(const tn_graph* graph) {
  StringSink out;
  Status ignored(services.graph->print(graph, 0, out.get()));
  return out.text;
}

void keep_found(tenon_session* session,
                const tn_graph* graph,
                const std::vector<Tensor>& inputs,
                const std::string& path) {
  write_all(session, graph, inputs, path);
}

void keep(tenon_session* session,
          tn_ctx* ctx,
          const tn_graph* graph,
          const std::vector<Tensor>& inputs,
          const std::vector<Expected>& expected,
          const std::string& path) {
  if (!write_all(session, graph, inputs, path)) return;
  for (size_t i = 0; i < expected.size(); ++i) {
    const Expected& one = expected[i];
    if (one.slack.empty()) continue;
    auto slack = Tensor::zeros(ctx, TN_F64, shape_of(one.tensor.dl()));
    if (!slack.ok() || !write_npy(cat(path, ".out", i, ".npy"), one.tensor)) continue;
    std::copy(one.slack.begin(), one.slack.end(), slack->data<double>());
    write_npy(cat(path, ".slack", i, ".npy"), *slack);
  }
}

}  // namespace tenon::fuzz
