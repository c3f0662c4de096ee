/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar expressions of pointwise operators, after parsing and binding to one node.
 * The language, with types, NaN and integer rules and derivatives: abi/expr.md.
 * A program is a flat list of nodes in single assignment: each operand is the index of an
 * earlier node, the result is the last node. The host makes it; whoever asked only reads. */
#ifndef TENON_EXPR_H
#define TENON_EXPR_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Operands a, b, c are node indices, in the order of the arguments; unused ones are 0. */
typedef struct tn_expr_node {       /* FROZEN */
  uint32_t op;                      /* TN_EXPR_*; unknown number -> decline the whole program */
  uint32_t a, b, c;                 /* TN_EXPR_INPUT: a is the input's position in the node */
  double   imm;                     /* TN_EXPR_CONST: the value; else 0 */
} tn_expr_node;

typedef struct tn_expr_program {    /* FROZEN */
  const tn_expr_node* nodes;        /* [count]; lives as long as what handed it out says */
  uint64_t count;                   /* >= 1 */
  uint32_t input_count;             /* inputs of the operator's node, absent ones included */
  uint32_t domain;                  /* TN_EXPR_DOMAIN_*: what the numbers are */
  uint32_t bits;                    /* integers wrap to this width after each node; 0 for floats */
  uint32_t reserved0;
} tn_expr_program;

/* Numbers are frozen; the list is append-only. */
#define TN_EXPR_DOMAIN_FLOAT 0u     /* the float type's own precision; the oracle uses double */
#define TN_EXPR_DOMAIN_INT   1u     /* int64, wrapped to bits, sign-extended */
#define TN_EXPR_DOMAIN_UINT  2u     /* uint64, wrapped to bits; bool has bits == 1 */

/* leaves */
#define TN_EXPR_CONST 0u
#define TN_EXPR_INPUT 1u

/* one operand */
#define TN_EXPR_NEG        16u
#define TN_EXPR_ABS        17u
#define TN_EXPR_SIGN       18u
#define TN_EXPR_EXP        19u
#define TN_EXPR_EXPM1      20u
#define TN_EXPR_LOG        21u
#define TN_EXPR_LOG1P      22u
#define TN_EXPR_SQRT       23u
#define TN_EXPR_RSQRT      24u
#define TN_EXPR_RECIPROCAL 25u
#define TN_EXPR_ERF        26u
#define TN_EXPR_TANH       27u
#define TN_EXPR_SIGMOID    28u
#define TN_EXPR_SIN        29u
#define TN_EXPR_COS        30u
#define TN_EXPR_TAN        31u
#define TN_EXPR_ASIN       32u
#define TN_EXPR_ACOS       33u
#define TN_EXPR_ATAN       34u
#define TN_EXPR_SINH       35u
#define TN_EXPR_COSH       36u
#define TN_EXPR_ASINH      37u
#define TN_EXPR_ACOSH      38u
#define TN_EXPR_ATANH      39u
#define TN_EXPR_FLOOR      40u
#define TN_EXPR_CEIL       41u
#define TN_EXPR_ROUND      42u      /* half to even */
#define TN_EXPR_TRUNC      43u
#define TN_EXPR_NOT        44u      /* logical: 1 when the operand is 0 */
#define TN_EXPR_ISNAN      45u
#define TN_EXPR_ISINF      46u
#define TN_EXPR_BITNOT     47u      /* integers only */

/* two operands */
#define TN_EXPR_ADD    64u
#define TN_EXPR_SUB    65u
#define TN_EXPR_MUL    66u
#define TN_EXPR_DIV    67u          /* integers: truncates toward zero; x/0 is 0 */
#define TN_EXPR_POW    68u
#define TN_EXPR_MIN    69u          /* NaN if either operand is NaN */
#define TN_EXPR_MAX    70u
#define TN_EXPR_MOD    71u          /* sign of the divisor */
#define TN_EXPR_FMOD   72u          /* sign of the dividend */
#define TN_EXPR_ATAN2  73u
#define TN_EXPR_EQ     74u          /* comparisons and logic give 0 or 1 */
#define TN_EXPR_NE     75u
#define TN_EXPR_LT     76u
#define TN_EXPR_LE     77u
#define TN_EXPR_GT     78u
#define TN_EXPR_GE     79u
#define TN_EXPR_AND    80u
#define TN_EXPR_OR     81u
#define TN_EXPR_XOR    82u
#define TN_EXPR_BITAND 83u          /* bit operations and shifts: integers only */
#define TN_EXPR_BITOR  84u
#define TN_EXPR_BITXOR 85u
#define TN_EXPR_SHL    86u          /* a count outside 0..bits-1 shifts everything out */
#define TN_EXPR_SHR    87u          /* INT fills with the sign, UINT with 0 */

/* three operands */
#define TN_EXPR_SELECT 128u         /* a is not 0 (NaN counts as not 0) ? b : c */

#ifdef __cplusplus
}
#endif
#endif
