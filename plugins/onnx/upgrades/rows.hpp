// SPDX-License-Identifier: Apache-2.0
#pragma once
// The upgrades, one function per kind of change; upgrade.cpp lists which operators they serve.

#include "draft.hpp"

namespace tenon::onnx_plugin {

Status axes_to_input(const EditView&, Draft&);                // axes.cpp
Status batch_normalization_9(const EditView&, Draft&);        // batch_normalization.cpp
Status batch_normalization_14(const EditView&, Draft&);       // batch_normalization.cpp
Status clip_11(const EditView&, Draft&);                      // clip.cpp
Status dft_20(const EditView&, Draft&);                       // dft.cpp
Status dropout_12(const EditView&, Draft&);                   // dropout.cpp
Status grid_sample_20(const EditView&, Draft&);               // grid_sample.cpp
Status group_normalization_21(const EditView&, Draft&);       // group_normalization.cpp
Status pad_11(const EditView&, Draft&);                       // pad.cpp
Status pow_of_integers(const EditView&, Draft&);              // pow.cpp
Status resize_11(const EditView&, Draft&);                    // resize.cpp
Status resize_13(const EditView&, Draft&);                    // resize.cpp
Status upsample_9(const EditView&, Draft&);                   // resize.cpp
Status upsample_to_resize(const EditView&, Draft&);           // resize.cpp
Status roi_align_16(const EditView&, Draft&);                 // roi_align.cpp
Status refuse_scan_8(const EditView&, Draft&);                // scan.cpp
Status scatter_to_scatter_elements(const EditView&, Draft&);  // scatter.cpp
Status slice_10(const EditView&, Draft&);                     // slice.cpp
Status softmax_13(const EditView&, Draft&);                   // softmax.cpp
Status split_13(const EditView&, Draft&);                     // split.cpp
Status split_18(const EditView&, Draft&);                     // split.cpp
Status top_k_10(const EditView&, Draft&);                     // top_k.cpp

}  // namespace tenon::onnx_plugin
