/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnl builds the messages and connects the socket. Sending and receiving
 * is done here: libnl's receive loop copies every message into one of its own
 * and gives up the ack's errno and sentence.
 */
#include "lib/netlink/kern.h"

#include <errno.h>
#include <netlink/socket.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "lib/netlink/kern_reply.h"
#include "lib/netlink/kern_socket.h"

#define DUMP_RESTARTS      10
#define REQUEST_RECEIVE    (1024 * 1024)
#define EVENTS_RECEIVE     (4 * 1024 * 1024)
#define ANSWER_SECONDS_MAX 10

/* libnl's own code says less than the errno of the system call behind it. */
static int libnl_errno(int nle)
{
	if (nle >= 0)
		return 0;
	return errno ? -errno : -EIO;
}

static void keep_first(int *first, int err)
{
	if (*first == 0 && err < 0)
		*first = err;
}

static int set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* The forced one passes the host's limit and needs CAP_NET_ADMIN. */
static int set_receive_buffer(int fd, int size)
{
	if (set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, size) == 0)
		return 0;
	return set_option(fd, SOL_SOCKET, SO_RCVBUF, size);
}

static int connect_socket(struct kern *k, int protocol)
{
	k->sk = nl_socket_alloc();
	k->in = malloc(KERN_BUFFER_SIZE);
	if (!k->sk || !k->in)
		return -ENOMEM;

	errno = 0;
	int err = libnl_errno(nl_connect(k->sk, protocol));

	k->fd = nl_socket_get_fd(k->sk);
	return err;
}

static int set_request_options(int fd)
{
	const int options[] = { NETLINK_EXT_ACK, NETLINK_CAP_ACK,
				/* Without it the kernel ignores a filter it does not know, and a
				 * caller takes strangers' routes for those it asked for. */
				NETLINK_GET_STRICT_CHK };
	/* Answers come at once; a lost one must not hold up the loop for ever. */
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS_MAX };
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		err = set_option(fd, SOL_NETLINK, options[i], 1);
		if (err < 0)
			return err;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	err = set_option(fd, SOL_SOCKET, SO_SNDBUF, 2 * KERN_BUFFER_SIZE);
	return err ?: set_receive_buffer(fd, REQUEST_RECEIVE);
}

int kern_open(int protocol, struct kern **ret)
{
	AUTO(kern_close) struct kern *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->out = malloc(KERN_BUFFER_SIZE);
	if (!k->out)
		return -ENOMEM;

	err = connect_socket(k, protocol);
	if (err < 0)
		return err;
	err = set_request_options(k->fd);
	if (err < 0)
		return err;
	*ret = TAKE(k);
	return 0;
}

void kern_close(struct kern *k)
{
	if (!k)
		return;
	if (k->sk)
		nl_socket_free(k->sk);
	free(k->in);
	free(k->out);
	free(k);
}

int kern_fd(const struct kern *k)
{
	return k->fd;
}

/* --- sending and receiving ------------------------------------------------------------------ */

int kern_out_append(struct kern *k, struct nl_msg *msg, unsigned flags, uint32_t *ret_seq)
{
	const struct nlmsghdr *from = nlmsg_hdr(msg);
	size_t padded = NLMSG_ALIGN(from->nlmsg_len);
	struct nlmsghdr *to = (struct nlmsghdr *)(k->out + k->out_used);

	if (padded > KERN_BUFFER_SIZE - k->out_used)
		return -ENOSPC;

	memset(k->out + k->out_used + padded - NLMSG_ALIGNTO, 0, NLMSG_ALIGNTO);
	memcpy(to, from, from->nlmsg_len);
	to->nlmsg_flags |= NLM_F_REQUEST | flags;
	to->nlmsg_pid = nl_socket_get_local_port(k->sk);
	to->nlmsg_seq = *ret_seq = nl_socket_use_seq(k->sk);
	k->out_used += padded;
	return 0;
}

int kern_out_send(struct kern *k)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t n;

	k->calls++;
	n = TEMP_FAILURE_RETRY(
		sendto(k->fd, k->out, k->out_used, 0, (struct sockaddr *)&kernel, sizeof(kernel)));
	k->out_used = 0;
	return n < 0 ? -errno : 0;
}

/* One datagram into k->in: its length, or -EAGAIN when nothing came. */
static ssize_t receive(struct kern *k)
{
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { k->in, KERN_BUFFER_SIZE };
	struct msghdr m = { .msg_name = &from, .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	do {
		k->calls++;
		m.msg_namelen = sizeof(from);
		n = TEMP_FAILURE_RETRY(recvmsg(k->fd, &m, 0));
		/* Port 0 is the kernel; other processes can write to us as well. */
	} while (n >= 0 && from.nl_pid != 0);

	if (n < 0)
		return -errno;
	return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}

/* --- requests and dumps --------------------------------------------------------------------- */

struct exchange {
	uint32_t seq;
	kern_message_fn *each;
	void *arg;
	bool interrupted;
	int failed; /* what each() returned */
	struct kern_reply end;
};

static void take_reply(struct exchange *x, const struct nlmsghdr *hdr, size_t available)
{
	struct kern_reply r;

	kern_reply_read(hdr, available, x->seq, &r);
	x->interrupted |= r.interrupted;
	if (r.kind == KERN_REPLY_END)
		x->end = r;
	else if (r.kind == KERN_REPLY_DATA && x->each && !x->failed && !x->interrupted)
		keep_first(&x->failed, x->each(hdr, x->arg));
}

/*
 * Reads to the end also when each() has failed or the dump is known to be
 * torn: the kernel runs one dump per socket and refuses the next until then.
 */
static int exchange(struct kern *k, struct nl_msg *msg, unsigned flags, struct exchange *x)
{
	int err = kern_out_append(k, msg, flags, &x->seq);

	if (err < 0)
		return err == -ENOSPC ? -EMSGSIZE : err;
	err = kern_out_send(k);
	if (err < 0)
		return err;

	while (x->end.kind != KERN_REPLY_END) {
		struct nlmsghdr *hdr = (struct nlmsghdr *)k->in;
		ssize_t n = receive(k);
		int left = (int)n;

		if (n < 0)
			return n == -EAGAIN ? -ETIMEDOUT : (int)n;
		for (; nlmsg_ok(hdr, left); hdr = nlmsg_next(hdr, &left))
			take_reply(x, hdr, (size_t)left);
	}
	return x->failed ?: x->end.error;
}

/* What each() refused, each() has explained. */
static int explain(struct err *err, int code, const struct exchange *x)
{
	const char *what = strerrordesc_np(-code);
	const char *extack = x->end.extack;

	if (x->failed)
		return code;
	/* Some of the kernel's codes never reached user space's list. */
	if (!what)
		return err_set(err, code, "error %d%s%s", -code, *extack ? ": " : "", extack);
	return err_set(err, code, "%s%s%s", what, *extack ? ": " : "", extack);
}

int kern_get(struct kern *k, struct nl_msg *msg, kern_message_fn *each, void *arg, struct err *err)
{
	struct exchange x = { .each = each, .arg = arg };
	int result = exchange(k, msg, NLM_F_ACK, &x);

	return result < 0 ? explain(err, result, &x) : 0;
}

int kern_request(struct kern *k, struct nl_msg *msg, struct err *err)
{
	return kern_get(k, msg, NULL, NULL, err);
}

int kern_dump(struct kern *k, struct nl_msg *msg, kern_restart_fn *restart, kern_message_fn *each,
	      void *arg, struct err *err)
{
	for (int i = 0; i <= DUMP_RESTARTS; i++) {
		struct exchange x = { .each = each, .arg = arg };
		int result;

		if (restart)
			restart(arg);
		result = exchange(k, msg, NLM_F_DUMP, &x);
		if (result < 0)
			return explain(err, result, &x);
		if (!x.interrupted)
			return 0;
	}
	return err_set(err, -EINTR, "changes interrupted the dump %d times in a row",
		       DUMP_RESTARTS + 1);
}

/* --- events --------------------------------------------------------------------------------- */

static int join(struct nl_sock *sk, const unsigned *groups)
{
	for (; *groups; groups++) {
		errno = 0;
		int err = libnl_errno(nl_socket_add_membership(sk, (int)*groups));

		if (err < 0)
			return err;
	}
	return 0;
}

int kern_events_open(int protocol, const unsigned *groups, size_t buffer_size, struct kern **ret)
{
	AUTO(kern_close) struct kern *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	err = connect_socket(k, protocol);
	if (err < 0)
		return err;
	/* Before joining, so that the first events already find the room. */
	err = set_receive_buffer(k->fd, (int)(buffer_size ?: EVENTS_RECEIVE));
	if (err < 0)
		return err;
	errno = 0;
	err = libnl_errno(nl_socket_set_nonblocking(k->sk));
	if (err < 0)
		return err;
	err = join(k->sk, groups);
	if (err < 0)
		return err;
	*ret = TAKE(k);
	return 0;
}

static int hand_over(const struct kern *k, ssize_t length, kern_message_fn *each, void *arg)
{
	struct nlmsghdr *hdr = (struct nlmsghdr *)k->in;
	int left = (int)length;
	int first = 0;

	for (; nlmsg_ok(hdr, left); hdr = nlmsg_next(hdr, &left))
		if (hdr->nlmsg_type >= NLMSG_MIN_TYPE)
			keep_first(&first, each(hdr, arg));
	return first;
}

int kern_events_read(struct kern *k, kern_message_fn *each, void *arg)
{
	bool lost = false;
	int first = 0;

	for (;;) {
		ssize_t n = receive(k);

		if (n == -EAGAIN)
			return lost ? -ENOBUFS : first;
		/* What was too long to read is as lost as what the kernel dropped. */
		if (n == -ENOBUFS || n == -EMSGSIZE)
			lost = true;
		else if (n < 0)
			return (int)n;
		/* After a loss the rest is worthless: a dump will tell it, and more. */
		else if (!lost)
			keep_first(&first, hand_over(k, n, each, arg));
	}
}
