/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netlink sockets, by libnl, with the kernel's own errors kept.
 *
 * Three uses, each its own socket: requests (netlink_request, netlink_batch), dumps
 * (netlink_dump) and events (netlink_events_open). libnl's NLE_* codes fold many
 * kernel errors into one; here a refusal is the negative errno of the ack
 * with its extended-ack sentence. A dump that the kernel marks as interrupted
 * (NLM_F_DUMP_INTR) is repeated as a whole, so what a caller gets was true at
 * one moment.
 *
 * That is so for links, addresses and nexthops. The kernel (seen on 6.18)
 * does not mark dumps of routes, rules and neighbours. IPv4 routes that stay
 * still come exactly once; an IPv6 route or a rule that stays can come twice
 * or be missed when others change meanwhile. Who needs those whole joins
 * their events first and dumps again if any came during the dump.
 *
 * Works in the network namespace of the thread that opened it.
 */
#pragma once

#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/auto.h"
#include "lib/base/err.h"

AUTO_DEFINE(struct nl_msg *, nlmsg_free)

struct netlink;

/* protocol is NETLINK_ROUTE or another family. Sets extended acks and strict dump checking. */
int netlink_open(int protocol, struct netlink **ret);
void netlink_close(struct netlink *nl);
AUTO_DEFINE(struct netlink *, netlink_close)
uint32_t netlink_port(const struct netlink *nl);  /* as events of its changes name it */
int netlink_fd(const struct netlink *nl);         /* for sd-event */
unsigned netlink_calls(const struct netlink *nl); /* sends and receives so far, for tests */

/*
 * Sends one message and waits for its ack. 0 or the kernel's negative errno,
 * with "<kernel's errno text>: <extended ack>" in err. This and the next ones
 * free the message; NULL for one is -ENOMEM.
 */
int netlink_request(struct netlink *nl, struct nl_msg *msg, struct err *err);

/* The same for a question: each answer before the ack goes to each(). */
typedef int netlink_message_fn(const struct nlmsghdr *hdr, void *arg);
int netlink_get(struct netlink *nl, struct nl_msg *msg, netlink_message_fn *each, void *arg,
		struct err *err);

/* One message of a batch, which stays the caller's: what was sent, and what the kernel said of it. */
struct netlink_op {
	struct nl_msg *msg;
	int result;       /* 0, the kernel's negative errno, -ECANCELED if never sent, or the
			     socket's own errno if sent and the ack was lost */
	char extack[120]; /* the kernel's sentence, "" if it gave none */
};

/*
 * Sends all in as few system calls as fit the socket's buffers and collects
 * an ack for each; one refusal does not stop the rest. Returns the number of
 * refused ones, or a negative errno if the socket itself failed.
 */
int netlink_batch(struct netlink *nl, struct netlink_op *ops, size_t n);

/* Called before each (re)start of the dump, so that the caller can drop what it has. */
typedef void netlink_restart_fn(void *arg);

/*
 * Sends msg with NLM_F_DUMP. Its body must be the family's own header (struct
 * rtmsg, ifinfomsg, ...) and zero but for what filters: strict checking
 * refuses all else. An interrupted dump is started again, up to ten
 * times, then -EINTR. Messages of one dump arrive in order. A negative return
 * of each() ends the dump with it; err is then for each() to set.
 */
int netlink_dump(struct netlink *nl, struct nl_msg *msg, netlink_restart_fn *restart,
		 netlink_message_fn *each, void *arg, struct err *err);

/*
 * Events: a socket of its own joined to the groups (RTNLGRP_*, 0 ends the
 * list), non-blocking, for the loop. buffer_size 0 takes 4 MiB.
 */
int netlink_events_open(int protocol, const unsigned *groups, size_t buffer_size,
			struct netlink **ret);
/*
 * Reads all that is waiting. 0 when drained; -ENOBUFS when the kernel had to
 * drop events: the caller's view is then unknown and must be dumped again. A
 * negative return of each() does not stop the reading; the first is returned.
 */
int netlink_events_read(struct netlink *nl, netlink_message_fn *each, void *arg);
