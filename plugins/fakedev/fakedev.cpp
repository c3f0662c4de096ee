// SPDX-License-Identifier: Apache-2.0
// The backend "fakedev", for tests: everything that is hard about a GPU, without one.
#include "backend.hpp"

TENON_BACKEND(fakedev,
              tenon::fakedev::FakeDevice,
              "fakedev",
              "a device that is not there: own addresses, delayed streams, errors on events",
              TENON_FAKEDEV_SCHEMA)
