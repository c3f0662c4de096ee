/* SPDX-License-Identifier: Apache-2.0
 * Reports of models for programs in C and for FFI. Link libtenon_reports beside libtenon. Graphs
 * are borrowed and only read. All functions: [any]. */
#ifndef TENON_REPORTS_H
#define TENON_REPORTS_H
#include "tenon/plugin.h"
#include "tenon/type.h"
#ifdef __cplusplus
extern "C" {
#endif

/* JSON: inputs and outputs with types, operators with counts, parameters, bytes, and flops and
 * bytes of each node (null where a size is not known). Errors: any of the sink's;
 * TN_INVALID_ARGUMENT: NULL. */
TN_EXPORT tn_status* tn_reports_inspect(const tn_host* host,
                                        const tn_graph* graph,
                                        const tn_sink* sink);

/* Line differences of the two graphs' texts, in unified form; writes nothing where they are equal.
 * Errors: as tn_reports_inspect. */
TN_EXPORT tn_status* tn_reports_diff(const tn_host* host,
                                     const tn_graph* before,
                                     const tn_graph* after,
                                     const tn_sink* sink);

#ifdef __cplusplus
}
#endif
#endif
