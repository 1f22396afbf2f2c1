/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct kern, for kern*.c and their tests alone. */
#pragma once

#include <sys/types.h>

#include "lib/netlink/kern.h"

/* A dump's datagram has at most 32 KiB, whatever is offered; a batch goes out in pieces of this. */
#define KERN_BUFFER_SIZE (64 * 1024)

struct kern {
	struct nl_sock *sk;
	int fd;
	unsigned calls; /* sends and receives so far */
	uint8_t *in;    /* KERN_BUFFER_SIZE each */
	uint8_t *out;
	size_t out_used;
};

/*
 * Appends a copy of msg to out, as a request with the socket's next sequence
 * number, which is in *ret_seq. -ENOSPC if it does not fit any more.
 */
int kern_out_append(struct kern *k, struct nl_msg *msg, unsigned flags, uint32_t *ret_seq);
int kern_out_send(struct kern *k);
