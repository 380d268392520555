/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvnfsd-local: what a file system does with the same records without a server.
 * Threads write interleaved records of one size into one file with pwritev2,
 * under flags that are asked for, and at the end all of it is made stable. The
 * result is JSON in the form of nvnfsd-load's.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "conf/conf.h"
#include "tests/bench/pattern.h"

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080
#endif

#define WRITERS_MAX 256u
#define BLOCK       4096u

static struct {
	const char *file;
	uint64_t bytes, key;
	uint32_t record;
	unsigned writers;
	int flags, fd;
	bool direct, each; /* each: an fsync after every record */
	uint64_t *latency;
	uint64_t records;
} opt = { .bytes = 1u << 30, .record = 47008, .writers = 1 };

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static void *
writer(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	char *buf = aligned_alloc(BLOCK, (opt.record + BLOCK) & ~(BLOCK - 1));
	struct iovec v = { .iov_base = buf, .iov_len = opt.record };

	if (buf == NULL)
		die("memory");
	for (uint64_t i = me; i < opt.records; i += opt.writers) {
		uint64_t offset = i * opt.record, start;

		pattern_fill(opt.key, offset, buf, opt.record);
		start = now_ns();
		if (pwritev2(opt.fd, &v, 1, (off_t)offset, opt.flags) !=
		    (ssize_t)opt.record)
			die("pwritev2");
		if (opt.each && fsync(opt.fd) < 0)
			die("fsync");
		opt.latency[i] = now_ns() - start;
	}
	free(buf);
	return NULL;
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double
quantile_us(double share)
{
	uint64_t i = (uint64_t)((double)opt.records * share);

	if (i >= opt.records)
		i = opt.records - 1;
	return (double)opt.latency[i] / 1000;
}

static void
print_result(double seconds, double stable)
{
	uint64_t bytes = opt.records * opt.record;
	double mib = (double)bytes / (1 << 20);

	qsort(opt.latency, opt.records, sizeof(*opt.latency), compare);
	printf("{ \"op\": \"local\", \"good\": true, \"record_bytes\": %u,\n"
	       "  \"writers\": %u, \"bytes\": %llu, \"operations\": %llu,\n"
	       "  \"seconds\": %.6f, \"seconds_to_stable\": %.6f,\n"
	       "  \"mib_s\": %.6g, \"mib_s_to_stable\": %.6g,\n"
	       "  \"calls_s\": %.6g,\n"
	       "  \"latency_us\": { \"min\": %.6g, \"p5\": %.6g, \"p50\": %.6g,"
	       "\n    \"p99\": %.6g, \"p99_9\": %.6g, \"max\": %.6g } }\n",
	       opt.record, opt.writers, (unsigned long long)bytes,
	       (unsigned long long)opt.records, seconds, stable, mib / seconds,
	       mib / stable, (double)opt.records / seconds, quantile_us(0),
	       quantile_us(0.05), quantile_us(0.5), quantile_us(0.99),
	       quantile_us(0.999), quantile_us(1));
}

static void
run(void)
{
	int how = O_RDWR | O_CREAT | O_CLOEXEC | (opt.direct ? O_DIRECT : 0);
	pthread_t t[WRITERS_MAX];
	uint64_t start, written;

	opt.records = opt.bytes / opt.record;
	opt.latency = calloc(opt.records, sizeof(*opt.latency));
	opt.fd = open(opt.file, how, 0644);
	if (opt.fd < 0 || opt.latency == NULL || opt.records == 0)
		die(opt.file);
	start = now_ns();
	for (unsigned i = 0; i < opt.writers; i++) {
		errno = pthread_create(&t[i], NULL, writer,
				       (void *)(uintptr_t)i);
		if (errno != 0)
			die("thread");
	}
	for (unsigned i = 0; i < opt.writers; i++)
		(void)pthread_join(t[i], NULL);
	written = now_ns();
	if (fsync(opt.fd) < 0 || syncfs(opt.fd) < 0)
		die("sync");
	print_result((double)(written - start) / 1e9,
		     (double)(now_ns() - start) / 1e9);
}

static bool
option(int c, char *arg)
{
	uint64_t v = 0;

	if (strchr("srw", c) != NULL &&
	    (conf_size_parse(arg, &v) < 0 || v == 0))
		return false;
	switch (c) {
	case 's':
		opt.bytes = v;
		return true;
	case 'r':
		opt.record = (uint32_t)v;
		return v <= 64u << 20;
	case 'w':
		opt.writers = (unsigned)v;
		return v <= WRITERS_MAX;
	case 'u':
		opt.flags |= RWF_DONTCACHE;
		return true;
	case 'y':
		opt.flags |= RWF_DSYNC;
		return true;
	case 'd':
		return opt.direct = true;
	case 'e':
		return opt.each = true;
	default:
		return false;
	}
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "records", required_argument, NULL, 'r' },
		{ "writers", required_argument, NULL, 'w' },
		{ "dontcache", no_argument, NULL, 'u' },
		{ "dsync", no_argument, NULL, 'y' },
		{ "direct", no_argument, NULL, 'd' },
		{ "fsync", no_argument, NULL, 'e' },
		{ NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!option(c, optarg))
			goto usage;
	if (optind != argc - 1)
		goto usage;
	opt.file = argv[optind];
	opt.key = pattern_key("local", 1);
	run();
	return 0;
usage:
	(void)fputs("usage: nvnfsd-local [--size S] [--records S] "
		    "[--writers N] [--dontcache]\n"
		    "       [--dsync] [--direct] [--fsync] FILE\n",
		    stderr);
	return 2;
}
