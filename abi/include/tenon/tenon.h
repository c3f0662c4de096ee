/* SPDX-License-Identifier: Apache-2.0
 * The C API for programs that embed Tenon: what libtenon exports. Thin over the services that
 * plugins get; tenon_host() gives those tables for everything that is not repeated here.
 * Ownership: each out object is the caller's, who releases it by its own release function (see the
 * services); sessions outlive what was made from them. Options are JSON objects ("" is none) or a tn_options.
 * One session serves many threads. All functions: [any]. */
#ifndef TENON_TENON_H
#define TENON_TENON_H
#include "tenon/exec.h"
#include "tenon/plugin.h"
#include "tenon/type.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TENON_API TN_EXPORT

typedef struct tenon_session tenon_session;

/* config: {"plugin_path": [folders], "safe_mode": bool, "threads": n, "drafts": bool,
 * "report_crashes": bool: where the process dies, a line on standard error names the plugin}. Looks for
 * plugins in plugin_path, then TENON_PLUGIN_PATH, the user's data folder, and beside libtenon
 * (lib/tenon/plugins); loads none until one is named. Errors: TN_INVALID_ARGUMENT: config. */
TENON_API tn_status* tenon_open(tn_str config, tenon_session** out);
TENON_API void tenon_close(tenon_session*);
TENON_API const tn_host* tenon_host(tenon_session*); /* all host services, by id; lives as long as it */
TENON_API tn_str tenon_version(void); /* of libtenon: static text */

TENON_API int32_t tenon_status_code(const tn_status*);
/* The whole of it on one line, with causes and details; lives with the status. */
TENON_API tn_str tenon_status_message(const tn_status*);
/* The same. Errors: any of the sink's. */
TENON_API tn_status* tenon_status_text(const tn_status*, const tn_sink*);
TENON_API void tenon_status_release(tn_status*);

/* Models. options: "format", by default that of the file's first bytes and name, and those of the reader
 * or writer. Errors of these: any of the reader's or writer's; those of tn_host_blob; TN_INVALID_ARGUMENT: options;
 * TN_NOT_FOUND: no such format or file. */
TENON_API tn_status* tenon_load(tenon_session*, tn_str path, tn_str options,
                                const tn_cancel* TN_NULLABLE, tn_graph** out);
TENON_API tn_status* tenon_save(tenon_session*, const tn_graph*, tn_str path, tn_str options,
                                const tn_cancel* TN_NULLABLE);

/* A new graph; report gets the pass's JSON. Errors: any of the pass's, of the sink's; TN_NOT_FOUND: no such
 * pass; TN_INTERNAL: the pass left an edit open, or a graph that is not valid. */
TENON_API tn_status* tenon_apply(tenon_session*, const tn_graph*, tn_str pass_id,
                                 const tn_options* TN_NULLABLE, const tn_cancel* TN_NULLABLE,
                                 const tn_sink* TN_NULLABLE report, tn_graph** out);

/* Running. options, inputs, results and errors: as tn_host_eval.compile and .run. Errors of these: any. */
TENON_API tn_status* tenon_compile(tenon_session*, const tn_graph*, tn_str options, tn_plan** out);
TENON_API tn_status* tenon_run(tn_plan*, const DLTensor* const* in, uint64_t n_in,
                               const tn_outputs*, const tn_cancel* TN_NULLABLE);

/* One operator of any loaded or known plugin on dense CPU tensors: "Relu", "acme.Squircle" (the domain is
 * what stands before the last dot). in: NULL where an optional input is absent. attributes: a JSON
 * object or empty. n_out: how many results are wanted, 0: as many as the axes of the operator's row have,
 * and one where it has none: operators with several (TopK, Split) want their number.
 * Errors: any of the row's and the backends'; TN_NOT_FOUND: no plugin brings the operator;
 * TN_INVALID_ARGUMENT: attributes, or inputs that the operator does not take. */
TENON_API tn_status* tenon_op(tenon_session*, tn_str op, tn_str attributes,
                              const DLTensor* const TN_NULLABLE* in, uint64_t n_in, uint64_t n_out,
                              const tn_outputs*, const tn_cancel* TN_NULLABLE);

/* Plugins. The texts are the JSON that `tenon plugin list --json` prints, and `doctor` that of
 * `tenon plugin doctor --json`. Errors: any of the sink's. */
TENON_API tn_status* tenon_plugin_list(tenon_session*, const tn_sink*);
/* Every folder and file that was looked at, and why a plugin is not used. Errors: any of the sink's. */
TENON_API tn_status* tenon_plugin_doctor(tenon_session*, const tn_sink*);
/* Errors: any of the plugin's; TN_NOT_FOUND: no such file or id; TN_ALREADY_EXISTS: another plugin of this
 * id or with its operators is there; TN_FAILED_PRECONDITION: refused, with the reason;
 * TN_DATA_LOSS: its description cannot be read. */
TENON_API tn_status* tenon_plugin_load(tenon_session*, tn_str path_or_id);
/* References and bytes still held, by plugin: {"plugin": {"tensors", "graphs", "bytes", ...}}. Errors: any
 * of the sink's. */
TENON_API tn_status* tenon_plugin_balance(tenon_session*, const tn_sink*);

/* Stop requests. out: the caller's until free. Errors: none of its own. */
TENON_API tn_status* tenon_cancel_new(tenon_session*, tn_cancel** out);
TENON_API void tenon_cancel_request(tn_cancel*); /* async-signal-safe */
TENON_API void tenon_cancel_free(tn_cancel*);

/* Where log lines and progress go; NULL: nowhere. Called from any thread, one call at a time, so it must
 * not wait for another thread that uses the session. */
TENON_API void tenon_on_log(tenon_session*,
                            void(TN_CALL* TN_NULLABLE seen)(void* arg, uint32_t level, tn_str who,
                                                    tn_str message),
                            void* TN_NULLABLE arg);
/* done == UINT64_MAX: the task has ended. */
TENON_API void tenon_on_progress(tenon_session*,
                                 void(TN_CALL* TN_NULLABLE seen)(void* arg, uint64_t task, tn_str title,
                                                         uint64_t done, uint64_t total),
                                 void* TN_NULLABLE arg);
TENON_API void tenon_trace_start(tenon_session*);
/* Chrome's JSON. Errors: any of the sink's. */
TENON_API tn_status* tenon_trace_stop(tenon_session*, const tn_sink*);

#ifdef __cplusplus
}
#endif
#endif
