// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `tenon plugin new` writes: for each role a first component that builds and passes its
// checks.

#include <span>

namespace tenon::command {

// A role's first component. @include@ is the directive, @name@ is the component's word, @Class@ its
// class, @id@ its id.
struct Template {
  const char* role;
  const char* list;  // of tenon_add_plugin
  const char* source;
};

std::span<const Template> templates();

// templates_files.cpp: what brings data in and models out.
extern const char* const kReaderTemplate;
extern const char* const kWriterTemplate;
extern const char* const kDatasetTemplate;
extern const char* const kMetricTemplate;
// templates_training.cpp
extern const char* const kLossTemplate;
extern const char* const kOptimizerTemplate;
// templates_layers.cpp
extern const char* const kLayerTemplate;
extern const char* const kInitializerTemplate;
// templates_backend.cpp
extern const char* const kBackendTemplate;
// templates_kernels.cpp
extern const char* const kKernelTemplate;
extern const char* const kCollectiveTemplate;

}  // namespace tenon::command
