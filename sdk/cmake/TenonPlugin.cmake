# SPDX-License-Identifier: Apache-2.0
# tenon_add_plugin(NAME name COMPONENTS words... [OPS words...] [SOURCES files...] [LIBS libs...]
#                  [REQUIRES targets...] [ID id] [VERSION v] [TITLE t] [VENDOR v] [LICENSE l] [URL u]
#                  [SUMMARY s] [OUTPUT_DIRECTORY folder])
# A plugin <name>.so. Each word of COMPONENTS is <word>.cpp with one macro of tenon/sdk/role/*.hpp
# whose first argument is the word; rules/x is rules/x.cpp with the word x. Each word of OPS is a
# file with TENON_OPS(word, ...): all of them become one component of role tenon.ops/1, called ID,
# with SUMMARY as its summary. A plugin whose REQUIRES targets are not all there is skipped.
include_guard(GLOBAL)

set(TENON_PLUGIN_VERSION_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/plugin.map)

# Writes the one file that no component has: the list of them, and the entry.
function(tenon_write_plugin_list file)
  set(declared "")
  set(listed "")
  foreach(word IN LISTS P_OPS)
    get_filename_component(word ${word} NAME)
    string(APPEND declared "TENON_DECLARE_OPS(${word})\n")
    string(APPEND op_list ", &tenon_ops_${word}")
  endforeach()
  if(P_OPS)
    string(APPEND declared
      "TENON_OPS_COMPONENT(all_operators, \"${P_ID}\", \"${P_SUMMARY}\"${op_list})\n")
    string(APPEND listed ",\n             &tenon_component_all_operators")
  endif()
  foreach(word IN LISTS P_COMPONENTS)
    get_filename_component(word ${word} NAME)
    string(APPEND declared "TENON_DECLARE_COMPONENT(${word})\n")
    string(APPEND listed ",\n             &tenon_component_${word}")
  endforeach()
  set(header plugin)
  if(P_OPS)
    set(header role/op)
  endif()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT
"// Written by tenon_add_plugin.
#include \"tenon/sdk/@header@.hpp\"

@declared@
TENON_PLUGIN(\"@P_ID@\", TENON_PLUGIN_VERSION, \"@P_TITLE@\", \"@P_VENDOR@\", \"@P_LICENSE@\",
             \"@P_URL@\"@listed@)
")
endfunction()

# What every plugin library is, however its sources were written.
function(tenon_configure_plugin target)
  set_target_properties(${target} PROPERTIES
    PREFIX "" SUFFIX ".so" CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS ${TENON_PLUGIN_VERSION_SCRIPT})
  # Unique symbols would be shared between plugins and pin the library.
  target_compile_options(${target} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-gnu-unique>)
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${TENON_PLUGIN_VERSION_SCRIPT} -Wl,-z,now -Wl,-z,relro
    -Wl,--exclude-libs,ALL)
  # A sanitizer's runtime is found in the program only.
  if(NOT TENON_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

function(tenon_add_plugin)
  cmake_parse_arguments(P ""
    "NAME;ID;VERSION;TITLE;VENDOR;LICENSE;URL;SUMMARY;OUTPUT_DIRECTORY"
    "COMPONENTS;OPS;SOURCES;LIBS;REQUIRES" ${ARGN})
  if(P_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tenon_add_plugin: unknown arguments: ${P_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT P_NAME OR NOT (P_COMPONENTS OR P_OPS))
    message(FATAL_ERROR "tenon_add_plugin: expected NAME, and COMPONENTS or OPS")
  endif()
  foreach(target IN LISTS P_REQUIRES)
    if(NOT TARGET ${target})
      message(STATUS "plugin ${P_NAME}: skipped, ${target} was not found")
      return()
    endif()
  endforeach()
  tenon_plugin_default(ID ${P_NAME})
  tenon_plugin_default(VERSION "${PROJECT_VERSION}")
  tenon_plugin_default(VERSION 0.0.0)
  tenon_plugin_default(TITLE ${P_ID})
  tenon_plugin_default(VENDOR ${PROJECT_NAME})
  tenon_plugin_default(LICENSE Apache-2.0)
  tenon_plugin_default(SUMMARY "operators of ${P_ID}")
  tenon_plugin_default(OUTPUT_DIRECTORY "${TENON_PLUGIN_DIR}")

  set(sources ${P_SOURCES})
  foreach(word IN LISTS P_COMPONENTS P_OPS)
    list(APPEND sources ${word}.cpp)
  endforeach()
  set(plugin_list ${CMAKE_CURRENT_BINARY_DIR}/${P_NAME}_components.cpp)
  tenon_write_plugin_list(${plugin_list})

  set(target tenon_plugin_${P_NAME})
  add_library(${target} MODULE ${sources} ${plugin_list})
  tenon_configure_plugin(${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${P_NAME})
  if(P_OUTPUT_DIRECTORY)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${P_OUTPUT_DIRECTORY})
  endif()
  target_compile_definitions(${target} PRIVATE TENON_PLUGIN_VERSION="${P_VERSION}")
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE tenon::sdk ${P_LIBS} ${P_REQUIRES})
  if(TARGET tenon_warnings)
    target_link_libraries(${target} PRIVATE tenon_warnings)
  endif()
endfunction()

macro(tenon_plugin_default name value)
  if(NOT P_${name})
    set(P_${name} "${value}")
  endif()
endmacro()
