/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread: serves the socket DIR/ctl to nvnfsctl(8), and the metrics
 * where they are asked for (http.c). The object is
 * struct ctl: made by server_start, ended by server_stop, and all but
 * wake_fd belongs to its own thread. One thread, since what operators ask for
 * may wait for one another but shall never make a reactor wait.
 *
 * Who may: root, and the members of the group nvnfsd where there is one; told
 * by the kernel (SO_PEERCRED, SO_PEERGROUPS), besides the socket's mode. It
 * knows no command; unix(7).
 */
#include "nfsd/ctl.h"

#include "nfsd/http.h"
#include "nfsd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <unistd.h>

#define PEERS_MAX    16u
#define GROUPS_MAX   256u
#define SOCKET_MODE  0660
#define DIR_GROUP_X  0010
#define NO_GROUP     ((gid_t)-1)
#define PEER_LINES   8 /* backlog */
#define GROUP_BUFFER 16384u
#define POLLFDS      (2u + PEERS_MAX + HTTP_POLLFDS)

/* One client of the socket: reads a request, then writes its reply. */
struct peer {
	int fd; /* -1: free */
	uint64_t heard_ns;
	char *in;
	size_t in_bytes;
	char *out; /* the reply, NULL: none */
	size_t out_bytes, out_sent;
	bool ending; /* its last answer is on its way */
};

struct ctl {
	struct server *server;
	pthread_t thread;
	gid_t group; /* NO_GROUP: root only */
	int listen_fd;
	int wake_fd; /* written to stop */
	struct peer peer[PEERS_MAX];
	struct http *http; /* NULL: no metrics */
};

/* Out of descriptors: who waits would be found at once again. */
void
ctl_accept_failed(int error)
{
	const struct timespec pause = { .tv_nsec = 100000000 };

	if (error == EMFILE || error == ENFILE || error == ENOMEM ||
	    error == ENOBUFS)
		(void)nanosleep(&pause, NULL);
}

/* Peers -------------------------------------------------------------------- */

static void
peer_close(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->in);
	free(p->out);
	*p = (struct peer){ .fd = -1 };
}

static bool
in_groups(int fd, gid_t group)
{
	gid_t list[GROUPS_MAX];
	socklen_t n = sizeof(list);
	unsigned i;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &n) < 0)
		return false;
	for (i = 0; i < n / sizeof(*list); i++)
		if (list[i] == group)
			return true;
	return false;
}

static bool
is_allowed(const struct ctl *c, int fd)
{
	struct ucred u;
	socklen_t n = sizeof(u);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &u, &n) < 0)
		return false;
	if (u.uid == 0 || u.uid == geteuid())
		return true;
	return c->group != NO_GROUP &&
	       (u.gid == c->group || in_groups(fd, c->group));
}

/* A free place, or that of whoever has been silent longest. */
static struct peer *
peer_place(struct ctl *c)
{
	struct peer *oldest = c->peer, *p;

	for (p = c->peer; p < c->peer + PEERS_MAX; p++) {
		if (p->fd < 0)
			return p;
		if (p->heard_ns < oldest->heard_ns)
			oldest = p;
	}
	peer_close(oldest);
	return oldest;
}

static void
peer_accept(struct ctl *c)
{
	static struct log_limit limit;
	struct peer *p;
	int fd =
		accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		ctl_accept_failed(errno);
		return;
	}
	if (!is_allowed(c, fd)) {
		log_limited(&limit, LOG_WARNING_,
			    "a control connection was refused");
		close(fd);
		return;
	}
	p = peer_place(c);
	p->in = malloc(CTL_LINE_BYTES);
	if (p->in == NULL) {
		close(fd);
		return;
	}
	p->fd = fd;
	p->heard_ns = monotonic_ns();
}

static void
peer_answer(struct ctl *c, struct peer *p, size_t n)
{
	struct json_object *o = ctl_answer(ctl_commands, c->server, p->in, n);
	const char *text = json_object_to_json_string_ext(
		o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	size_t bytes = strlen(text);

	p->out = malloc(bytes + 1);
	if (p->out != NULL) {
		memcpy(p->out, text, bytes);
		p->out[bytes] = '\n';
		p->out_bytes = bytes + 1;
		p->out_sent = 0;
	}
	json_object_put(o);
}

/* A request that is whole is answered; the next one waits for its turn. */
static void
peer_next(struct ctl *c, struct peer *p)
{
	const char *end = memchr(p->in, '\n', p->in_bytes);
	size_t n;

	if (end == NULL && p->in_bytes < CTL_LINE_BYTES)
		return;
	if (end == NULL) { /* too long: one answer, and the end */
		p->ending = true;
		peer_answer(c, p, 0);
		if (p->out == NULL)
			peer_close(p);
		return;
	}
	n = (size_t)(end - p->in);
	peer_answer(c, p, n);
	p->in_bytes -= n + 1;
	memmove(p->in, end + 1, p->in_bytes);
	if (p->out == NULL)
		peer_close(p);
}

static void
peer_read(struct ctl *c, struct peer *p)
{
	ssize_t n =
		read(p->fd, p->in + p->in_bytes, CTL_LINE_BYTES - p->in_bytes);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		peer_close(p);
		return;
	}
	p->in_bytes += (size_t)n;
	p->heard_ns = monotonic_ns();
	peer_next(c, p);
}

static void
peer_write(struct ctl *c, struct peer *p)
{
	ssize_t n = send(p->fd, p->out + p->out_sent,
			 p->out_bytes - p->out_sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		peer_close(p);
		return;
	}
	p->out_sent += (size_t)n;
	if (p->out_sent < p->out_bytes)
		return;
	free(p->out);
	p->out = NULL;
	if (p->ending)
		peer_close(p);
	else
		peer_next(c, p);
}

/* The thread --------------------------------------------------------------- */

/* What to wait for: [0] the end, [1] a newcomer, then the peers. */
static void
poll_set(const struct ctl *c, struct pollfd *set)
{
	unsigned i;

	set[0] = (struct pollfd){ .fd = c->wake_fd, .events = POLLIN };
	set[1] = (struct pollfd){ .fd = c->listen_fd, .events = POLLIN };
	for (i = 0; i < PEERS_MAX; i++) {
		const struct peer *p = &c->peer[i];

		set[2 + i].fd = p->fd;
		set[2 + i].events = p->out != NULL ? POLLOUT : POLLIN;
	}
	http_poll(c->http, &set[2 + PEERS_MAX]);
}

static void *
ctl_main(void *arg)
{
	struct pollfd set[POLLFDS];
	struct ctl *c = arg;
	unsigned i;

	(void)prctl(PR_SET_NAME, "nvnfsd/ctl");
	for (;;) {
		poll_set(c, set);
		if (poll(set, POLLFDS, -1) < 0)
			continue;
		if (set[0].revents != 0)
			break;
		for (i = 0; i < PEERS_MAX; i++) {
			struct peer *p = &c->peer[i];

			if (p->fd < 0 || set[2 + i].revents == 0)
				continue;
			if (p->out != NULL)
				peer_write(c, p);
			else
				peer_read(c, p);
		}
		if (set[1].revents != 0)
			peer_accept(c);
		http_act(c->http, &set[2 + PEERS_MAX]);
	}
	return NULL;
}

/* Beginning and end -------------------------------------------------------- */

static gid_t
find_group(void)
{
	char buffer[GROUP_BUFFER];
	struct group g, *found = NULL;

	if (getgrnam_r(CTL_GROUP, &g, buffer, sizeof(buffer), &found) != 0 ||
	    found == NULL)
		return NO_GROUP;
	return g.gr_gid;
}

/* The group may pass through the state directory to the socket, and no more:
 * what else is there has modes of its own. */
static void
open_way(const struct ctl *c, int dir_fd, const char *path)
{
	struct stat st;

	if (c->group == NO_GROUP)
		return;
	if (fstat(dir_fd, &st) < 0 || fchown(dir_fd, -1, c->group) < 0 ||
	    fchmod(dir_fd, (st.st_mode & 07777) | DIR_GROUP_X) < 0 ||
	    lchown(path, -1, c->group) < 0)
		log_msg(LOG_WARNING_,
			"the group %s cannot be let to the control socket: %s",
			CTL_GROUP, strerror(errno));
}

/* By the directory's descriptor, since its path may be too long for one. */
static int
open_socket(struct ctl *c, int dir_fd)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int rc = 0;

	(void)snprintf(a.sun_path, sizeof(a.sun_path),
		       "/proc/self/fd/%d/" CTL_SOCKET, dir_fd);
	c->listen_fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listen_fd < 0)
		return -errno;
	/* What a crash left; the directory is locked, so it is nobody's. */
	(void)unlinkat(dir_fd, CTL_SOCKET, 0);
	/* The mode is there from the start; the umask is 0, see
	 * identity_worker_init, or stricter. */
	if (fchmod(c->listen_fd, SOCKET_MODE) < 0 ||
	    bind(c->listen_fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    chmod(a.sun_path, SOCKET_MODE) < 0 ||
	    listen(c->listen_fd, PEER_LINES) < 0)
		rc = -errno;
	if (rc == 0)
		open_way(c, dir_fd, a.sun_path);
	return rc;
}

static void
ctl_free(struct ctl *c)
{
	unsigned i;

	for (i = 0; i < PEERS_MAX; i++)
		peer_close(&c->peer[i]);
	if (c->listen_fd >= 0)
		close(c->listen_fd);
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	http_close(c->http);
	free(c);
}

int
ctl_start(struct ctl **ret, struct server *s)
{
	struct ctl *c = calloc(1, sizeof(*c));
	unsigned i;
	int rc;

	if (c == NULL)
		return -ENOMEM;
	c->server = s;
	c->listen_fd = -1;
	for (i = 0; i < PEERS_MAX; i++)
		c->peer[i].fd = -1;
	c->group = find_group();
	c->wake_fd = eventfd(0, EFD_CLOEXEC);
	rc = c->wake_fd < 0 ? -errno : open_socket(c, state_fd(s->state));
	if (rc < 0)
		log_msg(LOG_ERR_, "cannot open the control socket: %s",
			strerror(-rc));
	if (rc == 0 && s->conf.has_metrics)
		rc = http_open(&c->http, s, s->conf.metrics_host,
			       s->conf.metrics_port);
	if (rc == 0) {
		rc = -pthread_create(&c->thread, NULL, ctl_main, c);
		if (rc < 0)
			log_msg(LOG_ERR_, "cannot start the control thread: %s",
				strerror(-rc));
	}
	if (rc < 0) {
		ctl_free(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void
ctl_stop(struct ctl *c)
{
	uint64_t one = 1;

	if (c == NULL)
		return;
	while (write(c->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(c->thread, NULL);
	(void)unlinkat(state_fd(c->server->state), CTL_SOCKET, 0);
	ctl_free(c);
}
