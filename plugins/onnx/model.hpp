// SPDX-License-Identifier: Apache-2.0
#pragma once
// ONNX's messages, generated at build from the onnx.proto of PyPI's onnx (lite runtime).

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "onnx.pb.h"
#pragma GCC diagnostic pop
