/* SPDX-License-Identifier: Apache-2.0
 * What compilers call by different names: the section of a plugin's description, and sanitizers. */
#ifndef TENON_SDK_COMPILER_H
#define TENON_SDK_COMPILER_H
#include "tenon/plugin.h"

/* In front of bytes that are only read from the file: neither the compiler nor the linker (with
 * --gc-sections) drops them. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define TENON_DESCRIBES __attribute__((section(".tenon.plugin"), used, retain))
#endif
#endif
#ifndef TENON_DESCRIBES
#define TENON_DESCRIBES __attribute__((section(".tenon.plugin"), used))
#endif

/* TN_SAN_* of this build: gcc has a macro for each sanitizer, clang a feature. */
#if defined(__has_feature)
#define TENON_HAS_FEATURE(name) __has_feature(name)
#else
#define TENON_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TENON_HAS_FEATURE(address_sanitizer)
#define TENON_SANITIZER TN_SAN_ADDRESS
#elif defined(__SANITIZE_THREAD__) || TENON_HAS_FEATURE(thread_sanitizer)
#define TENON_SANITIZER TN_SAN_THREAD
#elif TENON_HAS_FEATURE(memory_sanitizer)
#define TENON_SANITIZER TN_SAN_MEMORY
#else
#define TENON_SANITIZER TN_SAN_NONE
#endif
#endif
