/* SPDX-License-Identifier: Apache-2.0 */
/* See histogram.h. */
#include "tests/bench/histogram.h"

/* Values below 2^HISTOGRAM_BITS have a class each; above, the highest bit says
 * the power and the next HISTOGRAM_BITS the class in it. */
static unsigned
class_of(uint64_t ns)
{
	unsigned power;

	if (ns < 1u << HISTOGRAM_BITS)
		return (unsigned)ns;
	power = 63 - HISTOGRAM_BITS - (unsigned)__builtin_clzll(ns);
	return (power << HISTOGRAM_BITS) + (unsigned)(ns >> power);
}

/* The highest value of a class. */
static uint64_t
class_end(unsigned class)
{
	unsigned power = class >> HISTOGRAM_BITS;
	uint64_t low = class & ((1u << HISTOGRAM_BITS) - 1);

	if (power == 0)
		return class;
	power--;
	return ((low + (1u << HISTOGRAM_BITS) + 1) << power) - 1;
}

void
histogram_add(struct histogram *t, uint64_t ns)
{
	t->classes[class_of(ns)]++;
	t->sum_ns += ns;
	if (t->count++ == 0 || ns < t->min_ns)
		t->min_ns = ns;
	if (ns > t->max_ns)
		t->max_ns = ns;
}

uint64_t
histogram_quantile(const struct histogram *t, double share)
{
	uint64_t seen = 0, want = (uint64_t)((double)t->count * share);
	uint64_t end;

	if (want == 0)
		want = 1;
	for (unsigned i = 0; i < HISTOGRAM_CLASSES; i++) {
		seen += t->classes[i];
		if (t->classes[i] == 0 || seen < want)
			continue;
		end = class_end(i);
		return end < t->max_ns ? end : t->max_ns;
	}
	return 0;
}
