/* SPDX-License-Identifier: Apache-2.0
 * Tenon plugin ABI: the plain data that every other header uses.
 *
 * Rules that hold for every struct of the ABI (checked by abi/generate):
 *  R1 fixed-width types only: no size_t, long, bool, enum, bit-field, long double
 *  R2 every struct is a multiple of 8 bytes with all padding named
 *  R3 a struct that may grow starts with struct_size and grows at the end only. Whoever makes the
 *     memory sets struct_size with sizeof and zeroes the rest; the other side reads or writes no
 *     more than the smaller of the two sizes, and what it did not get counts as 0
 *  R4 arrays of growable structs are arrays of pointers
 *  R5 structs marked FROZEN never change; arrays of them are allowed
 *  R6 a NULL function pointer means "not provided"; only those marked TN_NULLABLE may be missing
 *  R7 no exception crosses a function; text is UTF-8 with a length, NUL is not required
 * Thread tags: [pure] no side effects, may run before init. [serial] never two such calls at
 * once on the same object. [any] any thread, concurrently. [finish] may be called from a driver's
 * callback thread: must not block.
 * Out parameters come last and hold NULL or 0 after a failure: the caller then owns nothing.
 * Units: sizes are in bytes where the name says bytes, times in nanoseconds (x_ns); other counts are
 * of elements. Ownership: what is handed in is borrowed for the call, and a `T** out` of an opaque type
 * is the caller's, who releases it; other pointers and texts that come out are borrowed, for as long
 * as the function says.
 * Errors: what a function states after "Errors:" is every code that it gives, besides those that any
 * function may give: TN_INVALID_ARGUMENT (see below), TN_RESOURCE_EXHAUSTED (no memory) and TN_INTERNAL
 * (a fault of Tenon's or of a plugin's). "any" means that codes of a plugin, or of a sink or tn_outputs
 * that the caller has given, are passed on.
 * A pointer may be NULL only where TN_NULLABLE says so, or where a count behind it is 0. The host
 * answers other NULLs, handles of another kind and sizes that cannot be with
 * TN_INVALID_ARGUMENT, or 0, and so it does handles that were released lately (the last 256 of
 * their kind); an older one must not be used. */
#ifndef TENON_BASE_H
#define TENON_BASE_H
#include <stddef.h>
#include <stdint.h>

#include "tenon/dlpack.h"

#define TN_ABI_MAJOR 0u /* 1 when two parties outside of the tree have used every role; abi/README.md */
#define TN_ABI_MINOR 2u /* the newest minor that these headers describe */
#define TN_ABI_OLDEST_MINOR 2u /* since then structs have only grown; what is older is built anew */
#if defined(_WIN32)
#define TN_CALL __cdecl
#define TN_EXPORT __declspec(dllexport)
#else
#define TN_CALL
#define TN_EXPORT __attribute__((visibility("default")))
#endif
#ifndef TN_NULLABLE
#define TN_NULLABLE /* behind a star: that pointer may be NULL */
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_str { /* FROZEN: borrowed text */
  const char* data;
  uint64_t len;
} tn_str;

typedef struct tn_bytes { /* FROZEN: borrowed bytes */
  const void* data;
  uint64_t len;
} tn_bytes;

/* Index and generation in one number: a stale id is an error, never a crash. 0 is never valid.
 * The ids of nodes and of values of one graph never coincide. */
typedef uint64_t tn_node_id;
typedef uint64_t tn_value_id;

/* Opaque objects: made and freed by the host, reference counted, tagged with their holder. */
typedef struct tn_status tn_status;   /* NULL means success                                  */
typedef struct tn_tensor tn_tensor;   /* memory with a shape and a type                      */
typedef struct tn_graph tn_graph;     /* a model, or the body of a control-flow node         */
typedef struct tn_edit tn_edit;       /* one transaction on a graph                          */
typedef struct tn_options tn_options; /* named values; validated when a component gets them  */
typedef struct tn_cancel tn_cancel;   /* a request to stop; NULL where nobody can ask        */
typedef struct tn_blob tn_blob;       /* random-access input: a file, mapped                 */
typedef struct tn_target tn_target;   /* output files that appear whole or not at all        */
typedef struct tn_plan tn_plan;       /* a graph compiled over backends                      */
typedef struct tn_component_ref tn_component_ref; /* a live component of some plugin         */
typedef struct tn_ctx tn_ctx;         /* the host's view of one plugin or embedding program  */

/* One value of an option, attribute or note. What it points at is borrowed. */
typedef struct tn_any { /* FROZEN */
  uint32_t tag;         /* TN_ANY_*; treat an unknown tag as absent */
  uint32_t reserved0;
  uint64_t len; /* elements, or bytes for text; 1 for scalars */
  union {
    int64_t i;
    double f;
    const void* p;
    uint64_t u;
  } v;
} tn_any;
#define TN_ANY_NONE 0u
#define TN_ANY_I64 1u
#define TN_ANY_F64 2u
#define TN_ANY_BOOL 3u       /* v.i is 0 or 1                                              */
#define TN_ANY_TEXT 4u       /* v.p -> len bytes                                           */
#define TN_ANY_I64S 5u       /* v.p -> int64_t[len]                                        */
#define TN_ANY_F64S 6u       /* v.p -> double[len]                                         */
#define TN_ANY_TEXTS 7u      /* v.p -> tn_str[len]                                         */
#define TN_ANY_TENSOR 8u     /* v.p -> tn_tensor                                           */
#define TN_ANY_DTYPE 9u      /* v.u: see TN_DTYPE                                          */
#define TN_ANY_GRAPH 10u     /* v.p -> tn_graph: a body of If, Loop, Scan                  */
#define TN_ANY_COMPONENT 11u /* v.p -> tn_component_ref, e.g. a data set given as option    */

/* Growing output is written to a sink, so that neither side frees the other's memory. data is borrowed
 * for the call. Errors of these: any; it ends the function that writes, and that function gives it. */
typedef struct tn_sink { /* FROZEN */
  void* ctx;
  tn_status*(TN_CALL* write)(void* ctx, const void* data, uint64_t len); /* [serial] */
} tn_sink;

/* Status codes have fixed numbers (gRPC's); read an unknown number as TN_UNKNOWN. */
#define TN_OK 0
#define TN_CANCELLED 1
#define TN_UNKNOWN 2
#define TN_INVALID_ARGUMENT 3
#define TN_NOT_FOUND 5
#define TN_ALREADY_EXISTS 6
#define TN_PERMISSION_DENIED 7
#define TN_RESOURCE_EXHAUSTED 8
#define TN_FAILED_PRECONDITION 9
#define TN_OUT_OF_RANGE 11
#define TN_UNIMPLEMENTED 12
#define TN_INTERNAL 13
#define TN_UNAVAILABLE 14
#define TN_DATA_LOSS 15

#ifdef __cplusplus
}
#endif
#endif
