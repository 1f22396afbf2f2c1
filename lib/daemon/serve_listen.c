/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/daemon/serve.h"

/* What the umask took away; it was never more than asked for. */
static int widen(const char *path, unsigned mode)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	if ((st.st_mode & ALLPERMS) == mode)
		return 0;
	return chmod(path, mode) < 0 ? -errno : 0;
}

static int bind_and_listen(int fd, const struct sockaddr_un *sa, unsigned mode)
{
	int r;

	/* The mode of an unbound socket is what bind() gives to the file, less the umask. */
	if (fchmod(fd, mode) < 0)
		return -errno;
	if (unlink(sa->sun_path) < 0 && errno != ENOENT)
		return -errno;
	if (bind(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0)
		return -errno;
	r = widen(sa->sun_path, mode);
	if (r < 0)
		return r;
	return listen(fd, SOMAXCONN) < 0 ? -errno : 0;
}

static int may_replace(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	return S_ISSOCK(st.st_mode) ? 0 : -EEXIST;
}

static int listen_at(int fd, const char *path, unsigned mode)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int r;

	if ((size_t)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s.new", path) >=
	    sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	r = may_replace(path);
	if (r < 0)
		return r;
	r = bind_and_listen(fd, &sa, mode);
	if (r == 0 && rename(sa.sun_path, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(sa.sun_path);
	return r;
}

int serve_listen_unix(const char *path, unsigned mode, int *ret)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = listen_at(fd, path, mode);
	if (r < 0) {
		close(fd);
		return r;
	}
	*ret = fd;
	return 0;
}

static socklen_t socket_address(const struct listen_address *at, struct sockaddr_storage *ret)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *four = (struct sockaddr_in *)ret;

	memset(ret, 0, sizeof(*ret));
	ret->ss_family = at->address.family;
	if (at->address.family == AF_INET6) {
		six->sin6_port = htons(at->port);
		memcpy(&six->sin6_addr, at->address.bytes, sizeof(six->sin6_addr));
		return sizeof(*six);
	}
	four->sin_port = htons(at->port);
	memcpy(&four->sin_addr, at->address.bytes, sizeof(four->sin_addr));
	return sizeof(*four);
}

/*
 * Who waits for an answer for hours sends nothing meanwhile; that its machine is gone shows only in
 * probes. Accepted connections inherit all of it.
 */
static int keep_alive(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 15 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			       sizeof(int)) < 0)
			return -errno;
	return 0;
}

int serve_listen_tcp(const struct listen_address *at, int *ret)
{
	int fd = socket(at->address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r = 0;
	struct sockaddr_storage sa;
	socklen_t len = socket_address(at, &sa);

	if (fd < 0)
		return -errno;
	r = keep_alive(fd);
	/* Connections of the agent before us may still be closing. */
	if (r < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0 ||
	    bind(fd, (const struct sockaddr *)&sa, len) < 0 || listen(fd, SOMAXCONN) < 0)
		r = r ?: -errno;
	if (r < 0)
		close(fd);
	else
		*ret = fd;
	return r;
}
