/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory: what outlives the process. The verifiers of the exports
 * after a stop that synced everything (so that no client writes again after an
 * upgrade), besides the key of the handles (fh.c) and the list of mounts
 * (mount3.c). The file of verifiers is read once at start and removed then:
 * what a crash leaves behind must be a new verifier.
 */
#include "nfsd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#define VERIFIERS     "verifiers"
#define VERIFIERS_NEW "verifiers.new"

struct kept {
	uint64_t export_id, verifier;
};

struct state {
	int fd; /* the directory, locked */
	struct kept *kept;
	unsigned count;
};

static int
make_path(const char *dir)
{
	char path[4096];
	char *p;

	if (strlen(dir) >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, dir, strlen(dir) + 1);
	for (p = path + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

static bool
parse_kept(char *line, struct kept *k)
{
	char *end;

	k->export_id = strtoull(line, &end, 16);
	if (end != line + 16 || *end != ' ')
		return false;
	line = end + 1;
	k->verifier = strtoull(line, &end, 16);
	return end == line + 16 && *end == '\n';
}

/* From the first line on that is not as we write them, nothing is kept. */
static int
read_kept(struct state *s)
{
	struct kept k, *grown;
	char line[64];
	FILE *f;
	int fd = openat(s->fd, VERIFIERS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	f = fdopen(fd, "r");
	if (f == NULL) {
		close(fd);
		return -ENOMEM;
	}
	while (fgets(line, sizeof(line), f) != NULL && parse_kept(line, &k)) {
		grown = realloc(s->kept, (s->count + 1) * sizeof(k));
		if (grown == NULL)
			break;
		s->kept = grown;
		s->kept[s->count++] = k;
	}
	(void)fclose(f);
	return 0;
}

int
state_open(struct state **ret, const char *dir)
{
	struct state *s;
	int rc = make_path(dir);

	if (rc < 0)
		return rc;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = s->fd < 0 ? -errno : 0;
	/* Two servers with one state directory would undo each other's. */
	if (rc == 0 && flock(s->fd, LOCK_EX | LOCK_NB) < 0)
		rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (rc == 0)
		rc = read_kept(s);
	if (rc == 0 && unlinkat(s->fd, VERIFIERS, 0) < 0 && errno != ENOENT)
		rc = -errno;
	if (rc == 0 && fsync(s->fd) < 0)
		rc = -errno;
	if (rc < 0) {
		state_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void
state_close(struct state *s)
{
	if (s == NULL)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s->kept);
	free(s);
}

int
state_fd(const struct state *s)
{
	return s->fd;
}

uint64_t
state_verifier(uint64_t export_id, void *state)
{
	const struct state *s = state;
	uint64_t v;
	unsigned i;

	for (i = 0; i < s->count; i++) {
		if (s->kept[i].export_id != export_id)
			continue;
		v = s->kept[i].verifier;
		/* Once only: an export that is withdrawn and comes back while
		 * we run was not watched meanwhile. */
		s->kept[i].export_id = 0;
		return v;
	}
	while (getrandom(&v, sizeof(v), 0) != sizeof(v))
		;
	return v;
}

int
state_keep(struct state *s, const struct export_table *t)
{
	const struct export *e;
	const struct volume *v;
	FILE *f;
	unsigned i;
	int fd, rc = 0;

	fd = openat(s->fd, VERIFIERS_NEW,
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	f = fdopen(fd, "w");
	if (f == NULL) {
		close(fd);
		return -ENOMEM;
	}
	for (i = 0; i < export_table_count(t); i++) {
		e = export_table_at(t, i);
		v = e->rw != NULL ? e->rw : e->ro;
		(void)fprintf(f, "%016" PRIx64 " %016" PRIx64 "\n", e->id,
			      volume_verifier(v));
	}
	if (fflush(f) != 0 || fsync(fd) < 0)
		rc = -errno;
	if (fclose(f) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && renameat(s->fd, VERIFIERS_NEW, s->fd, VERIFIERS) < 0)
		rc = -errno;
	if (rc == 0 && fsync(s->fd) < 0)
		rc = -errno;
	return rc;
}
