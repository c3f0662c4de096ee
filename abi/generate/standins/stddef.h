/* SPDX-License-Identifier: Apache-2.0
 * Empty for the parser: the ABI's rules forbid size_t, and NULL is not needed to declare. */
