/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/lock.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static socklen_t fill(struct sockaddr_un *at, const char *name)
{
	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	/* The leading NUL makes it abstract; its length is part of the name. */
	snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1, "%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(at->sun_path + 1));
}

/* The kernel keeps the credentials of whoever called listen(); 0 if they cannot be had. */
static pid_t holder(const struct sockaddr_un *at, socklen_t len)
{
	AUTO(close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred cred = { 0 };
	socklen_t size = sizeof(cred);

	if (fd < 0 || connect(fd, (const struct sockaddr *)at, len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return 0;
	return cred.pid;
}

static int busy(const struct sockaddr_un *at, socklen_t len, const char *name, struct err *err)
{
	pid_t pid = holder(at, len);

	if (pid > 0)
		return err_set(
			err, -EBUSY,
			"another agent, process %d, runs in this network namespace (it holds "
			"the socket @%s)",
			pid, name);
	return err_set(err, -EBUSY,
		       "another agent runs in this network namespace (the socket @%s is held by a "
		       "process that cannot be seen from here)",
		       name);
}

static int hold(int fd, const char *name, struct err *err)
{
	struct sockaddr_un at;
	socklen_t len = fill(&at, name);

	if (bind(fd, (const struct sockaddr *)&at, len) < 0)
		return errno == EADDRINUSE
			       ? busy(&at, len, name, err)
			       : err_set(err, -errno, "cannot bind @%s: %s", name, strerror(errno));
	/* Nobody is ever accepted; listening is what lets others ask who we are. */
	if (listen(fd, SOMAXCONN) < 0)
		return err_set(err, -errno, "cannot listen on @%s: %s", name, strerror(errno));
	return 0;
}

int lock_take(const char *name, int *ret_fd, struct err *err)
{
	int r, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	r = hold(fd, name ?: LOCK_NAME, err);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}
