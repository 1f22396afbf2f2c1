/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many requests, few system calls: a piece of the batch goes out in one send,
 * the acks come back many to a call.
 *
 * The kernel works through a piece inside the send and queues an ack for each
 * message meanwhile; an ack that finds no room in the receive buffer is lost.
 * So a piece has no more messages than that buffer has room for acks.
 */
#include <errno.h>
#include <netlink/socket.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/netlink/kern.h"
#include "lib/netlink/kern_reply.h"
#include "lib/netlink/kern_socket.h"

/* What an ack takes of the receive buffer: 832 bytes as measured; more for long sentences. */
#define ACK_ROOM     2048
#define ACK_SIZE_MAX 1024
#define ACKS_AT_ONCE (KERN_BUFFER_SIZE / ACK_SIZE_MAX)
#define RESULT_OPEN  1 /* sent, no ack yet */

_Static_assert(sizeof(((struct kern_op *)0)->extack) == sizeof(((struct kern_reply *)0)->extack),
	       "a sentence is copied from one to the other");

struct piece {
	struct kern_op *ops;
	size_t n, open;
	uint32_t first_seq; /* op i has first_seq + i; wraps */
};

/* Asked each time, for the buffer may be set through kern_fd(). */
static size_t acks_that_fit(const struct kern *k)
{
	int size = 0;
	socklen_t length = sizeof(size);

	/* If it fails: one at a time always fits. */
	getsockopt(k->fd, SOL_SOCKET, SO_RCVBUF, &size, &length);
	return size >= ACK_ROOM ? (size_t)size / ACK_ROOM : 1;
}

/* Takes as many operations as fit, at least one; an oversized message is passed over. */
static void fill(struct kern *k, struct kern_op *ops, size_t n, size_t acks, struct piece *ret)
{
	*ret = (struct piece){ .ops = ops };
	for (; ret->n < n && ret->open < acks; ret->n++) {
		struct kern_op *op = &ops[ret->n];
		uint32_t seq;

		if (nlmsg_hdr(op->msg)->nlmsg_len > KERN_BUFFER_SIZE) {
			op->result = -EMSGSIZE;
			seq = nl_socket_use_seq(k->sk); /* keeps numbers and places in step */
		} else if (kern_out_append(k, op->msg, NLM_F_ACK, &seq) < 0) {
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
	struct kern_reply r;

	if (length < NLMSG_HDRLEN || i >= p->n || p->ops[i].result != RESULT_OPEN)
		return;
	kern_reply_read(hdr, length, hdr->nlmsg_seq, &r);
	if (r.kind != KERN_REPLY_END)
		return;
	p->ops[i].result = r.error;
	memcpy(p->ops[i].extack, r.extack, sizeof(r.extack));
	p->open--;
}

/* Each ack is a datagram with one message. */
static int receive_acks(struct kern *k, struct piece *p, int flags)
{
	struct sockaddr_nl from[ACKS_AT_ONCE];
	struct iovec iov[ACKS_AT_ONCE];
	struct mmsghdr m[ACKS_AT_ONCE];
	unsigned want = p->open < ACKS_AT_ONCE ? (unsigned)p->open : ACKS_AT_ONCE;
	int n;

	for (unsigned i = 0; i < want; i++) {
		iov[i] = (struct iovec){ k->in + (size_t)i * ACK_SIZE_MAX, ACK_SIZE_MAX };
		m[i].msg_hdr = (struct msghdr){ .msg_name = &from[i],
						.msg_namelen = sizeof(from[i]),
						.msg_iov = &iov[i],
						.msg_iovlen = 1 };
	}

	k->calls++;
	n = TEMP_FAILURE_RETRY(recvmmsg(k->fd, m, want, flags, NULL));
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	for (int i = 0; i < n; i++)
		if (from[i].nl_pid == 0)
			take_ack(p, iov[i].iov_base, m[i].msg_len);
	return 0;
}

static int collect(struct kern *k, struct piece *p)
{
	int err = 0;

	while (p->open > 0 && err == 0)
		err = receive_acks(k, p, MSG_WAITFORONE);
	/* Some ack was lost. The others wait behind this notice, and later ones need their room. */
	while (p->open > 0 && err == -ENOBUFS && receive_acks(k, p, MSG_DONTWAIT) == 0)
		;
	return p->open > 0 ? err : 0;
}

static int exchange_piece(struct kern *k, struct piece *p)
{
	int err = p->open > 0 ? kern_out_send(k) : 0;

	if (err == 0)
		err = collect(k, p);
	for (size_t i = 0; err < 0 && i < p->n; i++)
		if (p->ops[i].result == RESULT_OPEN)
			p->ops[i].result = err;
	return err;
}

int kern_batch(struct kern *k, struct kern_op *ops, size_t n)
{
	size_t acks = acks_that_fit(k);
	size_t done = 0;
	int refused = 0;

	for (size_t i = 0; i < n; i++) {
		ops[i].result = -ECANCELED;
		ops[i].extack[0] = '\0';
	}

	while (done < n) {
		struct piece p;
		int err;

		fill(k, ops + done, n - done, acks, &p);
		err = exchange_piece(k, &p);
		if (err < 0)
			return err;
		done += p.n;
	}
	for (size_t i = 0; i < n; i++)
		refused += ops[i].result < 0;
	return refused;
}
