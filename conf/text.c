/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as texts, and the nearest word to a misspelt one. No state: everything
 * belongs to the caller. It knows no syntax.
 */
#include "conf/parse.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int
text_read_fd(int fd, char **ret, size_t *ret_bytes)
{
	size_t room = 4096, n = 0;
	char *text = malloc(room + 1), *larger;
	int error = -ENOMEM;

	while (text) {
		ssize_t got = read(fd, text + n, room - n);

		if (got < 0 && errno == EINTR)
			continue;
		error = got < 0 ? -errno : 0;
		if (got <= 0)
			break;
		n += (size_t)got;
		error = n > CONF_FILE_BYTES_MAX ? -EFBIG : -ENOMEM;
		if (error == -EFBIG)
			break;
		if (n < room)
			continue;
		larger = realloc(text, 2 * room + 1);
		if (!larger)
			break;
		text = larger;
		room *= 2;
	}
	if (error) {
		free(text);
		return error;
	}
	text[n] = '\0';
	*ret = text;
	*ret_bytes = n;
	return 0;
}

int
conf_text_read(const char *path, char **ret, size_t *ret_bytes)
{
	/* O_NONBLOCK: a FIFO in exports.d must not hold the start. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error;

	if (fd < 0)
		return -errno;
	error = text_read_fd(fd, ret, ret_bytes);
	close(fd);
	return error;
}

#define HINT_BYTES_MAX 32u

static unsigned
min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

static bool
differs(char a, char b)
{
	return tolower((unsigned char)a) != tolower((unsigned char)b);
}

unsigned
conf_text_distance(const char *a, const char *b)
{
	/* Three rows of the usual table: swaps look two rows back. */
	unsigned rows[3][HINT_BYTES_MAX + 1];
	unsigned *before = rows[0], *above = rows[1], *row = rows[2], *spare;
	size_t n = strlen(a), m = strlen(b);

	if (n > HINT_BYTES_MAX || m > HINT_BYTES_MAX)
		return UINT_MAX;
	for (size_t j = 0; j <= m; j++)
		above[j] = before[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			row[j] = min3(above[j] + 1, row[j - 1] + 1,
				      above[j - 1] +
					      differs(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && !differs(a[i - 1], b[j - 2]) &&
			    !differs(a[i - 2], b[j - 1]) &&
			    before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		spare = before;
		before = above;
		above = row;
		row = spare;
	}
	return above[m];
}

void
conf_text_hint_offer(struct conf_text_hint *h, const char *candidate)
{
	unsigned distance = conf_text_distance(h->word, candidate);
	size_t n = strlen(h->word);

	/* One slip in a short word, up to a third of a longer one. */
	if (distance > (n < 6 ? 1 : n / 3))
		return;
	if (h->best && h->distance <= distance)
		return;
	h->best = candidate;
	h->distance = distance;
}
