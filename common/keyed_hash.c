/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithm: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012. */
#include "common/keyed_hash.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

static pthread_once_t is_made = PTHREAD_ONCE_INIT;
static uint64_t secret[2];

/* Where the system call is forbidden: 16 random bytes that the kernel gave the process. */
static void make_secret(void)
{
	const void *given = (const void *)getauxval(AT_RANDOM);

	if (getrandom(secret, sizeof secret, 0) != sizeof secret && given)
		memcpy(secret, given, sizeof secret);
}

static uint64_t rotate(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static void mix(uint64_t state[4], unsigned rounds)
{
	while (rounds--) {
		state[0] += state[1];
		state[2] += state[3];
		state[1] = rotate(state[1], 13) ^ state[0];
		state[3] = rotate(state[3], 16) ^ state[2];
		state[0] = rotate(state[0], 32) + state[3];
		state[2] += state[1];
		state[1] = rotate(state[1], 17) ^ state[2];
		state[3] = rotate(state[3], 21) ^ state[0];
		state[2] = rotate(state[2], 32);
	}
}

static void add(uint64_t state[4], uint64_t word)
{
	state[3] ^= word;
	mix(state, 2);
	state[0] ^= word;
}

uint64_t keyed_hash_of(const uint64_t key[2], const void *bytes, size_t length, uint64_t before)
{
	uint64_t state[4] = {key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull,
			     key[0] ^ 0x6c7967656e657261ull, key[1] ^ 0x7465646279746573ull};
	const uint8_t *at = bytes;
	size_t left = length;
	uint64_t word;

	add(state, before);
	for (; left >= sizeof word; at += sizeof word, left -= sizeof word) {
		memcpy(&word, at, sizeof word);
		add(state, le64toh(word));
	}
	word = (uint64_t)(length + sizeof word) << 56;
	for (size_t i = 0; i < left; i++)
		word |= (uint64_t)at[i] << (8 * i);
	add(state, word);
	state[2] ^= 0xff;
	mix(state, 4);
	return state[0] ^ state[1] ^ state[2] ^ state[3];
}

uint64_t keyed_hash(const void *bytes, size_t length, uint64_t before)
{
	pthread_once(&is_made, make_secret);
	return keyed_hash_of(secret, bytes, length, before);
}
