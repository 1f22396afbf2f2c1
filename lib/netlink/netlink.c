/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnl builds the messages and connects the socket. Sending and receiving
 * is done here: libnl's receive loop copies every message into one of its own
 * and gives up the ack's errno and sentence.
 */
#include "lib/netlink/netlink.h"

#include <errno.h>
#include <netlink/socket.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "lib/netlink/netlink_reply.h"

/* A dump's datagram has at most 32 KiB, whatever is offered; a batch goes out in pieces of this. */
#define NETLINK_BUFFER_SIZE (64 * 1024)

#define DUMP_RESTARTS      10
#define REQUEST_RECEIVE    (1024 * 1024)
#define EVENTS_RECEIVE     (4 * 1024 * 1024)
#define ANSWER_SECONDS_MAX 10

/* What an ack takes of the receive buffer: 832 bytes as measured; more for long sentences. */
#define ACK_ROOM     2048
#define ACK_SIZE_MAX 1024
#define ACKS_AT_ONCE (NETLINK_BUFFER_SIZE / ACK_SIZE_MAX)
#define RESULT_OPEN  1 /* sent, no ack yet */

_Static_assert(sizeof(((struct netlink_op *)0)->extack) ==
		       sizeof(((struct netlink_reply *)0)->extack),
	       "a sentence is copied from one to the other");

struct netlink {
	struct nl_sock *sk;
	int fd;
	unsigned calls; /* sends and receives so far */
	uint8_t *in;    /* NETLINK_BUFFER_SIZE each */
	uint8_t *out;
	size_t out_used;
};

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

static int connect_socket(struct netlink *nl, int protocol)
{
	nl->sk = nl_socket_alloc();
	nl->in = malloc(NETLINK_BUFFER_SIZE);
	if (!nl->sk || !nl->in)
		return -ENOMEM;

	errno = 0;
	int err = libnl_errno(nl_connect(nl->sk, protocol));

	nl->fd = nl_socket_get_fd(nl->sk);
	return err;
}

static int set_request_options(int fd)
{
	const int options[] = { NETLINK_EXT_ACK, NETLINK_CAP_ACK,
				/* Without it the kernel ignores a filter it does not know, and a
				 * caller takes foreign routes for those it asked for. */
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
	err = set_option(fd, SOL_SOCKET, SO_SNDBUF, 2 * NETLINK_BUFFER_SIZE);
	return err ?: set_receive_buffer(fd, REQUEST_RECEIVE);
}

int netlink_open(int protocol, struct netlink **ret)
{
	AUTO(netlink_close) struct netlink *nl = calloc(1, sizeof(*nl));
	int err;

	if (!nl)
		return -ENOMEM;
	nl->out = malloc(NETLINK_BUFFER_SIZE);
	if (!nl->out)
		return -ENOMEM;

	err = connect_socket(nl, protocol);
	if (err < 0)
		return err;
	err = set_request_options(nl->fd);
	if (err < 0)
		return err;
	*ret = TAKE(nl);
	return 0;
}

void netlink_close(struct netlink *nl)
{
	if (!nl)
		return;
	if (nl->sk)
		nl_socket_free(nl->sk);
	free(nl->in);
	free(nl->out);
	free(nl);
}

uint32_t netlink_port(const struct netlink *nl)
{
	return nl_socket_get_local_port(nl->sk);
}

int netlink_fd(const struct netlink *nl)
{
	return nl->fd;
}

unsigned netlink_calls(const struct netlink *nl)
{
	return nl->calls;
}

/* --- sending and receiving ------------------------------------------------------------------ */

/*
 * Appends a copy of msg to out, as a request with the socket's next sequence number, which is in
 * *ret_seq. -ENOSPC if it does not fit any more.
 */
static int append(struct netlink *nl, struct nl_msg *msg, unsigned flags, uint32_t *ret_seq)
{
	const struct nlmsghdr *from = nlmsg_hdr(msg);
	size_t padded = NLMSG_ALIGN(from->nlmsg_len);
	struct nlmsghdr *to = (struct nlmsghdr *)(nl->out + nl->out_used);

	if (padded > NETLINK_BUFFER_SIZE - nl->out_used)
		return -ENOSPC;

	memset(nl->out + nl->out_used + padded - NLMSG_ALIGNTO, 0, NLMSG_ALIGNTO);
	memcpy(to, from, from->nlmsg_len);
	to->nlmsg_flags |= NLM_F_REQUEST | flags;
	to->nlmsg_pid = nl_socket_get_local_port(nl->sk);
	to->nlmsg_seq = *ret_seq = nl_socket_use_seq(nl->sk);
	nl->out_used += padded;
	return 0;
}

static int send_out(struct netlink *nl)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t n;

	nl->calls++;
	n = TEMP_FAILURE_RETRY(sendto(nl->fd, nl->out, nl->out_used, 0, (struct sockaddr *)&kernel,
				      sizeof(kernel)));
	nl->out_used = 0;
	return n < 0 ? -errno : 0;
}

/* One datagram into nl->in: its length, or -EAGAIN when nothing came. */
static ssize_t receive(struct netlink *nl)
{
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { nl->in, NETLINK_BUFFER_SIZE };
	struct msghdr m = { .msg_name = &from, .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	do {
		nl->calls++;
		m.msg_namelen = sizeof(from);
		n = TEMP_FAILURE_RETRY(recvmsg(nl->fd, &m, 0));
		/* Port 0 is the kernel; other processes can write to us as well. */
	} while (n >= 0 && from.nl_pid != 0);

	if (n < 0)
		return -errno;
	return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}

/* --- requests and dumps --------------------------------------------------------------------- */

struct exchange {
	uint32_t seq;
	netlink_message_fn *each;
	void *arg;
	bool interrupted;
	int failed; /* what each() returned */
	struct netlink_reply end;
};

static void take_reply(struct exchange *x, const struct nlmsghdr *hdr, size_t available)
{
	struct netlink_reply r;

	netlink_reply_read(hdr, available, x->seq, &r);
	x->interrupted |= r.interrupted;
	if (r.kind == NETLINK_REPLY_END)
		x->end = r;
	else if (r.kind == NETLINK_REPLY_DATA && x->each && !x->failed && !x->interrupted)
		keep_first(&x->failed, x->each(hdr, x->arg));
}

/*
 * Reads to the end also when each() has failed or the dump is known to be
 * torn: the kernel runs one dump per socket and refuses the next until then.
 */
static int exchange(struct netlink *nl, struct nl_msg *msg, unsigned flags, struct exchange *x)
{
	int err = append(nl, msg, flags, &x->seq);

	if (err < 0)
		return err == -ENOSPC ? -EMSGSIZE : err;
	err = send_out(nl);
	if (err < 0)
		return err;

	while (x->end.kind != NETLINK_REPLY_END) {
		struct nlmsghdr *hdr = (struct nlmsghdr *)nl->in;
		ssize_t n = receive(nl);
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

int netlink_get(struct netlink *nl, struct nl_msg *msg, netlink_message_fn *each, void *arg,
		struct err *err)
{
	AUTO(nlmsg_free) struct nl_msg *m = msg;
	struct exchange x = { .each = each, .arg = arg };
	int result = m ? exchange(nl, m, NLM_F_ACK, &x) : -ENOMEM;

	return result < 0 ? explain(err, result, &x) : 0;
}

int netlink_request(struct netlink *nl, struct nl_msg *msg, struct err *err)
{
	return netlink_get(nl, msg, NULL, NULL, err);
}

int netlink_dump(struct netlink *nl, struct nl_msg *msg, netlink_restart_fn *restart,
		 netlink_message_fn *each, void *arg, struct err *err)
{
	AUTO(nlmsg_free) struct nl_msg *m = msg;

	for (int i = 0; i <= DUMP_RESTARTS; i++) {
		struct exchange x = { .each = each, .arg = arg };
		int result;

		if (restart)
			restart(arg);
		result = m ? exchange(nl, m, NLM_F_DUMP, &x) : -ENOMEM;
		if (result < 0)
			return explain(err, result, &x);
		if (!x.interrupted)
			return 0;
	}
	return err_set(err, -EINTR, "changes interrupted the dump %d times in a row",
		       DUMP_RESTARTS + 1);
}

/* --- batches -------------------------------------------------------------------------------- */

/*
 * The kernel works through a piece inside the send and queues an ack for each message meanwhile; an
 * ack that finds no room in the receive buffer is lost. So a piece has no more messages than that
 * buffer has room for acks.
 */
struct piece {
	struct netlink_op *ops;
	size_t n, open;
	uint32_t first_seq; /* op i has first_seq + i; wraps */
};

/* Asked each time, for the buffer may be set through netlink_fd(). */
static size_t acks_that_fit(const struct netlink *nl)
{
	int size = 0;
	socklen_t length = sizeof(size);

	/* If it fails: one at a time always fits. */
	getsockopt(nl->fd, SOL_SOCKET, SO_RCVBUF, &size, &length);
	return size >= ACK_ROOM ? (size_t)size / ACK_ROOM : 1;
}

/* Takes as many operations as fit, at least one; an oversized message is passed over. */
static void fill(struct netlink *nl, struct netlink_op *ops, size_t n, size_t acks,
		 struct piece *ret)
{
	*ret = (struct piece){ .ops = ops };
	for (; ret->n < n && ret->open < acks; ret->n++) {
		struct netlink_op *op = &ops[ret->n];
		uint32_t seq;

		if (nlmsg_hdr(op->msg)->nlmsg_len > NETLINK_BUFFER_SIZE) {
			op->result = -EMSGSIZE;
			seq = nl_socket_use_seq(nl->sk); /* keeps numbers and places in step */
		} else if (append(nl, op->msg, NLM_F_ACK, &seq) < 0) {
			return;
		} else {
			op->result = RESULT_OPEN;
			ret->open++;
		}
		if (ret->n == 0)
			ret->first_seq = seq;
	}
}

static void take_ack(struct piece *p, const struct nlmsghdr *hdr, size_t length)
{
	uint32_t i = hdr->nlmsg_seq - p->first_seq;
	struct netlink_reply r;

	if (length < NLMSG_HDRLEN || i >= p->n || p->ops[i].result != RESULT_OPEN)
		return;
	netlink_reply_read(hdr, length, hdr->nlmsg_seq, &r);
	if (r.kind != NETLINK_REPLY_END)
		return;
	p->ops[i].result = r.error;
	memcpy(p->ops[i].extack, r.extack, sizeof(r.extack));
	p->open--;
}

/* Each ack is a datagram with one message. */
static int receive_acks(struct netlink *nl, struct piece *p, int flags)
{
	struct sockaddr_nl from[ACKS_AT_ONCE];
	struct iovec iov[ACKS_AT_ONCE];
	struct mmsghdr m[ACKS_AT_ONCE];
	unsigned want = p->open < ACKS_AT_ONCE ? (unsigned)p->open : ACKS_AT_ONCE;
	int n;

	for (unsigned i = 0; i < want; i++) {
		iov[i] = (struct iovec){ nl->in + (size_t)i * ACK_SIZE_MAX, ACK_SIZE_MAX };
		m[i].msg_hdr = (struct msghdr){ .msg_name = &from[i],
						.msg_namelen = sizeof(from[i]),
						.msg_iov = &iov[i],
						.msg_iovlen = 1 };
	}

	nl->calls++;
	n = TEMP_FAILURE_RETRY(recvmmsg(nl->fd, m, want, flags, NULL));
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	for (int i = 0; i < n; i++)
		if (from[i].nl_pid == 0)
			take_ack(p, iov[i].iov_base, m[i].msg_len);
	return 0;
}

static int collect(struct netlink *nl, struct piece *p)
{
	int err = 0;

	while (p->open > 0 && err == 0)
		err = receive_acks(nl, p, MSG_WAITFORONE);
	/* Some ack was lost. The others wait behind this notice, and later ones need their room. */
	while (p->open > 0 && err == -ENOBUFS && receive_acks(nl, p, MSG_DONTWAIT) == 0)
		;
	return p->open > 0 ? err : 0;
}

static int exchange_piece(struct netlink *nl, struct piece *p)
{
	int err = p->open > 0 ? send_out(nl) : 0;

	if (err == 0)
		err = collect(nl, p);
	for (size_t i = 0; err < 0 && i < p->n; i++)
		if (p->ops[i].result == RESULT_OPEN)
			p->ops[i].result = err;
	return err;
}

int netlink_batch(struct netlink *nl, struct netlink_op *ops, size_t n)
{
	size_t acks = acks_that_fit(nl);
	size_t done = 0;
	int refused = 0;

	for (size_t i = 0; i < n; i++) {
		ops[i].result = -ECANCELED;
		ops[i].extack[0] = '\0';
	}

	while (done < n) {
		struct piece p;
		int err;

		fill(nl, ops + done, n - done, acks, &p);
		err = exchange_piece(nl, &p);
		if (err < 0)
			return err;
		done += p.n;
	}
	for (size_t i = 0; i < n; i++)
		refused += ops[i].result < 0;
	return refused;
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

int netlink_events_open(int protocol, const unsigned *groups, size_t buffer_size,
			struct netlink **ret)
{
	AUTO(netlink_close) struct netlink *nl = calloc(1, sizeof(*nl));
	int err;

	if (!nl)
		return -ENOMEM;
	err = connect_socket(nl, protocol);
	if (err < 0)
		return err;
	/* Before joining, so that the first events already find the room. */
	err = set_receive_buffer(nl->fd, (int)(buffer_size ?: EVENTS_RECEIVE));
	if (err < 0)
		return err;
	errno = 0;
	err = libnl_errno(nl_socket_set_nonblocking(nl->sk));
	if (err < 0)
		return err;
	err = join(nl->sk, groups);
	if (err < 0)
		return err;
	*ret = TAKE(nl);
	return 0;
}

static int hand_over(const struct netlink *nl, ssize_t length, netlink_message_fn *each, void *arg)
{
	struct nlmsghdr *hdr = (struct nlmsghdr *)nl->in;
	int left = (int)length;
	int first = 0;

	for (; nlmsg_ok(hdr, left); hdr = nlmsg_next(hdr, &left))
		if (hdr->nlmsg_type >= NLMSG_MIN_TYPE)
			keep_first(&first, each(hdr, arg));
	return first;
}

int netlink_events_read(struct netlink *nl, netlink_message_fn *each, void *arg)
{
	bool lost = false;
	int first = 0;

	for (;;) {
		ssize_t n = receive(nl);

		if (n == -EAGAIN)
			return lost ? -ENOBUFS : first;
		/* What was too long to read is as lost as what the kernel dropped. */
		if (n == -ENOBUFS || n == -EMSGSIZE)
			lost = true;
		else if (n < 0)
			return (int)n;
		/* After a loss the rest is worthless: a dump will tell it, and more. */
		else if (!lost)
			keep_first(&first, hand_over(nl, n, each, arg));
	}
}
