// SPDX-License-Identifier: Apache-2.0
// The kernels of plugins/cuda/kernels, as functions of the CPU.
#include "emulate.hpp"
#include "kernels/channels.cu"
#include "kernels/copy.cu"
#include "kernels/pool.cu"
#include "kernels/reduce.cu"
#include "kernels/rows.cu"
