/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content that nvnfsd-load writes and expects: 64-bit little-endian words,
 * each a function of its place and of a key that stands for file and
 * generation. Multiplying by an odd constant maps places to words one to one,
 * so that no two places of a file hold the same word.
 */
#include "tests/bench/pattern.h"

#include <endian.h>
#include <string.h>

#define BLOCK_BYTES 512u /* compared at a time */

static uint64_t
mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t
pattern_key(const char *file, uint64_t generation)
{
	uint64_t key = mix(generation + 0x9e3779b97f4a7c15u);

	while (*file)
		key = mix(key ^ (uint8_t)*file++);
	return key;
}

static uint64_t
word_at(uint64_t key, uint64_t index)
{
	return htole64((index + 1) * 0x9e3779b97f4a7c15u ^ key);
}

/* The bytes of the word at offset from there on, at most n. */
static uint32_t
word_part(uint64_t key, uint64_t offset, uint32_t n, uint8_t *ret)
{
	uint64_t word = word_at(key, offset / 8);
	uint32_t skip = (uint32_t)(offset % 8);
	uint32_t part = 8 - skip < n ? 8 - skip : n;

	memcpy(ret, (uint8_t *)&word + skip, part);
	return part;
}

/* Whole words, in a loop that the compiler makes vectors of. */
static void
words_fill(uint64_t key, uint64_t index, uint8_t *p, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++) {
		uint64_t word = word_at(key, index + i);

		memcpy(p + 8ul * i, &word, 8);
	}
}

/* The same for comparing: all bits that differ. */
static uint64_t
words_differ(uint64_t key, uint64_t index, const uint8_t *p, uint32_t words)
{
	uint64_t differ = 0;

	for (uint32_t i = 0; i < words; i++) {
		uint64_t word;

		memcpy(&word, p + 8ul * i, 8);
		differ |= word ^ word_at(key, index + i);
	}
	return differ;
}

void
pattern_fill(uint64_t key, uint64_t offset, void *buf, uint32_t n)
{
	uint8_t *p = buf, part[8];

	while (n > 0) {
		uint32_t m = n & ~7u;

		if (offset % 8 == 0 && m > 0) {
			words_fill(key, offset / 8, p, m / 8);
		} else {
			m = word_part(key, offset, n, part);
			memcpy(p, part, m);
		}
		p += m;
		offset += m;
		n -= m;
	}
}

uint32_t
pattern_check(uint64_t key, uint64_t offset, const void *buf, uint32_t n)
{
	const uint8_t *p = buf;
	uint8_t part[8];
	uint32_t at = 0, m, i;

	while (at < n) {
		m = (n - at) & ~7u;
		if (m > BLOCK_BYTES)
			m = BLOCK_BYTES;
		if ((offset + at) % 8 == 0 && m > 0 &&
		    words_differ(key, (offset + at) / 8, p + at, m / 8) == 0) {
			at += m;
			continue;
		}
		m = word_part(key, offset + at, n - at, part);
		for (i = 0; i < m; i++)
			if (p[at + i] != part[i])
				return at + i;
		at += m;
	}
	return n;
}
