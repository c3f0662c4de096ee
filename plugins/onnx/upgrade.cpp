// SPDX-License-Identifier: Apache-2.0
#include "upgrade.hpp"

#include "upgrades/rows.hpp"

namespace tenon::onnx_plugin {
namespace {

constexpr UpgradeRow kUpgrades[] = {
    {"BatchNormalization", 9, batch_normalization_9},
    {"BatchNormalization", 14, batch_normalization_14},
    {"Clip", 11, clip_11},
    {"DFT", 20, dft_20},
    {"Dropout", 12, dropout_12},
    {"GridSample", 20, grid_sample_20},
    {"GroupNormalization", 21, group_normalization_21},
    {"Hardmax", 13, softmax_13},
    {"LogSoftmax", 13, softmax_13},
    {"Pad", 11, pad_11},
    {"Pow", kEveryOpset, pow_of_integers},
    {"ReduceL1", 18, axes_to_input},
    {"ReduceL2", 18, axes_to_input},
    {"ReduceLogSum", 18, axes_to_input},
    {"ReduceLogSumExp", 18, axes_to_input},
    {"ReduceMax", 18, axes_to_input},
    {"ReduceMean", 18, axes_to_input},
    {"ReduceMin", 18, axes_to_input},
    {"ReduceProd", 18, axes_to_input},
    {"ReduceSum", 13, axes_to_input},
    {"ReduceSumSquare", 18, axes_to_input},
    {"Resize", 11, resize_11},
    {"Resize", 13, resize_13},
    {"RoiAlign", 16, roi_align_16},
    {"Scan", 9, refuse_scan_8},
    {"Scatter", 11, scatter_to_scatter_elements},
    {"Slice", 10, slice_10},
    {"Softmax", 13, softmax_13},
    {"Split", 13, split_13},
    {"Split", 18, split_18},
    {"Squeeze", 13, axes_to_input},
    {"TopK", 10, top_k_10},
    {"Unsqueeze", 13, axes_to_input},
    {"Upsample", 9, upsample_9},
    {"Upsample", 10, upsample_to_resize},
};

const UpgradeRow* find(std::string_view type, int64_t opset) {
  for (const UpgradeRow& row : kUpgrades)
    if (row.opset == opset && row.type == type) return &row;
  return nullptr;
}

}  // namespace

Status upgrade(const EditView& edit, Draft& node, int64_t from) {
  for (int64_t opset = from + 1; opset <= kEveryOpset; ++opset) {
    const UpgradeRow* row = find(node.type, opset);
    if (row) TN_CHECK(row->apply(edit, node).in(cat("upgrade from opset ", from, " to ", opset)));
  }
  return {};
}

}  // namespace tenon::onnx_plugin
