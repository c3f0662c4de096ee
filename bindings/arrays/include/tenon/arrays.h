/* SPDX-License-Identifier: Apache-2.0
 * The functions of the array API for programs in C and for FFI: they add nodes to a graph under
 * construction. Link libtenon_arrays beside libtenon. All functions: [serial] per edit. */
#ifndef TENON_ARRAYS_H
#define TENON_ARRAYS_H
#include "tenon/host/graph_edit.h"
#include "tenon/plugin.h"
#ifdef __cplusplus
extern "C" {
#endif

/* JSON: a list with name, group, doc, parameters (name, kind, default, variadic) and results of
 * each function. It lives as long as the library. */
TN_EXPORT const char* tn_arrays_describe(void);

/* arguments: a JSON list, or an object by the names of the parameters. {"value": 7} is the value
 * with that id, numbers stand for themselves. out_values: room for n_values ids; out_count: how
 * many the function gives. TN_INVALID_ARGUMENT: an argument is not what the function takes, or
 * there is less room than values; TN_NOT_FOUND: no function is called so; TN_OUT_OF_RANGE: there is
 * no such axis. */
TN_EXPORT tn_status* tn_arrays_call(const tn_host* host,
                                    tn_edit* edit,
                                    tn_str function,
                                    tn_str arguments,
                                    tn_value_id* out_values,
                                    uint64_t n_values,
                                    uint64_t* out_count);

#ifdef __cplusplus
}
#endif
#endif
