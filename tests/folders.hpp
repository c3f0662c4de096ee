// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where this build lies. One generated source has the values: were they on every test's command
// line, no two checkouts could share what a compiler cache keeps.

namespace tenon::test {

extern const char* const kSourceFolder;
extern const char* const kBuildFolder;
extern const char* const kPluginFolder;
extern const char* const kTestPluginFolder;  // plugins that only tests load
extern const char* const kCompiler;

}  // namespace tenon::test
