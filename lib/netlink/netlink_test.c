/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in a network namespace of its own making; each test has a routing table to itself. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "lib/netlink/netlink.h"

#define SENT_AT_ONCE (64 * 1024) /* the buffer of netlink.c */
#define LOOPBACK     1           /* the index of lo in every namespace */
#define PROTO_OURS   171
#define MANY         10000
#define NET          0x0a000000u /* 10.0.0.0 */

static bool have_namespace;

#define need_namespace()                                                                           \
	do {                                                                                       \
		if (!have_namespace) {                                                             \
			print_message("no right to make a network namespace: skipped\n");          \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

/* --- messages ------------------------------------------------------------------------------- */

static struct nl_msg *message(int type, unsigned flags, const void *body, size_t length)
{
	struct nl_msg *m = nlmsg_alloc_simple(type, (int)flags);

	assert_non_null(m);
	/* libnl takes a pointer to non-const and only copies from it. */
	assert_int_equal(nlmsg_append(m, (void *)(uintptr_t)body, length, NLMSG_ALIGNTO), 0);
	return m;
}

static struct nl_msg *route(int type, unsigned flags, uint8_t table, uint32_t dst)
{
	const struct rtmsg body = { .rtm_family = AF_INET,
				    .rtm_dst_len = 32,
				    .rtm_table = table,
				    .rtm_protocol = PROTO_OURS,
				    .rtm_scope = RT_SCOPE_LINK,
				    .rtm_type = RTN_UNICAST };
	struct nl_msg *m = message(type, flags, &body, sizeof(body));

	nla_put_u32(m, RTA_DST, htonl(dst));
	nla_put_u32(m, RTA_OIF, LOOPBACK);
	return m;
}

static struct nl_msg *new_route(uint8_t table, uint32_t dst)
{
	return route(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, table, dst);
}

static struct nl_msg *all_routes(uint8_t table)
{
	const struct rtmsg body = { .rtm_family = AF_INET, .rtm_table = table };

	return message(RTM_GETROUTE, 0, &body, sizeof(body));
}

static struct nl_msg *address(int type, uint32_t addr)
{
	const struct ifaddrmsg body = { .ifa_family = AF_INET,
					.ifa_prefixlen = 32,
					.ifa_index = LOOPBACK };
	struct nl_msg *m = message(type, NLM_F_CREATE, &body, sizeof(body));

	nla_put_u32(m, IFA_LOCAL, htonl(addr));
	return m;
}

static struct nl_msg *set_link(int index, unsigned flags)
{
	const struct ifinfomsg body = { .ifi_index = index,
					.ifi_flags = flags,
					.ifi_change = IFF_UP };

	return message(RTM_NEWLINK, 0, &body, sizeof(body));
}

static struct netlink *open_netlink(void)
{
	struct netlink *k = NULL;

	assert_int_equal(netlink_open(NETLINK_ROUTE, &k), 0);
	return k;
}

/* netlink_request() and its like free what they send; one that is used again has a reference more. */
static struct nl_msg *keep(struct nl_msg *m)
{
	nlmsg_get(m);
	return m;
}

static struct netlink_op *new_routes(uint8_t table, size_t n)
{
	struct netlink_op *ops = calloc(n, sizeof(*ops));

	assert_non_null(ops);
	for (size_t i = 0; i < n; i++)
		ops[i].msg = new_route(table, NET + (uint32_t)i);
	return ops;
}

static void free_ops(struct netlink_op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		nlmsg_free(ops[i].msg);
	free(ops);
}

/* How often each address NET + i was seen; the others are not counted. */
struct census {
	uint8_t seen[MANY];
	unsigned restarts, messages;
	struct netlink *meddler; /* with it, the first message of a dump brings a change */
	unsigned meddlings;
};

static void forget(void *arg)
{
	struct census *c = arg;

	memset(c->seen, 0, sizeof(c->seen));
	c->messages = 0;
	c->restarts++;
}

static void count_dst(struct census *c, const struct nlmsghdr *hdr, size_t body, int attribute)
{
	const struct nlattr *a = nlmsg_find_attr((struct nlmsghdr *)(uintptr_t)hdr, (int)body,
						 attribute);
	uint32_t i = a ? ntohl(nla_get_u32(a)) - NET : MANY;

	if (i < MANY)
		c->seen[i]++;
	c->messages++;
}

static int count_route(const struct nlmsghdr *hdr, void *arg)
{
	count_dst(arg, hdr, sizeof(struct rtmsg), RTA_DST);
	return 0;
}

static void assert_each_once(const struct census *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(c->seen[i], 1);
}

/* --- requests ------------------------------------------------------------------------------- */

static void a_protocol_the_kernel_lacks_is_named_by_errno(void **unused)
{
	struct netlink *k = NULL;

	assert_int_equal(netlink_open(MAX_LINKS - 1, &k), -EPROTONOSUPPORT);
	assert_null(k);
}

static void a_refusal_keeps_errno_and_the_kernels_sentence(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(nlmsg_free) struct nl_msg *m = NULL;
	struct err err = { "" };

	need_namespace();
	k = open_netlink();
	m = new_route(10, NET);
	nla_put_u32(m, RTA_GATEWAY, htonl(0xc0000209)); /* 192.0.2.9: no way there */
	assert_int_equal(netlink_request(k, keep(m), &err), -ENETUNREACH);
	assert_string_equal(err.text, "Network is unreachable: Nexthop has invalid gateway");
}

static void a_refusal_without_sentence_has_the_errno_alone(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(nlmsg_free) struct nl_msg *m = NULL;
	struct err err = { "" };

	need_namespace();
	k = open_netlink();
	m = new_route(11, NET);
	assert_int_equal(netlink_request(k, keep(m), &err), 0);
	assert_string_equal(err.text, "");
	/* The message is still ours and can be sent again. */
	assert_int_equal(netlink_request(k, keep(m), &err), -EEXIST);
	assert_string_equal(err.text, "File exists");
}

static int take_index(const struct nlmsghdr *hdr, void *arg)
{
	*(int *)arg = ((const struct ifinfomsg *)nlmsg_data(hdr))->ifi_index;
	return 0;
}

static void a_question_is_answered_before_its_ack(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(nlmsg_free) struct nl_msg *m = NULL;
	int index = 0;

	need_namespace();
	k = open_netlink();
	m = message(RTM_GETLINK, 0, &(struct ifinfomsg){ 0 }, sizeof(struct ifinfomsg));
	nla_put_string(m, IFLA_IFNAME, "lo");
	assert_int_equal(netlink_get(k, keep(m), take_index, &index, NULL), 0);
	assert_int_equal(index, LOOPBACK);
	/* Nobody listens to the answer, and the next request is not confused by it. */
	assert_int_equal(netlink_request(k, keep(m), NULL), 0);
	assert_int_equal(netlink_request(k, new_route(12, NET), NULL), 0);
}

/* --- batches -------------------------------------------------------------------------------- */

static void a_strangers_route_is_the_only_one_refused(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	const size_t n = 1000, stranger = 637;
	struct netlink_op *ops;

	need_namespace();
	k = open_netlink();
	assert_int_equal(netlink_request(k, new_route(20, NET + stranger), NULL), 0);
	ops = new_routes(20, n);
	assert_int_equal(netlink_batch(k, ops, n), 1);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(ops[i].result, i == stranger ? -EEXIST : 0);
	free_ops(ops, n);
}

static void each_refusal_of_a_batch_has_its_own_sentence(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	struct netlink_op *ops;

	need_namespace();
	k = open_netlink();
	ops = new_routes(21, 3);
	nla_put_u32(ops[1].msg, RTA_GATEWAY, htonl(0xc0000209));
	assert_int_equal(netlink_batch(k, ops, 3), 1);
	assert_string_equal(ops[0].extack, "");
	assert_string_equal(ops[1].extack, "Nexthop has invalid gateway");
	assert_string_equal(ops[2].extack, "");
	free_ops(ops, 3);
}

static void ten_thousand_go_in_few_calls_and_a_dump_gives_them_all(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(nlmsg_free) struct nl_msg *dump = NULL;
	AUTO(free) struct census *c = calloc(1, sizeof(*c));
	struct netlink_op *ops;
	unsigned before;

	need_namespace();
	k = open_netlink();
	ops = new_routes(22, MANY);
	before = netlink_calls(k);
	assert_int_equal(netlink_batch(k, ops, MANY), 0);
	/* 208 acks at a time is the worst there is, without CAP_NET_ADMIN in the first namespace.
	 */
	assert_in_range(netlink_calls(k) - before, 1, MANY / 20);
	free_ops(ops, MANY);

	dump = all_routes(22);
	assert_int_equal(netlink_dump(k, keep(dump), forget, count_route, c, NULL), 0);
	assert_int_equal(c->restarts, 1);
	assert_int_equal(c->messages, MANY);
	assert_each_once(c, MANY);
}

static void a_small_receive_buffer_costs_rounds_but_no_acks(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	const size_t n = 500;
	struct netlink_op *ops;

	need_namespace();
	k = open_netlink();
	assert_int_equal(
		setsockopt(netlink_fd(k), SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int)), 0);
	ops = new_routes(23, n);
	assert_int_equal(netlink_batch(k, ops, n), 0);
	free_ops(ops, n);
}

/* Fills the receive buffer with answers nobody reads. */
static void fill_unread(struct netlink *k, size_t n)
{
	_Alignas(4) uint8_t out[16 * 1024];
	size_t used = 0;

	assert_int_equal(
		setsockopt(netlink_fd(k), SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int)), 0);
	for (size_t i = 0; i < n; i++) {
		AUTO(nlmsg_free) struct nl_msg *m = new_route(24, NET + MANY + (uint32_t)i);
		struct nlmsghdr *hdr = nlmsg_hdr(m);

		assert_true(used + NLMSG_ALIGN(hdr->nlmsg_len) <= sizeof(out));
		hdr->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
		hdr->nlmsg_seq = (uint32_t)i + 1; /* libnl's own begin with the time of day */
		memcpy(out + used, hdr, hdr->nlmsg_len);
		used += NLMSG_ALIGN(hdr->nlmsg_len);
	}
	assert_int_equal(send(netlink_fd(k), out, used, 0), used);
}

static void a_lost_ack_is_reported_and_the_socket_goes_on(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	struct netlink_op *ops;

	need_namespace();
	k = open_netlink();
	fill_unread(k, 100);
	ops = new_routes(24, 8);
	assert_int_equal(netlink_batch(k, ops, 8), -ENOBUFS);
	assert_int_equal(ops[0].result, -ENOBUFS); /* was done, but who can tell */
	assert_int_equal(ops[7].result, -ECANCELED);
	assert_int_equal(netlink_batch(k, ops, 8), 4);
	free_ops(ops, 8);
}

static void an_oversized_message_is_refused_alone(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	struct netlink_op ops[3] = { 0 };

	need_namespace();
	k = open_netlink();
	ops[0].msg = new_route(25, NET);
	ops[1].msg = nlmsg_alloc_size(2 * SENT_AT_ONCE);
	assert_non_null(nlmsg_reserve(ops[1].msg, SENT_AT_ONCE, NLMSG_ALIGNTO));
	ops[2].msg = new_route(25, NET + 1);
	assert_int_equal(netlink_batch(k, ops, 3), 1);
	assert_int_equal(ops[0].result, 0);
	assert_int_equal(ops[1].result, -EMSGSIZE);
	assert_int_equal(ops[2].result, 0);
	assert_int_equal(netlink_request(k, keep(ops[1].msg), NULL), -EMSGSIZE);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		nlmsg_free(ops[i].msg);
}

/* --- dumps ---------------------------------------------------------------------------------- */

#define ADDRESSES 2000 /* several datagrams of them, else nothing could come in between */

static void add_addresses(struct netlink *k)
{
	static bool done;

	for (uint32_t i = 0; i < ADDRESSES && !done; i++)
		assert_int_equal(netlink_request(k, address(RTM_NEWADDR, NET + i), NULL), 0);
	done = true;
}

static int count_address(const struct nlmsghdr *hdr, void *arg)
{
	struct census *c = arg;

	count_dst(c, hdr, sizeof(struct ifaddrmsg), IFA_LOCAL);
	if (c->messages == 1 && c->meddlings > 0) {
		c->meddlings--;
		assert_int_equal(netlink_request(c->meddler,
						 address(RTM_DELADDR, NET + ADDRESSES - 1), NULL),
				 0);
		assert_int_equal(netlink_request(c->meddler,
						 address(RTM_NEWADDR, NET + ADDRESSES - 1), NULL),
				 0);
	}
	return 0;
}

static int dump_addresses_with(unsigned meddlings, struct census *c, struct err *err)
{
	AUTO(netlink_close) struct netlink *k = open_netlink();
	AUTO(netlink_close) struct netlink *meddler = open_netlink();
	AUTO(nlmsg_free) struct nl_msg *dump = NULL;
	const struct ifaddrmsg body = { .ifa_family = AF_INET };

	add_addresses(k);
	*c = (struct census){ .meddler = meddler, .meddlings = meddlings };
	dump = message(RTM_GETADDR, 0, &body, sizeof(body));
	return netlink_dump(k, keep(dump), forget, count_address, c, err);
}

static void an_interrupted_dump_starts_again_and_is_whole(void **unused)
{
	AUTO(free) struct census *c = calloc(1, sizeof(*c));

	need_namespace();
	assert_int_equal(dump_addresses_with(3, c, NULL), 0);
	assert_int_equal(c->restarts, 4);
	assert_each_once(c, ADDRESSES);
}

static void a_dump_that_is_always_interrupted_gives_up(void **unused)
{
	AUTO(free) struct census *c = calloc(1, sizeof(*c));
	struct err err = { "" };

	need_namespace();
	assert_int_equal(dump_addresses_with(1000, c, &err), -EINTR);
	assert_int_equal(c->restarts, 11);
	assert_string_equal(err.text, "changes interrupted the dump 11 times in a row");
}

static int stop_at_third(const struct nlmsghdr *hdr, void *arg)
{
	return ++*(int *)arg == 3 ? -EDOM : 0;
}

static void a_caller_can_end_a_dump_and_start_the_next(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(nlmsg_free) struct nl_msg *dump = NULL;
	AUTO(free) struct census *c = calloc(1, sizeof(*c));
	struct netlink_op *ops;
	int n = 0;

	need_namespace();
	k = open_netlink();
	ops = new_routes(31, 3000);
	assert_int_equal(netlink_batch(k, ops, 3000), 0);
	free_ops(ops, 3000);
	dump = all_routes(31);
	assert_int_equal(netlink_dump(k, keep(dump), NULL, stop_at_third, &n, NULL), -EDOM);
	assert_int_equal(n, 3);
	assert_int_equal(netlink_dump(k, keep(dump), NULL, count_route, c, NULL), 0);
	assert_each_once(c, 3000);
}

static void a_filter_the_kernel_does_not_know_is_refused(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(nlmsg_free) struct nl_msg *dump = NULL;
	struct err err = { "" };
	int n = 0;

	need_namespace();
	k = open_netlink();
	dump = all_routes(RT_TABLE_MAIN);
	nla_put_u32(dump, RTA_PRIORITY, 7);
	assert_int_equal(netlink_dump(k, keep(dump), NULL, stop_at_third, &n, &err), -EINVAL);
	assert_string_equal(err.text, "Invalid argument: Unsupported attribute in dump request");
	assert_int_equal(n, 0);
}

/* Adds and removes every other address beyond MANY / 2 until told to stop. */
struct churn {
	atomic_bool stop;
	atomic_uint rounds;
	bool failed;
};

static void *churn(void *arg)
{
	struct churn *ch = arg;
	AUTO(netlink_close) struct netlink *k = NULL;

	ch->failed = netlink_open(NETLINK_ROUTE, &k) < 0;
	while (!ch->failed && !ch->stop) {
		uint32_t dst = NET + 1 + 2 * (ch->rounds++ % (MANY / 2));

		if (netlink_request(k, new_route(33, dst), NULL) < 0 ||
		    netlink_request(k, route(RTM_DELROUTE, 0, 33, dst), NULL) < 0)
			ch->failed = true;
	}
	return NULL;
}

static void routes_that_stay_come_once_while_others_come_and_go(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(nlmsg_free) struct nl_msg *dump = NULL;
	AUTO(free) struct census *c = calloc(1, sizeof(*c));
	struct churn ch = { 0 };
	struct netlink_op *ops;
	pthread_t thread;

	need_namespace();
	k = open_netlink();
	ops = calloc(MANY / 2, sizeof(*ops));
	for (uint32_t i = 0; i < MANY / 2; i++)
		ops[i].msg = new_route(33, NET + 2 * i);
	assert_int_equal(netlink_batch(k, ops, MANY / 2), 0);
	free_ops(ops, MANY / 2);

	dump = all_routes(33);
	assert_int_equal(pthread_create(&thread, NULL, churn, &ch), 0);
	while (ch.rounds == 0 && !ch.failed)
		sched_yield();
	for (int i = 0; i < 30; i++) {
		assert_int_equal(netlink_dump(k, keep(dump), forget, count_route, c, NULL), 0);
		for (size_t j = 0; j < MANY; j += 2)
			assert_int_equal(c->seen[j], 1);
		for (size_t j = 1; j < MANY; j += 2)
			assert_in_range(c->seen[j], 0, 1);
	}
	ch.stop = true;
	pthread_join(thread, NULL);
	assert_false(ch.failed);
	assert_true(ch.rounds > 1);
}

/* --- events --------------------------------------------------------------------------------- */

struct happened {
	unsigned links, routes, others;
	int answer;
};

static int note(const struct nlmsghdr *hdr, void *arg)
{
	struct happened *h = arg;

	if (hdr->nlmsg_type == RTM_NEWLINK || hdr->nlmsg_type == RTM_DELLINK)
		h->links++;
	else if (hdr->nlmsg_type == RTM_NEWROUTE || hdr->nlmsg_type == RTM_DELROUTE)
		h->routes++;
	else
		h->others++;
	return h->answer;
}

static struct netlink *open_events(size_t buffer_size)
{
	const unsigned groups[] = { RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, 0 };
	struct netlink *k = NULL;

	assert_int_equal(netlink_events_open(NETLINK_ROUTE, groups, buffer_size, &k), 0);
	return k;
}

static void events_of_links_and_routes_arrive(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(netlink_close) struct netlink *events = NULL;
	struct happened h = { 0 };

	need_namespace();
	k = open_netlink();
	events = open_events(0);
	assert_int_equal(netlink_events_read(events, note, &h), 0);
	assert_int_equal(h.links + h.routes, 0);

	assert_int_equal(netlink_request(k, set_link((int)if_nametoindex("roost0"), IFF_UP), NULL),
			 0);
	assert_int_equal(netlink_request(k, set_link((int)if_nametoindex("roost0"), 0), NULL), 0);
	assert_int_equal(netlink_events_read(events, note, &h), 0);
	assert_true(h.links >= 2);
	assert_int_equal(h.routes, 0);

	h = (struct happened){ 0 };
	assert_int_equal(netlink_request(k, new_route(40, NET), NULL), 0);
	assert_int_equal(netlink_request(k, route(RTM_DELROUTE, 0, 40, NET), NULL), 0);
	assert_int_equal(netlink_events_read(events, note, &h), 0);
	assert_int_equal(h.routes, 2);
	assert_int_equal(h.links + h.others, 0);
}

static void a_failing_reader_still_gets_every_event(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(netlink_close) struct netlink *events = NULL;
	struct happened h = { .answer = -ENOMEM };

	need_namespace();
	k = open_netlink();
	events = open_events(0);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(netlink_request(k, new_route(41, NET + i), NULL), 0);
	assert_int_equal(netlink_events_read(events, note, &h), -ENOMEM);
	assert_int_equal(h.routes, 5);
}

static void dropped_events_are_reported_once(void **unused)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(netlink_close) struct netlink *events = NULL;
	struct happened h = { 0 };
	struct netlink_op *ops;

	need_namespace();
	k = open_netlink();
	events = open_events(4096);
	ops = new_routes(42, 1000);
	assert_int_equal(netlink_batch(k, ops, 1000), 0);
	free_ops(ops, 1000);
	assert_int_equal(netlink_events_read(events, note, &h), -ENOBUFS);

	h = (struct happened){ 0 };
	assert_int_equal(netlink_request(k, route(RTM_DELROUTE, 0, 42, NET), NULL), 0);
	assert_int_equal(netlink_events_read(events, note, &h), 0);
	assert_int_equal(h.routes, 1);
}

static void the_default_buffer_holds_thousands_of_events(void **unused)
{
	AUTO(netlink_close) struct netlink *events = NULL;
	int size = 0;
	socklen_t length = sizeof(size);

	need_namespace();
	events = open_events(0);
	assert_int_equal(getsockopt(netlink_fd(events), SOL_SOCKET, SO_RCVBUF, &size, &length), 0);
	/* Less only where neither the right nor the host's limit gives it. */
	if (size < 2 * 4 * 1024 * 1024)
		skip();
}

/* --- namespace ------------------------------------------------------------------------------ */

static int enter_namespace(void **unused)
{
	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return 0; /* each test says that it is skipped */
	have_namespace = true;

	AUTO(netlink_close) struct netlink *k = open_netlink();
	AUTO(nlmsg_free) struct nl_msg *veth = NULL;
	struct nlattr *info;

	veth = message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &(struct ifinfomsg){ 0 },
		       sizeof(struct ifinfomsg));
	nla_put_string(veth, IFLA_IFNAME, "roost0");
	info = nla_nest_start(veth, IFLA_LINKINFO);
	nla_put_string(veth, IFLA_INFO_KIND, "veth");
	nla_nest_end(veth, info);
	return netlink_request(k, keep(veth), NULL)
		       ?: netlink_request(k, set_link(LOOPBACK, IFF_UP), NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_protocol_the_kernel_lacks_is_named_by_errno),
		cmocka_unit_test(a_refusal_keeps_errno_and_the_kernels_sentence),
		cmocka_unit_test(a_refusal_without_sentence_has_the_errno_alone),
		cmocka_unit_test(a_question_is_answered_before_its_ack),
		cmocka_unit_test(a_strangers_route_is_the_only_one_refused),
		cmocka_unit_test(each_refusal_of_a_batch_has_its_own_sentence),
		cmocka_unit_test(ten_thousand_go_in_few_calls_and_a_dump_gives_them_all),
		cmocka_unit_test(a_small_receive_buffer_costs_rounds_but_no_acks),
		cmocka_unit_test(a_lost_ack_is_reported_and_the_socket_goes_on),
		cmocka_unit_test(an_oversized_message_is_refused_alone),
		cmocka_unit_test(an_interrupted_dump_starts_again_and_is_whole),
		cmocka_unit_test(a_dump_that_is_always_interrupted_gives_up),
		cmocka_unit_test(a_caller_can_end_a_dump_and_start_the_next),
		cmocka_unit_test(a_filter_the_kernel_does_not_know_is_refused),
		cmocka_unit_test(routes_that_stay_come_once_while_others_come_and_go),
		cmocka_unit_test(events_of_links_and_routes_arrive),
		cmocka_unit_test(a_failing_reader_still_gets_every_event),
		cmocka_unit_test(dropped_events_are_reported_once),
		cmocka_unit_test(the_default_buffer_holds_thousands_of_events),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
