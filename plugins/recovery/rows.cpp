// SPDX-License-Identifier: Apache-2.0
#include "rows.hpp"

#include <algorithm>

namespace tenon::recovery {

Result<LayerRows> each_layer(
    tn_ctx* ctx, tn_graph* raw, std::string_view doing, const Cancel& cancel, const Visit& visit) {
  std::vector<tn_node_id> order;
  for (Node node : Graph{raw}.nodes())
    if (has_weight(node)) order.push_back(node.id);
  Progress progress(ctx, doing, order.size());
  LayerRows out;
  for (size_t i = 0; i < order.size(); ++i) {
    TN_CHECK(cancel.check());
    const Node node{raw, order[i]};
    nlohmann::ordered_json row{{"node", node.name()}, {"op", node.type()}};
    Status left = visit(node, i, &row);
    TN_CHECK(cancel.check());
    if (!left.ok()) row["why"] = left.text();
    (left.ok() ? out.done : out.left).push_back(std::move(row));
    progress.update(i + 1);
  }
  return Result<LayerRows>(std::move(out));
}

int64_t rows_in_batch(const Layer& layer, int64_t option, uint64_t batches) {
  const int64_t rows = option > 0 ? option : std::max<int64_t>(16 * layer.n_in, 4096);
  const auto n = static_cast<int64_t>(batches);
  return (rows + n - 1) / n;
}

Positions Positions::draw(
    const Layer& layer, const DLTensor& made, int64_t wanted, uint64_t stream, PaddingMask* mask) {
  Positions out;
  std::vector<int64_t> dims(shape_of(made).begin(), shape_of(made).end());
  if (layer.is_conv) {
    out.outer = dims[0];
    for (size_t i = 2; i < dims.size(); ++i)
      out.inner *= dims[i];
  } else {
    out.outer = element_count(made) / layer.n_out;
  }
  std::vector<int64_t> counting = mask->among(made, out.outer * out.inner);
  const auto all = static_cast<int64_t>(counting.size());
  if (wanted >= all) {
    out.chosen = std::move(counting);
    return out;
  }
  std::vector<double> draws(static_cast<size_t>(wanted));
  services.random->uniform(0, stream, 0, draws.data(), draws.size());
  for (double draw : draws)
    out.chosen.push_back(counting[static_cast<size_t>(draw * static_cast<double>(all))]);
  return out;
}

namespace {

// The window of a convolution over one sample, at one position of the output.
class Window {
 public:
  Window(const Layer& layer, const DLTensor& read, const DLTensor& made) : layer_(layer) {
    for (size_t i = 0; i < layer.window.size(); ++i) {
      in_.push_back(read.shape[i + 2]);
      out_.push_back(made.shape[i + 2]);
    }
  }
  // For each position of the window the entry of a channel's memory, or -1 in the padding.
  void at(int64_t position, std::vector<int64_t>* entries) const {
    size_t n = layer_.window.size();
    std::vector<int64_t> corner(n);
    for (size_t i = n; i-- > 0; position /= out_[i])
      corner[i] = position % out_[i] * layer_.strides[i] - layer_.pads[i];
    entries->clear();
    for (int64_t p = 0, taps = layer_.taps(); p < taps; ++p) {
      int64_t left = p, entry = 0, stride = 1;
      bool inside = true;
      for (size_t i = n; i-- > 0; left /= layer_.window[i]) {
        int64_t x = corner[i] + left % layer_.window[i] * layer_.dilations[i];
        inside = inside && x >= 0 && x < in_[i];
        entry += x * stride;
        stride *= in_[i];
      }
      entries->push_back(inside ? entry : -1);
    }
  }

 private:
  const Layer& layer_;
  std::vector<int64_t> in_, out_;
};

}  // namespace

Matrix inputs_at(const Layer& layer,
                 const DLTensor& read,
                 const Positions& positions,
                 int64_t group,
                 const DLTensor& made) {
  Matrix out(static_cast<int64_t>(positions.chosen.size()), layer.n_in);
  const float* data = data_of<const float>(read);
  if (!layer.is_conv) {
    for (int64_t r = 0; r < out.rows(); ++r)
      for (int64_t c = 0; c < layer.n_in; ++c)
        out(r, c) = double{data[positions.chosen[static_cast<size_t>(r)] * layer.n_in + c]};
    return out;
  }
  Window window(layer, read, made);
  int64_t inner = 1;
  for (int i = 2; i < read.ndim; ++i)
    inner *= read.shape[i];
  std::vector<int64_t> entries;
  for (int64_t r = 0; r < out.rows(); ++r) {
    int64_t position = positions.chosen[static_cast<size_t>(r)];
    window.at(position % positions.inner, &entries);
    const int64_t channels = layer.n_in / layer.taps();
    const float* sample =
        data + (position / positions.inner * read.shape[1] + group * channels) * inner;
    for (int64_t c = 0; c < layer.n_in; ++c) {
      int64_t entry = entries[static_cast<size_t>(c / channels)];
      out(r, c) = entry < 0 ? 0 : double{sample[c % channels * inner + entry]};
    }
  }
  return out;
}

Matrix outputs_at(const DLTensor& made,
                  const Positions& positions,
                  const std::vector<int64_t>& channels) {
  Matrix out(static_cast<int64_t>(positions.chosen.size()), static_cast<int64_t>(channels.size()));
  int64_t all = element_count(made) / (positions.outer * positions.inner);
  const float* data = data_of<const float>(made);
  for (int64_t r = 0; r < out.rows(); ++r) {
    int64_t position = positions.chosen[static_cast<size_t>(r)];
    const float* first =
        data + position / positions.inner * all * positions.inner + position % positions.inner;
    for (int64_t c = 0; c < out.cols(); ++c)
      out(r, c) = double{first[channels[static_cast<size_t>(c)] * positions.inner]};
  }
  return out;
}

}  // namespace tenon::recovery
