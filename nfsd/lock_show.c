/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the lock manager has, for people: a row for each lock, waiter and SHARE,
 * and numbers. It changes nothing.
 */
#include "nfsd/lock_manager.h"

#include "nfsd/ctl.h"
#include "nfsd/proc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX 4096u /* told at once; of the rest, how many they are */

struct rows {
	struct locks *l;
	struct json_object *list;
	uint64_t now_ns, left_out;
};

/* As text whatever a client sent: JSON is UTF-8, a terminal is not to be
 * fooled.
 */
static void
put_clean(struct json_object *o, const char *name, const char *text)
{
	char clean[LM_MAXSTRLEN + 1];
	size_t i;

	for (i = 0; text[i] != '\0' && i < LM_MAXSTRLEN; i++)
		clean[i] =
			(char)(text[i] < ' ' || text[i] > '~' ? '?' : text[i]);
	clean[i] = '\0';
	ctl_put_text(o, name, clean);
}

/* Below the export; of an object that is gone " (deleted)" is behind it. */
static void
put_path(struct json_object *o, const struct lock_file *f)
{
	char link[NAME_FD_PATH_BYTES], path[PATH_MAX];
	ssize_t n;

	name_fd_path(link, f->fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return;
	path[n] = '\0';
	put_clean(o, "path", path);
}

/* NULL: there are enough. */
static struct json_object *
row_new(struct rows *r, const struct lock_file *f, const struct lock_owner *o,
	const char *state)
{
	const struct export *e = export_find(r->l->exports, f->fh.export_id);
	char text[LOCK_ADDRESS_TEXT_BYTES];
	struct json_object *row;

	if (json_object_array_length(r->list) >= ROWS_MAX) {
		r->left_out++;
		return NULL;
	}
	row = json_object_new_object();
	lock_address_text(text, &o->peer->key);
	ctl_put_text(row, "client", text);
	put_clean(row, "name", o->name);
	ctl_put(row, "svid", o->svid);
	if (e)
		ctl_put_text(row, "export", e->path);
	put_path(row, f);
	ctl_put_text(row, "state", state);
	json_object_array_add(r->list, row);
	return row;
}

static void
put_range(struct rows *r, struct json_object *row, const struct lock_span *span,
	  bool exclusive, uint64_t since_ns)
{
	ctl_put_text(row, "kind", exclusive ? "exclusive" : "shared");
	ctl_put(row, "offset", span->first);
	/* 0: to the end, as in the protocol. */
	ctl_put(row, "length",
		span->last == LOCK_LAST_MAX ? 0 : span->last - span->first + 1);
	ctl_put(row, "age_ns", r->now_ns - since_ns);
}

static void
add_waits(struct rows *r, const struct lock_file *f,
	  const struct lock_waits *list, const char *state)
{
	const struct lock_wait *w;
	struct json_object *row;

	TAILQ_FOREACH (w, list, file_link) {
		row = row_new(r, f, w->owner, state);
		if (row)
			put_range(r, row, &w->span, w->exclusive, w->since_ns);
	}
}

static void
add_shares(struct rows *r, const struct lock_file *f)
{
	static const char *const names[] = { "none", "read", "write", "both" };
	const struct lock_share *s;
	struct json_object *row;

	LIST_FOREACH (s, &f->shares, link) {
		row = row_new(r, f, s->owner, "share");
		if (!row)
			continue;
		ctl_put_text(row, "access", names[s->access & FSA_RW]);
		ctl_put_text(row, "denies", names[s->mode & FSM_DRW]);
		ctl_put(row, "age_ns", r->now_ns - s->since_ns);
	}
}

static void
add_file(struct locks *l, struct lock_file *f, void *arg)
{
	const struct lock_range *range;
	struct json_object *row;
	struct rows *r = arg;

	TAILQ_FOREACH (range, &f->table.ranges, link) {
		row = row_new(r, f, range->owner, "held");
		if (row)
			put_range(r, row, &range->span, range->exclusive,
				  range->since_ns);
	}
	add_waits(r, f, &f->grants, "granting");
	add_waits(r, f, &f->waits, "waiting");
	add_shares(r, f);
}

struct json_object *
locks_json(struct locks *l)
{
	struct rows r = { .l = l,
			  .list = json_object_new_array(),
			  .now_ns = monotonic_ns() };
	struct json_object *o = json_object_new_object();

	locks_enter(l);
	ctl_put_bool(o, "grace", lock_grace_holds(l));
	lock_files_each(l, add_file, &r);
	locks_leave(l);
	json_object_object_add(o, "locks", r.list);
	ctl_put(o, "left_out", r.left_out);
	return o;
}

void
locks_count(struct locks *l, struct locks_counters *ret)
{
	locks_enter(l);
	*ret = l->count;
	ret->held = l->ranges;
	ret->waiting = l->waits - lock_grants_count(l);
	ret->shares = l->shares;
	ret->hosts = lock_peers_count(l);
	ret->files = lock_files_count(l);
	locks_leave(l);
}
