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

void
pattern_fill(uint64_t key, uint64_t offset, void *buf, uint32_t n)
{
	uint8_t *p = buf;
	uint64_t index = offset / 8, word;
	uint32_t skip = (uint32_t)(offset % 8), part;

	for (; n > 0; n -= part, p += part, skip = 0) {
		word = word_at(key, index++);
		part = 8 - skip < n ? 8 - skip : n;
		memcpy(p, (uint8_t *)&word + skip, part);
	}
}

uint32_t
pattern_check(uint64_t key, uint64_t offset, const void *buf, uint32_t n)
{
	const uint8_t *p = buf;
	uint64_t index = offset / 8, word;
	uint32_t skip = (uint32_t)(offset % 8), part, i, at = 0;

	for (; at < n; at += part, skip = 0) {
		word = word_at(key, index++);
		part = 8 - skip < n - at ? 8 - skip : n - at;
		if (memcmp(p + at, (uint8_t *)&word + skip, part) == 0)
			continue;
		for (i = 0; p[at + i] == ((uint8_t *)&word)[skip + i]; i++)
			;
		return at + i;
	}
	return n;
}
