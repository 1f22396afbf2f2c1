/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_io.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/auto.h"
#include "lib/base/clock.h"

/* --- time ----------------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
	return clock_monotonic_us() / 1000;
}

struct deadline deadline_in(unsigned ms)
{
	return (struct deadline){ now_ms() + ms };
}

unsigned deadline_left(const struct deadline *d)
{
	uint64_t now = now_ms();

	return now < d->at_ms ? (unsigned)(d->at_ms - now) : 0;
}

/* --- stdin and stdout ----------------------------------------------------------------------- */

static int input_failed(struct cni_error *e, int error)
{
	cni_fail(e, CNI_CODE_IO, "cannot read the network configuration from stdin: %s",
		 strerror(error));
	return -error;
}

/* Positive: there is something to read, its end too; 0: the deadline has passed. */
static int wait_input(int fd, const struct deadline *d)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return TEMP_FAILURE_RETRY(poll(&p, 1, (int)deadline_left(d)));
}

int cni_input_read(int fd, const struct deadline *d, char **ret, size_t *ret_len,
		   struct cni_error *e)
{
	AUTO(free) char *text = NULL;
	size_t len = 0, room = 0;
	ssize_t n;

	do {
		int ready = wait_input(fd, d);

		if (ready < 0)
			return input_failed(e, errno);
		if (ready == 0)
			return cni_fail(e, CNI_CODE_IO,
					"the network configuration on stdin is incomplete: %zu "
					"bytes were read before the time limit of this command",
					len);
		if (len == room) {
			char *grown = realloc(text, room = room ? room * 4 : 16384);

			if (!grown)
				return input_failed(e, ENOMEM);
			text = grown;
		}
		n = read(fd, text + len, room - len);
		if (n < 0 && errno != EINTR)
			return input_failed(e, errno);
		len += n > 0 ? (size_t)n : 0;
		if (len > CNI_INPUT_MAX)
			return cni_fail(e, CNI_CODE_DECODE,
					"the network configuration on stdin has more than %u bytes",
					CNI_INPUT_MAX);
	} while (n != 0);
	*ret = TAKE(text);
	*ret_len = len;
	return 0;
}

int cni_output_write(int fd, const char *text)
{
	struct iovec v[2] = { { .iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text) },
			      { .iov_base = (char[]){ '\n' }, .iov_len = 1 } };
	size_t i = 0;

	while (i < ARRAY_SIZE(v)) {
		ssize_t n = writev(fd, v + i, (int)(ARRAY_SIZE(v) - i));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		for (; i < ARRAY_SIZE(v) && (size_t)n >= v[i].iov_len; i++)
			n -= (ssize_t)v[i].iov_len;
		if (i < ARRAY_SIZE(v)) {
			v[i].iov_base = (char *)v[i].iov_base + n;
			v[i].iov_len -= (size_t)n;
		}
	}
	return 0;
}

/* --- the pod's namespace -------------------------------------------------------------------- */

static bool is_one_of(const struct sockaddr *sa, const struct address *v, size_t n)
{
	const void *bytes;
	size_t len;

	if (sa && sa->sa_family == AF_INET) {
		bytes = &((const struct sockaddr_in *)(const void *)sa)->sin_addr;
		len = 4;
	} else if (sa && sa->sa_family == AF_INET6) {
		bytes = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
		len = 16;
	} else {
		return false;
	}
	for (size_t i = 0; i < n; i++)
		if (v[i].family == sa->sa_family && memcmp(v[i].bytes, bytes, len) == 0)
			return true;
	return false;
}

static int here_carries(const char *ifname, const struct address *v, size_t n)
{
	struct ifaddrs *all;
	int found = 0;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (const struct ifaddrs *p = all; p && !found; p = p->ifa_next)
		found = strcmp(p->ifa_name, ifname) == 0 && is_one_of(p->ifa_addr, v, n);
	freeifaddrs(all);
	return found;
}

int cni_netns_carries(const char *path, const char *ifname, const struct address *v, size_t n)
{
	AUTO(close) int there = open(path, O_RDONLY | O_CLOEXEC);
	AUTO(close) int home = -1;
	int r;

	if (there < 0)
		return 0;
	home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		return -errno;
	if (setns(there, CLONE_NEWNET) < 0)
		return errno == EPERM ? -EPERM : 0;
	r = here_carries(ifname, v, n);
	if (setns(home, CLONE_NEWNET) < 0)
		return -errno;
	return r;
}
