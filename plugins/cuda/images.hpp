// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files that the build put into the plugin.

extern "C" {
extern const char tenon_cuda_image_element[];  // kernels/element.cuh, ends in NUL
extern const char tenon_cuda_image_channels[];
extern const char tenon_cuda_image_copy[];
extern const char tenon_cuda_image_rows[];
extern const char tenon_cuda_image_reduce[];
extern const char tenon_cuda_image_pool[];
}
