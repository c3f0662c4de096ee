/* SPDX-License-Identifier: Apache-2.0 */
/* Axis signatures of operators, parsed. The language and its meaning: abi/axes.md.
 *   MatMul "B* m k, B* k n -> B* m n"
 *   Conv   "n (g c) s.., (g o) c k.., (g o)? -> n (g o) s'.. ; g = group"
 * Flat tables with indices, so that any language can walk them: operands (inputs first, then
 * outputs) own a range of terms; a term names a label; names are ranges of `text`. */
#ifndef TENON_AXES_H
#define TENON_AXES_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A label is one axis, or a run of axes whose length depends on the rank. */
typedef struct tn_axes_label {      /* FROZEN */
  uint32_t name_offset, name_len;   /* in tn_axes.text; primes and marks are not part of it */
  uint32_t kind;                    /* TN_AXES_SINGLE, TN_AXES_RUN, TN_AXES_BATCH */
  uint32_t bind_offset, bind_len;   /* the attribute named after ';', bind_len 0 if none: the size
                                       of a SINGLE, else the length of the run; a negative
                                       length has the rank of input 0 added */
  uint32_t reserved0;
} tn_axes_label;
#define TN_AXES_SINGLE 0u           /* "k": one axis */
#define TN_AXES_RUN    1u           /* "s..": zero or more axes, same sizes at each occurrence */
#define TN_AXES_BATCH  2u           /* "B*": zero or more axes that broadcast, aligned right */

/* Terms of one operand come in the order of its axes. The factors of a grouped axis, "(g c)",
 * are neighbours with the same `dim`; the first factor varies slowest. */
typedef struct tn_axes_term {       /* FROZEN */
  uint32_t label;                   /* index, or TN_AXES_NO_LABEL for a literal size */
  uint32_t flags;                   /* TN_AXES_TERM_* */
  uint32_t dim;                     /* which item of the operand, from 0 */
  uint32_t column;                  /* where it stands in `text`, from 1: for messages */
  uint64_t size;                    /* the literal; else 0 */
} tn_axes_term;
#define TN_AXES_NO_LABEL 0xffffffffu
#define TN_AXES_TERM_RUN     1u     /* ".." : as the label's kind, repeated for walkers */
#define TN_AXES_TERM_BATCH   2u     /* "*" */
#define TN_AXES_TERM_REDUCED 4u     /* "~" : the operator mixes elements along this axis */
#define TN_AXES_TERM_PRIMED  8u     /* "'" : the size differs from the input's; ask shape */
#define TN_AXES_TERM_GROUPED 16u    /* one factor of an axis in ( ) */

typedef struct tn_axes_operand {    /* FROZEN */
  uint32_t first_term, n_terms;     /* n_terms 0: rank 0, written [] */
  uint32_t n_dims;                  /* items: a group counts once, a run counts once */
  uint32_t flags;                   /* TN_AXES_OPERAND_* */
} tn_axes_operand;
#define TN_AXES_OPERAND_OPTIONAL 1u /* "?" : may be absent */
#define TN_AXES_OPERAND_REPEATED 2u /* stands for all inputs: the pointwise form "*" */

typedef struct tn_axes {            /* FROZEN */
  const tn_axes_label* labels;      /* [n_labels], in order of first use */
  const tn_axes_operand* operands;  /* [n_inputs + n_outputs] */
  const tn_axes_term* terms;        /* [n_terms] */
  const char* text;                 /* canonical text, UTF-8, not NUL-terminated */
  uint64_t text_len;
  uint32_t n_labels, n_inputs, n_outputs, n_terms;
} tn_axes;

#ifdef __cplusplus
}
#endif
#endif
