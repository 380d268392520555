/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Under whose name the server acts, over the wire: however it was started it
 * keeps a stranger out; what is made belongs to its maker and inherits what a
 * local file would; setuid and setgid bits go when others write; groups are the
 * caller's, or with manage-gids this machine's; ports and client addresses
 * count.
 */
#include "oracle.h"
#include "site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DAEMON_UID 990u

static const char *engine = "uring", *binary;

static void
expect_by(struct site *s, unsigned uid, struct question q, int status)
{
	ask_as(s->r, uid, uid);
	site_expect(s, q, status);
	ask_as(s->r, 0, 0);
}

/* How it is started
 * ------------------------------------------------------------
 */

/* Those of its unit, but for what some machines give nobody. */
#define CAPS                                                                   \
	"+dac_read_search,+sys_admin,+setuid,+setgid,+chown,+dac_override,"    \
	"+fowner,+fsetid,+mknod,+net_bind_service"

static const char *const ways[] = {
	"",
	/* As its unit does. */
	"setpriv --bounding-set=-all," CAPS " --inh-caps=-all --no-new-privs",
	/* As another user, with the capabilities that it needs. */
	"setpriv --reuid 990 --regid 990 --clear-groups --inh-caps=-all," CAPS
	" --ambient-caps=-all," CAPS,
	/* And with those of a group besides. */
	"setpriv --reuid 990 --regid 990 --groups 1000,2000 "
	"--inh-caps=-all," CAPS " --ambient-caps=-all," CAPS,
};

/* The server by way of a command, in a file that takes its place. */
static void
start_by(struct site *s, const char *command)
{
	char path[400];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/start", s->h->dir);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fprintf(f, "#!/bin/sh\nexec %s %s \"$@\"\n", command,
			    binary) > 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(setenv("NVNFSD", path, 1), 0);
	site_start(s);
	assert_int_equal(setenv("NVNFSD", binary, 1), 0);
}

/* By a stranger, who has nothing to do with the file nor with what is in its
 * directory of the same owner. */
static void
check_stranger(struct site *s, unsigned owner)
{
	struct raw_fh file, dir, in;
	char name[32], inside[64];

	(void)snprintf(name, sizeof(name), "dir%u", owner);
	assert_int_equal(mkdir(site_path(s, name), 0755), 0);
	(void)snprintf(inside, sizeof(inside), "%s/in", name);
	site_file(s, inside, 0600, owner, owner, "secret");
	assert_int_equal(chown(site_path(s, name), owner, owner), 0);
	dir = site_lookup(s, name);
	assert_int_equal(raw_lookup(s->r, &dir, "in", &in), NFS3_OK);
	(void)snprintf(name, sizeof(name), "file%u", owner);
	site_file(s, name, 0600, owner, owner, "secret");
	file = site_lookup(s, name);
	const struct {
		struct question q;
		int status;
	} row[] = {
		{ ask_read(&file, 0, 9), NFS3ERR_ACCES },
		{ ask_write(&file, 0, "x", 1, UNSTABLE), NFS3ERR_ACCES },
		{ ask_write(&file, 0, "x", 1, FILE_SYNC), NFS3ERR_ACCES },
		{ ask_commit(&file), NFS3ERR_ACCES },
		{ ask_setattr(&file, ask_size(0), NULL), NFS3ERR_ACCES },
		{ ask_setattr(&file, ask_mode(0777), NULL), NFS3ERR_PERM },
		{ ask_setattr(&file, ask_owner(1003, -1), NULL), NFS3ERR_PERM },
		{ ask_create(&s->root, name, UNCHECKED, ask_size(0)),
		  NFS3ERR_ACCES },
		{ ask_create(&dir, "x", GUARDED, ask_mode(0666)),
		  NFS3ERR_ACCES },
		{ ask_mkdir(&dir, "x", ask_mode(0777)), NFS3ERR_ACCES },
		{ ask_symlink(&dir, "x", "y"), NFS3ERR_ACCES },
		{ ask_remove(&dir, "in"), NFS3ERR_ACCES },
		{ ask_rename(&dir, "in", &s->root, "y"), NFS3ERR_ACCES },
	};
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		expect_by(s, 1003, row[i].q, row[i].status);
	/* ACCES, or PERM where the kernel protects hard links. */
	ask_as(s->r, 1003, 1003);
	assert_int_not_equal(ask(s->r, ask_link(&in, &dir, "x"), NULL),
			     NFS3_OK);
	/* Once it is warm, and its owner has been served. */
	expect_by(s, owner, ask_read(&file, 0, 9), NFS3_OK);
	expect_by(s, owner, ask_write(&file, 0, "S", 1, UNSTABLE), NFS3_OK);
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		expect_by(s, 1003, row[i].q, row[i].status);
	/* Not to be searched either. */
	expect_by(s, owner, ask_setattr(&dir, ask_mode(0700), NULL), NFS3_OK);
	expect_by(s, 1003, ask_lookup(&dir, "in"), NFS3ERR_ACCES);
	expect_by(s, 1003, ask_readdir(&dir, 0, 4096), NFS3ERR_ACCES);
	assert_int_equal(
		harness_sh("test \"$(cat %s)\" = Secret", site_path(s, name)),
		0);
}

/* What root and others make is theirs, and nobody makes anything as the
 * server. */
static void
check_makers(struct site *s)
{
	struct answer a;

	ask_as(s->r, 1003, 1004);
	assert_int_equal(
		ask(s->r, ask_create(&s->root, "his", GUARDED, ask_mode(0600)),
		    &a),
		NFS3_OK);
	ask_as(s->r, 0, 0);
	assert_int_equal(ask_attr(s->r, &a.fh).uid, 1003);
	assert_int_equal(ask_attr(s->r, &a.fh).gid, 1004);
	site_expect(s, ask_setattr(&a.fh, ask_owner(5, 6), NULL), NFS3_OK);
	assert_int_equal(ask_attr(s->r, &a.fh).uid, 5);
	site_expect(s, ask_read(&a.fh, 0, 1), NFS3_OK);
	site_expect(s, ask_mknod(&s->root, "dev", NF3CHR, ask_mode(0600), 1, 3),
		    NFS3_OK);
	expect_by(s, DAEMON_UID,
		  ask_mknod(&s->root, "dev2", NF3CHR, ask_mode(0600), 1, 3),
		  NFS3ERR_PERM);
}

static void
test_ways(void **state)
{
	struct site *s;
	unsigned i;

	if (!oracle_there())
		skip();
	for (i = 0; i < 2 * sizeof(ways) / sizeof(ways[0]); i++) {
		s = site_prepare(i % 2 == 0 ? "uring" : "threads", NULL, NULL);
		start_by(s, ways[i / 2]);
		check_stranger(s, 1000);
		check_stranger(s, 0);
		check_stranger(s, DAEMON_UID);
		check_makers(s);
		site_free(s);
	}
}

/* Callers by turns, many at a time: nobody gets another's name. */
static void
test_turns(void **state)
{
	struct site *s =
		site_new(engine, "rw,async,no_root_squash,insecure", NULL);
	struct raw *r[2] = { s->r, raw_connect(s->h->port) };
	struct answer a;
	unsigned i, c, round;
	char name[64][32];
	uint32_t uid[64];

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 64; i++) {
			struct question q;

			c = i % 2;
			uid[i] = i % 5 == 0 ? 0 : 2000 + (i * 7 + round) % 9;
			(void)snprintf(name[i], sizeof(name[i]), "n%u-%u",
				       round, i);
			q = ask_create(&s->root, name[i], GUARDED,
				       ask_mode(0600));
			ask_as(r[c], uid[i], uid[i] + 1);
			r[c]->xid = (round * 64 + i) * 4 + 4;
			(void)ask_send(r[c], &q);
		}
		for (i = 0; i < 64; i++) {
			assert_true(raw_receive(r[i % 2]));
			ask_take(r[i % 2], NFS3_CREATE, &a);
			assert_int_equal(a.status, NFS3_OK);
			c = r[i % 2]->reply_xid / 4 - 1 - round * 64;
			assert_true(c < 64);
			assert_int_equal(a.attr.post_op_attr_u.attributes.uid,
					 uid[c]);
			assert_int_equal(a.attr.post_op_attr_u.attributes.gid,
					 uid[c] + 1);
		}
	}
	ask_as(s->r, 0, 0);
	raw_close(r[1]);
	site_free(s);
}

/* What is made ----------------------------------------------------------------
 */

/* The ACL of one is the other's, or neither has one. */
static void
expect_same_acl(struct site *s, const char *one, const char *two,
		const char *xattr)
{
	uint8_t a[500], b[500];
	ssize_t n = getxattr(site_path(s, one), xattr, a, sizeof(a));
	ssize_t m = getxattr(site_path(s, two), xattr, b, sizeof(b));

	assert_int_equal(n, m);
	if (n > 0)
		assert_memory_equal(a, b, (size_t)n);
}

/* Made by a client it is what it would be made by the same person here. */
static void
check_made(struct site *s, const struct person *p, unsigned mode, bool is_dir)
{
	struct raw_fh dir = site_lookup(s, "dir");
	struct stat st, local;

	ask_as(s->r, p->uid, p->gid);
	if (is_dir)
		site_expect(s, ask_mkdir(&dir, "nfs", ask_mode(mode)), NFS3_OK);
	else
		site_expect(s, ask_create(&dir, "nfs", GUARDED, ask_mode(mode)),
			    NFS3_OK);
	ask_as(s->r, 0, 0);
	oracle_make(p, site_path(s, "dir/local"),
		    mode | (is_dir ? S_IFDIR : S_IFREG));
	assert_int_equal(stat(site_path(s, "dir/nfs"), &st), 0);
	assert_int_equal(stat(site_path(s, "dir/local"), &local), 0);
	if (st.st_mode != local.st_mode)
		fail_msg("mode %o: %o here, %o by NFS", mode, local.st_mode,
			 st.st_mode);
	assert_int_equal(st.st_uid, local.st_uid);
	assert_int_equal(st.st_gid, local.st_gid);
	expect_same_acl(s, "dir/nfs", "dir/local", "system.posix_acl_access");
	if (is_dir)
		expect_same_acl(s, "dir/nfs", "dir/local",
				"system.posix_acl_default");
	assert_int_equal(harness_sh("rm -r %s %s", site_path(s, "dir/nfs"),
				    site_path(s, "dir/local")),
			 0);
}

static void
test_made(void **state)
{
	static const struct person him = { .uid = 1003, .gid = 1004 };
	static const char *const prepare[] = {
		"chmod 0777",
		"chmod 02777",
		"setfacl -m d:u::rwx,d:g::r-x,d:o::---,d:u:1005:rwx,d:m::rwx",
		"setfacl -m d:u::rw-,d:g::-,d:o::r,d:g:2000:rwx,d:m::r-x",
	};
	static const unsigned modes[] = { 0666, 0600, 0777, 0000, 0444 };
	struct site *s;
	unsigned i, j;

	if (!oracle_there())
		skip();
	s = site_new(engine, NULL, "xfs");
	assert_int_equal(mkdir(site_path(s, "dir"), 0777), 0);
	assert_int_equal(chown(site_path(s, "dir"), 0, 3000), 0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(
			harness_sh("%s %s", prepare[i], site_path(s, "dir")),
			0);
		for (j = 0; j < 5; j++) {
			check_made(s, &him, modes[j], false);
			check_made(s, &him, modes[j], true);
		}
	}
	site_free(s);
}

/* setuid and setgid
 * ---------------------------------------------------------------
 */

static void
check_bits(struct site *s, struct question q, unsigned uid, unsigned mode,
	   unsigned after)
{
	struct raw_fh fh;
	unsigned got;

	(void)unlink(site_path(s, "f"));
	site_file(s, "f", 0600, 1000, 1000, "text");
	assert_int_equal(chmod(site_path(s, "f"), mode), 0);
	fh = site_lookup(s, "f");
	q.u.getattr.object = raw_nfs_fh(&fh); /* each begins with it */
	expect_by(s, uid, q, NFS3_OK);
	got = ask_attr(s->r, &fh).mode;
	if (got != after)
		fail_msg("procedure %u by %u: %o, not %o", q.proc, uid, got,
			 after);
}

static void
setuid_bits(const char *name)
{
	struct site *s = site_new(name, NULL, "xfs");
	static uint8_t data[1u << 20];
	struct raw_fh later = { 0 };
	const struct question writes[] = {
		ask_write(&later, 0, data, 1, UNSTABLE),
		ask_write(&later, 3, data, 1, FILE_SYNC),
		ask_write(&later, 0, data, sizeof(data), UNSTABLE),
		ask_write(&later, 0, data, sizeof(data), FILE_SYNC),
		ask_write(&later, 47, data, 200000, DATA_SYNC),
		ask_setattr(&later, ask_size(1), NULL),
		ask_setattr(&later, ask_size(100000), NULL),
	};
	unsigned i;

	for (i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		check_bits(s, writes[i], 1003, 06777, 0777);
		check_bits(s, writes[i], 1003, 04777, 0777);
		check_bits(s, writes[i], 1000, 06755, 0755);
	}
	/* To a group of his, which another than root may. */
	check_bits(s, ask_setattr(&later, ask_owner(-1, 1000), NULL), 1000,
		   06755, 0755);
	check_bits(s, ask_setattr(&later, ask_owner(1000, -1), NULL), 1000,
		   06755, 0755);
	/* A read changes nothing, nor does a write of nothing. */
	check_bits(s, ask_read(&later, 0, 4), 1003, 06755, 06755);
	check_bits(s, ask_write(&later, 0, data, 0, UNSTABLE), 1003, 06777,
		   06777);
	/* chmod with chown: the mode that was asked for stands. */
	check_bits(s, ask_setattr(&later, ask_mode(06711), NULL), 1000, 0644,
		   06711);
	site_free(s);
}

static void
test_setuid_bits(void **state)
{
	setuid_bits("uring");
	setuid_bits("threads");
}

/* Clients
 * --------------------------------------------------------------------------
 */

static void
test_secure(void **state)
{
	struct site *s = site_prepare(engine, "rw,no_root_squash", NULL);
	struct raw *from_below;
	struct raw_fh root;

	if (geteuid() != 0) {
		print_message("skip: a reserved port takes root\n");
		skip();
	}
	harness_start(s->h);
	s->r = raw_connect(s->h->port);
	assert_int_equal(raw_mount(s->r, s->h->export, &root), MNT3ERR_ACCES);
	assert_true(harness_logged(s->h, "refused 127.0.0.1.*\"insecure\""));
	from_below = raw_connect_reserved(s->h->port);
	assert_int_equal(raw_mount(from_below, s->h->export, &root), 0);
	assert_int_equal(ask(from_below, ask_getattr(&root), NULL), NFS3_OK);
	/* A handle alone does not help. */
	site_expect(s, ask_getattr(&root), NFS3ERR_PERM);
	site_expect(s, ask_mkdir(&root, "d", ask_mode(0755)), NFS3ERR_PERM);
	/* Told once. */
	assert_int_equal(
		harness_sh("test $(grep -c insecure %s/log) = 1", s->h->dir),
		0);
	raw_close(from_below);
	site_free(s);
}

/* One writes, one only reads, one is nobody and one has no business here; the
 * file is warm for all of them. */
static void
test_by_client(void **state)
{
	struct site *s = site_prepare(engine, NULL, "xfs");
	struct raw *reads, *nobody, *none;
	struct answer a;
	struct raw_fh fh;

	(void)snprintf(s->h->client, sizeof(s->h->client),
		       "127.0.0.1(rw,insecure,no_root_squash) "
		       "127.0.0.2(ro,insecure,no_root_squash) "
		       "127.0.0.3(rw,insecure,all_squash)");
	site_start(s);
	reads = site_connect_from(s, "127.0.0.2");
	nobody = site_connect_from(s, "127.0.0.3");
	none = site_connect_from(s, "127.0.0.4");
	raw_create(s->r, &s->root, "f", 0644, &fh);
	site_expect(s, ask_write(&fh, 0, "text", 4, FILE_SYNC), NFS3_OK);
	assert_int_equal(ask(reads, ask_read(&fh, 0, 4), &a), NFS3_OK);
	assert_memory_equal(a.u.read.data.data_val, "text", 4);
	assert_int_equal(ask(reads, ask_write(&fh, 0, "x", 1, UNSTABLE), NULL),
			 NFS3ERR_ROFS);
	assert_int_equal(ask(reads, ask_remove(&s->root, "f"), NULL),
			 NFS3ERR_ROFS);
	assert_int_equal(ask(reads, ask_access(&fh, 63), &a), NFS3_OK);
	assert_int_equal(a.u.access.access, ACCESS3_READ);
	assert_int_equal(ask(nobody, ask_read(&fh, 0, 4), NULL), NFS3_OK);
	assert_int_equal(ask(nobody, ask_write(&fh, 0, "x", 1, UNSTABLE), NULL),
			 NFS3ERR_ACCES);
	assert_int_equal(ask(none, ask_read(&fh, 0, 4), NULL), NFS3ERR_STALE);
	assert_int_equal(ask(none, ask_getattr(&s->root), NULL), NFS3ERR_STALE);
	/* What one writes the reader sees, by another descriptor of his. */
	site_expect(s, ask_write(&fh, 0, "TEXT", 4, UNSTABLE), NFS3_OK);
	assert_int_equal(ask(reads, ask_read(&fh, 0, 4), &a), NFS3_OK);
	assert_memory_equal(a.u.read.data.data_val, "TEXT", 4);
	raw_close(reads);
	raw_close(nobody);
	raw_close(none);
	site_free(s);
}

/* manage-gids
 * -----------------------------------------------------------------------
 */

#define MEMBER 45678u
#define GROUPS 501u /* more than AUTH_SYS could carry */
#define EACH   20u  /* of them is tried, the first and last too */

/* A user of this machine with groups of it, as far as the server sees. */
static void
write_accounts(struct site *s)
{
	assert_int_equal(
		harness_sh("cd %s && cp /etc/passwd passwd && "
			   "cp /etc/group group && "
			   "echo nvtest:x:%u:%u::/:/bin/false >>passwd && "
			   "echo nvtest:x:%u: >>group && "
			   "for i in $(seq 0 %u); do "
			   "echo nvtest$i:x:$((46000 + i)):nvtest; "
			   "done >>group && "
			   "printf '[mountd]\\nmanage-gids = yes\\n' >conf",
			   s->h->dir, MEMBER, MEMBER, MEMBER, GROUPS - 1),
		0);
}

static void
test_manage_gids(void **state)
{
	struct site *s = site_prepare(engine, NULL, NULL);
	char command[2000], conf[400];
	struct raw_fh fh, claimed;
	unsigned i;

	if (harness_sh("unshare -m true 2>/dev/null") != 0) {
		print_message("skip: no mount namespace can be had here\n");
		skip();
	}
	write_accounts(s);
	(void)snprintf(conf, sizeof(conf), "%s/conf", s->h->dir);
	harness_arg(s->h, "--config");
	harness_arg(s->h, conf);
	(void)snprintf(
		command, sizeof(command),
		"unshare -m sh -c 'mount --bind %s/passwd /etc/passwd && "
		"mount --bind %s/group /etc/group && exec \"$0\" \"$@\"'",
		s->h->dir, s->h->dir);
	start_by(s, command);
	ask_as(s->r, MEMBER, MEMBER);
	for (i = 0; i < GROUPS; i += EACH) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%u", i);
		site_file(s, name, 0660, 0, 46000 + i, "text");
		fh = site_lookup(s, name);
		site_expect(s, ask_read(&fh, 0, 4), NFS3_OK);
		site_expect(s, ask_write(&fh, 0, "T", 1, UNSTABLE), NFS3_OK);
		site_expect(s, ask_setattr(&fh, ask_size(4), NULL), NFS3_OK);
	}
	/* What he claims to be in does not count, what he keeps quiet does. */
	site_file(s, "claimed", 0660, 0, 2000, "text");
	claimed = site_lookup(s, "claimed");
	s->r->gids = 1;
	s->r->gid_list[0] = 2000;
	site_expect(s, ask_read(&claimed, 0, 4), NFS3ERR_ACCES);
	site_expect(s, ask_write(&claimed, 0, "T", 1, UNSTABLE), NFS3ERR_ACCES);
	site_expect(s, ask_read(&fh, 0, 4), NFS3_OK);
	/* Of a user that this machine does not know only the gid counts. */
	ask_as(s->r, MEMBER + 1, 2000);
	site_expect(s, ask_read(&claimed, 0, 4), NFS3_OK);
	site_expect(s, ask_read(&fh, 0, 4), NFS3ERR_ACCES);
	ask_as(s->r, 0, 0);
	site_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_setuid_bits),
		cmocka_unit_test(test_secure),
		cmocka_unit_test(test_by_client),
		cmocka_unit_test(test_manage_gids),
	};

	binary = getenv("NVNFSD");
	binary = binary != NULL ? strdup(binary) : "";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
