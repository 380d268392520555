/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket of nvnfsctl: a request is a line of JSON, its reply too. See
 * ctl.h. The object is main's struct server_link.
 */
#include "nfsd/ctl.h"
#include "nfsd/nvnfsctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int
fail(const struct server_link *l, const char *what)
{
	(void)fprintf(stderr, "nvnfsctl: %s/%s: %s%s\n", l->state_dir,
		      CTL_SOCKET, what,
		      errno == ECONNREFUSED || errno == ENOENT
			      ? ": is the server running?"
			      : "");
	link_close(l->fd >= 0 ? (struct server_link *)l : NULL);
	return -1;
}

/* By the directory's descriptor, since the path may be too long for a socket's
 * address. */
static int
link_connect(struct server_link *l)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int dir = open(l->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc, error;

	if (dir < 0)
		return -1;
	(void)snprintf(a.sun_path, sizeof(a.sun_path),
		       "/proc/self/fd/%d/" CTL_SOCKET, dir);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rc = l->fd < 0 ? -1 : connect(l->fd, (struct sockaddr *)&a, sizeof(a));
	error = errno;
	close(dir);
	errno = error;
	return rc;
}

int
link_open(struct server_link *l)
{
	if (l->fd >= 0)
		return 0;
	if (link_connect(l) < 0)
		return fail(l, strerror(errno));
	l->in = fdopen(l->fd, "r");
	if (l->in == NULL)
		return fail(l, strerror(errno));
	return 0;
}

void
link_close(struct server_link *l)
{
	if (l == NULL)
		return;
	if (l->in != NULL)
		(void)fclose(l->in);
	else if (l->fd >= 0)
		close(l->fd);
	l->in = NULL;
	l->fd = -1;
}

static int
send_line(const struct server_link *l, const char *command,
	  struct json_object *args)
{
	struct json_object *o = json_object_new_object();
	const char *text;
	size_t n, sent = 0;
	char *line;
	ssize_t w = 0;

	json_object_object_add(o, "command", json_object_new_string(command));
	if (args != NULL)
		json_object_object_add(o, "args", args);
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	n = strlen(text);
	line = malloc(n + 1);
	if (line != NULL) {
		memcpy(line, text, n);
		line[n++] = '\n';
		while (sent < n && w >= 0) {
			w = send(l->fd, line + sent, n - sent, MSG_NOSIGNAL);
			sent += w > 0 ? (size_t)w : 0;
		}
	}
	free(line);
	json_object_put(o);
	return line == NULL || w < 0 ? -1 : 0;
}

/* The result in a reply. */
static int
unwrap(const char *command, struct json_object *reply, struct json_object **ret)
{
	struct json_object *ok, *part;

	if (!json_object_object_get_ex(reply, "ok", &ok)) {
		(void)fprintf(stderr, "nvnfsctl: not understood: %s\n",
			      json_object_to_json_string(reply));
		return -1;
	}
	if (!json_object_get_boolean(ok)) {
		(void)fprintf(stderr, "nvnfsctl: %s: %s\n", command,
			      get_text(reply, "error"));
		return -1;
	}
	part = get_part(reply, "result");
	*ret = json_object_get(part);
	return 0;
}

/* What went wrong with an open connection. */
static const char *
broken(int error)
{
	if (error == 0 || error == ECONNRESET || error == EPIPE)
		return "the server has closed it: may this user control it?";
	return strerror(error);
}

int
link_ask(struct server_link *l, const char *command, struct json_object *args,
	 struct json_object **ret)
{
	struct json_object *reply = NULL;
	char *line = NULL;
	size_t room = 0;
	int rc = -1;

	if (link_open(l) < 0) {
		json_object_put(args);
		return -1;
	}
	if (send_line(l, command, args) < 0)
		return fail(l, broken(errno));
	errno = 0;
	if (getline(&line, &room, l->in) > 0)
		reply = json_tokener_parse(line);
	free(line);
	if (reply == NULL)
		return fail(l, broken(errno));
	rc = unwrap(command, reply, ret);
	json_object_put(reply);
	return rc;
}
