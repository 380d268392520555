/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of mounts, for DUMP: who mounted what and did not say that he
 * unmounted it. It is a hint (RFC 1813, 5.2.2): clients crash, and nothing here
 * depends on it, so a failure to keep it fails no call.
 *
 * The server makes it at start and frees it at its end; workers use it under
 * its lock. It outlives the process in the state directory's file rmtab, a line
 * "HOST PATH" each, with \ooo for bytes that would make it ambiguous. The file
 * is replaced as a whole by rename, without a sync: after a power failure an
 * old or empty list is as good as a hint can be, and a mount must not wait for
 * a busy disk. One thread writes at a time, outside the lock; what changes
 * meanwhile it writes next, so that a storm of mounts costs one worker.
 */
#include "nfsd/nfsd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RMTAB     "rmtab"
#define RMTAB_NEW "rmtab.new"

struct mount {
	const char *path; /* behind host, in the same block */
	char host[];
};

struct mount_list {
	pthread_mutex_t lock;                 /* all below; a leaf */
	struct mount *mounts[MOUNT_LIST_MAX]; /* oldest first */
	unsigned count;
	bool dirty, saving;
	int state_fd;
};

/* Entries ------------------------------------------------------------- */

static struct mount *
entry_new(const char *host, const char *path)
{
	size_t host_bytes = strlen(host) + 1, path_bytes = strlen(path) + 1;
	struct mount *m = malloc(sizeof(*m) + host_bytes + path_bytes);

	if (!m)
		return NULL;
	memcpy(m->host, host, host_bytes);
	memcpy(m->host + host_bytes, path, path_bytes);
	m->path = m->host + host_bytes;
	return m;
}

static bool
entry_is(const struct mount *m, const char *host, const char *path)
{
	return strcmp(m->host, host) == 0 &&
	       (!path || strcmp(m->path, path) == 0);
}

/* True when the list changed. */
static bool
entry_add(struct mount_list *l, const char *host, const char *path)
{
	struct mount *m;

	for (unsigned i = 0; i < l->count; i++)
		if (entry_is(l->mounts[i], host, path))
			return false;
	m = entry_new(host, path);
	if (!m)
		return false;
	if (l->count == MOUNT_LIST_MAX) {
		free(l->mounts[0]);
		l->count--;
		memmove(l->mounts, l->mounts + 1,
			l->count * sizeof(struct mount *));
	}
	l->mounts[l->count++] = m;
	return true;
}

static bool
entry_remove(struct mount_list *l, const char *host, const char *path)
{
	unsigned kept = 0, before = l->count;

	for (unsigned i = 0; i < before; i++) {
		if (entry_is(l->mounts[i], host, path))
			free(l->mounts[i]);
		else
			l->mounts[kept++] = l->mounts[i];
	}
	l->count = kept;
	return kept != before;
}

/* The file ------------------------------------------------------------ */

static void
print_escaped(FILE *f, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c <= ' ' || c == '\\' || c >= 0x7f)
			(void)fprintf(f, "\\%03o", c);
		else
			(void)fputc(c, f);
	}
}

/* In place. False: not what print_escaped writes. */
static bool
unescape(char *s)
{
	char *out = s;
	unsigned c;

	for (; *s; s++) {
		if (*s != '\\') {
			*out++ = *s;
			continue;
		}
		c = 0;
		for (int digit = 0; digit < 3; digit++) {
			if (*++s < '0' || *s > '7')
				return false;
			c = c * 8 + (unsigned)(*s - '0');
		}
		if (c == 0 || c > 255)
			return false;
		*out++ = (char)c;
	}
	*out = '\0';
	return true;
}

static void
load_line(struct mount_list *l, char *line)
{
	char *path = strchr(line, ' ');

	line[strcspn(line, "\n")] = '\0';
	if (!path)
		return;
	*path++ = '\0';
	if (!unescape(line) || !unescape(path))
		return;
	if (*line && *path == '/' && strlen(line) <= MNT3_NAMLEN &&
	    strlen(path) <= MNT3_PATHLEN)
		(void)entry_add(l, line, path);
}

static void
list_load(struct mount_list *l)
{
	int fd = openat(l->state_fd, RMTAB,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	size_t room = 0;
	char *line = NULL;
	FILE *f;

	if (fd < 0)
		return;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return;
	}
	while (getline(&line, &room, f) >= 0)
		load_line(l, line);
	free(line);
	(void)fclose(f);
}

/* The file's text, malloc'd; NULL when there is no memory for it. */
static char *
list_text(const struct mount_list *l, size_t *ret_bytes)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_bytes);

	if (!f)
		return NULL;
	for (unsigned i = 0; i < l->count; i++) {
		print_escaped(f, l->mounts[i]->host);
		(void)fputc(' ', f);
		print_escaped(f, l->mounts[i]->path);
		(void)fputc('\n', f);
	}
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static int
write_all(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, text, n);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			text += done;
			n -= (size_t)done;
		}
	}
	return 0;
}

static int
file_replace(int dir_fd, const char *text, size_t n)
{
	int fd = openat(dir_fd, RMTAB_NEW,
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0600);
	int error;

	if (fd < 0)
		return -errno;
	error = write_all(fd, text, n);
	if (close(fd) < 0 && error == 0)
		error = -errno;
	if (error == 0 && renameat(dir_fd, RMTAB_NEW, dir_fd, RMTAB) < 0)
		error = -errno;
	if (error < 0)
		(void)unlinkat(dir_fd, RMTAB_NEW, 0);
	return error;
}

/* With the lock, which is given up while the file is written. */
static void
list_save(struct mount_list *l)
{
	static struct log_limit limit;
	size_t n;
	char *text;
	int error;

	if (l->state_fd < 0)
		return;
	l->dirty = true;
	if (l->saving)
		return;
	l->saving = true;
	while (l->dirty) {
		l->dirty = false;
		text = list_text(l, &n);
		pthread_mutex_unlock(&l->lock);
		error = text ? file_replace(l->state_fd, text, n) : -ENOMEM;
		free(text);
		if (error < 0)
			log_limited(&limit, LOG_WARNING_,
				    "cannot keep the list of mounts in the "
				    "state directory: %s",
				    strerror(-error));
		pthread_mutex_lock(&l->lock);
	}
	l->saving = false;
}

/* What the procedures use --------------------------------------------- */

int
mount_list_new(struct mount_list **ret, int state_fd)
{
	struct mount_list *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	pthread_mutex_init(&l->lock, NULL);
	l->state_fd = state_fd;
	if (state_fd >= 0)
		list_load(l);
	*ret = l;
	return 0;
}

void
mount_list_free(struct mount_list *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < l->count; i++)
		free(l->mounts[i]);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void
mount_list_add(struct mount_list *l, const char *host, const char *path)
{
	pthread_mutex_lock(&l->lock);
	if (entry_add(l, host, path))
		list_save(l);
	pthread_mutex_unlock(&l->lock);
}

void
mount_list_remove(struct mount_list *l, const char *host, const char *path)
{
	pthread_mutex_lock(&l->lock);
	if (entry_remove(l, host, path))
		list_save(l);
	pthread_mutex_unlock(&l->lock);
}

bool
mount_list_encode(struct mount_list *l, XDR *x)
{
	bool ok = true;

	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; ok && i < l->count; i++)
		ok = mount3_put_mount(x, l->mounts[i]->host,
				      l->mounts[i]->path);
	pthread_mutex_unlock(&l->lock);
	return ok && mount3_put_end(x);
}
