/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* Any file system has files with numbers; only this one's answer to that ioctl. */
static bool is_netns(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC &&
	       ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET;
}

static bool is_same(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static int inspect(const struct netns *n, const char *path, bool may_be_ours, struct cni_error *e)
{
	if (n->home < 0)
		return cni_fail(e, CNI_CODE_IO,
				"cannot open the network namespace of this process: %s",
				strerror(errno));
	if (!is_netns(n->fd))
		return cni_fail(e, CNI_CODE_NETNS, "%s is not a network namespace", path);
	if (!may_be_ours && is_same(n->fd, n->home))
		return cni_fail(e, CNI_CODE_NETNS,
				"%s is the namespace of the node itself, not of a pod; "
				"CNI_NETNS_OVERRIDE=1 allows it",
				path);
	return 0;
}

int netns_open(const char *path, bool may_be_ours, struct netns *ret, struct cni_error *e)
{
	struct netns n = NETNS_NONE;
	int r;

	/* A path can be anything, a pipe too. */
	n.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (n.fd < 0)
		return cni_fail(e, CNI_CODE_NETNS, "cannot open the network namespace %s: %s", path,
				strerror(errno));
	n.home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	r = inspect(&n, path, may_be_ours, e);
	if (r < 0)
		netns_close(&n);
	else
		*ret = n;
	return r;
}

void netns_close(struct netns *n)
{
	close_auto(&n->fd);
	close_auto(&n->home);
	*n = NETNS_NONE;
}

int netns_enter(const struct netns *n)
{
	return setns(n->fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

int netns_leave(const struct netns *n)
{
	return setns(n->home, CLONE_NEWNET) < 0 ? -errno : 0;
}

int netns_netlink(const struct netns *n, struct netlink **ret)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	int r = netns_enter(n), back;

	if (r < 0)
		return r;
	r = netlink_open(NETLINK_ROUTE, &k);
	back = netns_leave(n);
	if (r < 0 || back < 0)
		return r ?: back;
	*ret = TAKE(k);
	return 0;
}
