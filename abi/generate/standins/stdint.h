/* SPDX-License-Identifier: Apache-2.0
 * What the ABI takes from <stdint.h>, in plain C for the parser; never compiled. */
#ifndef TENON_STANDIN_STDINT_H
#define TENON_STANDIN_STDINT_H
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
#define UINT64_MAX 18446744073709551615u
#define INT64_MAX 9223372036854775807
#endif
