// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the C API's opaque session is.

#include "tenon/tenon.h"

#include "session.hpp"

struct tenon_session {
  tenon::host::Session host;
};
