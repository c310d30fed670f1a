/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes of all that a program allocates are sampled: each with a probability of 1 in rate,
 * whatever the ones before it. So a block of s bytes is sampled with a probability of
 * 1 - exp(-s/rate), and stands for s / (1 - exp(-s/rate)) bytes. In integers alone: the program's
 * floating-point state is its own. */
#ifndef NODE_AGENT_MALLOC_POISSON_H
#define NODE_AGENT_MALLOC_POISSON_H

#include <stdint.h>

enum { POISSON_RATE_DEFAULT = 512 << 10 };

/* Advances *state, which must not be 0 (xorshift64*; Vigna, "An experimental exploration of
 * Marsaglia's xorshift generators, scrambled", 2016). */
uint64_t poisson_random(uint64_t *state);

/* How many bytes go by before the next one that is sampled, of a number from all 64-bit ones. */
uint64_t poisson_distance(uint64_t random, uint64_t rate);

/* The bytes that a sampled block of size bytes stands for; size and rate at least 1. */
uint64_t poisson_weight(uint64_t size, uint64_t rate);

#endif
