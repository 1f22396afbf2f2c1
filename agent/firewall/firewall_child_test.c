/* SPDX-License-Identifier: Apache-2.0 */
/* The child against a real kernel, in a network namespace of its own; nft(8) is the somebody. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/firewall/firewall_child.h"
#include "agent/firewall/firewall_netlink.h"

#define LIBRARY "libnftables.so.1"
#define TABLE   "table inet roost\ndelete table inet roost\ntable inet roost {\n"
#define NAT                                                                                        \
	"chain nat_outgoing {\ntype nat hook postrouting priority srcnat\n"                        \
	"ip saddr 10.1.0.0/16 masquerade\n}\n"
#define REFUSED "chain c {\njump nowhere\n}\n"

static sd_event *event;
static struct child_result got;
static char said[CHILD_OUTPUT_MAX + 1];

static void on_done(const struct child_result *result, void *arg)
{
	got = *result;
	memcpy(said, result->output, result->len + 1);
	got.output = said;
	*(bool *)arg = true;
}

static int do_job(const struct firewall_job *job, struct firewall_verdict *ret, struct err *err)
{
	struct firewall_job copy = *job;
	struct child *c = NULL;
	bool done = false;

	if (!copy.library)
		copy.library = LIBRARY;
	assert_int_equal(child_start(event,
				     &(struct child_options){ .run = firewall_child,
							      .run_arg = &copy,
							      .on_done = on_done,
							      .arg = &done },
				     &c),
			 0);
	while (!done)
		assert_true(sd_event_run(event, UINT64_MAX) >= 0);
	return firewall_verdict(&got, ret, err);
}

static struct firewall_verdict done_well(const struct firewall_job *job)
{
	struct firewall_verdict v = { 0 };
	struct err err = { "" };

	assert_int_equal(do_job(job, &v, &err), 0);
	assert_string_equal(err.text, "");
	return v;
}

static int nft(const char *line)
{
	char command[512];

	snprintf(command, sizeof(command), "nft '%s' >/dev/null 2>&1", line);
	return system(command); // NOLINT
}

/* Where it is not so, nothing here can be shown. */
static void need_nftables(void)
{
	if (nft("add table inet probe; delete table inet probe") == 0)
		return;
	print_message("skipped: nft(8) or the kernel's nf_tables is missing\n");
	skip();
}

static int set_up(void **state)
{
	return unshare(CLONE_NEWNET) < 0 || sd_event_new(&event) < 0;
}

static int tear_down(void **state)
{
	sd_event_unref(event);
	return 0;
}

static bool equal(struct hash a, struct hash b)
{
	return a.low == b.low && a.high == b.high;
}

static void what_stands_is_left_and_what_was_changed_is_set_again(void **state)
{
	struct firewall_job job = { .texts = { (char[]){ TABLE NAT "}\n" } },
				    .parts = { FIREWALL_NAT },
				    .n = 1 };
	struct firewall_verdict first, v;

	need_nftables();
	first = done_well(&job);
	assert_int_equal(first.did, FIREWALL_SET);
	assert_int_equal(first.parts, FIREWALL_NAT);
	assert_string_equal(first.refused.text, "");
	job.compare = true;
	job.expect = first.digest;
	v = done_well(&job);
	assert_int_equal(v.did, FIREWALL_SAME);
	assert_int_equal(v.generation, first.generation);
	assert_int_equal(v.parts, FIREWALL_NAT);
	assert_int_equal(nft("flush chain inet roost nat_outgoing"), 0);
	v = done_well(&job);
	assert_int_equal(v.did, FIREWALL_SET);
	assert_true(equal(v.digest, first.digest));
	assert_int_equal(nft("flush ruleset"), 0);
	assert_int_equal(done_well(&job).did, FIREWALL_SET);
	/* Others' do not count. */
	assert_int_equal(nft("add table inet other"), 0);
	assert_int_equal(done_well(&job).did, FIREWALL_SAME);
	assert_int_equal(done_well(&(struct firewall_job){ 0 }).did, FIREWALL_GONE);
	assert_int_not_equal(nft("list table inet roost"), 0);
	assert_int_equal(nft("list table inet other"), 0);
}

static void a_part_that_the_kernel_refuses_does_not_take_the_other_with_it(void **state)
{
	struct firewall_job job = {
		.texts = { (char[]){ TABLE NAT REFUSED "}\n" }, (char[]){ TABLE NAT "}\n" },
			   (char[]){ TABLE REFUSED "}\n" } },
		.parts = { FIREWALL_NAT | FIREWALL_SOURCES, FIREWALL_NAT, FIREWALL_SOURCES },
		.n = 3
	};
	struct firewall_verdict v;
	struct err err = { "" };

	need_nftables();
	v = done_well(&job);
	assert_int_equal(v.did, FIREWALL_SET);
	assert_int_equal(v.parts, FIREWALL_NAT);
	assert_non_null(strstr(v.refused.text, "No such file or directory"));
	/* What stood stays, if all is refused. */
	job.texts[0] = job.texts[1] = job.texts[2];
	assert_int_equal(do_job(&job, &v, &err), -EINVAL);
	assert_non_null(strstr(err.text, "No such file or directory"));
	assert_int_equal(nft("list chain inet roost nat_outgoing"), 0);
}

static void a_library_that_is_not_there_is_named(void **state)
{
	struct firewall_verdict v;
	struct err err = { "" };

	assert_int_equal(do_job(&(struct firewall_job){ .library = "libnowhere.so.1" }, &v, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "libnowhere.so.1"));
	assert_non_null(strstr(err.text, "install Debian's package libnftables1"));
}

static void an_answer_that_makes_no_sense_is_an_error(void **state)
{
	static const char *const answers[] = { "", "same", "same 1 2 3\n", "set x 2 3 4\n" };
	struct firewall_verdict v;
	struct err err;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		assert_int_equal(
			firewall_verdict(&(struct child_result){ .output = answers[i] }, &v, &err),
			-EINVAL);
	assert_int_equal(
		firewall_verdict(&(struct child_result){ .output = "busy 0 7 0 0\n\n" }, &v, &err),
		0);
	assert_int_equal(v.did, FIREWALL_BUSY);
	assert_int_equal(v.generation, 7);
}

/* --- events --------------------------------------------------------------------------------- */

static void take(struct firewall_news *news, int type, uint8_t family, const char *table,
		 uint32_t generation)
{
	struct nl_msg *msg = nlmsg_alloc_simple((NFNL_SUBSYS_NFTABLES << 8) | type, 0);
	struct nfgenmsg body = { .nfgen_family = family };

	nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO);
	if (table) {
		nla_put_string(msg, NFTA_TABLE_NAME, table);
	} else {
		nla_put_u32(msg, NFTA_GEN_ID, htonl(generation));
		nla_put_u32(msg, NFTA_GEN_PROC_PID, htonl(42));
		nla_put_string(msg, NFTA_GEN_PROC_NAME, "firewalld");
	}
	assert_int_equal(firewall_news_take(nlmsg_hdr(msg), news), 0);
	nlmsg_free(msg);
}

static void only_our_table_makes_news_and_its_generation_says_when(void **state)
{
	struct firewall_news news = { 0 };

	take(&news, NFT_MSG_NEWRULE, NFPROTO_IPV4, "roost", 0);
	take(&news, NFT_MSG_NEWRULE, NFPROTO_INET, "roos", 0);
	take(&news, NFT_MSG_DELTABLE, NFPROTO_INET, "roost2", 0);
	take(&news, NFT_MSG_NEWGEN, NFPROTO_UNSPEC, NULL, 6);
	assert_false(news.touched);
	assert_false(firewall_news_since(&news, 0));
	take(&news, NFT_MSG_DELRULE, NFPROTO_INET, "roost", 0);
	assert_true(firewall_news_since(&news, 6));
	take(&news, NFT_MSG_NEWGEN, NFPROTO_UNSPEC, NULL, 7);
	assert_true(news.touched);
	assert_int_equal(news.generation, 7);
	assert_string_equal(news.by, "firewalld (process 42)");
	assert_true(firewall_news_since(&news, 6));
	assert_false(firewall_news_since(&news, 7));
	assert_true(firewall_news_since(&news, UINT32_MAX));
}

static void the_kernel_tells_the_same(void **state)
{
	struct netlink *events = NULL, *k = NULL;
	struct firewall_news news = { 0 };
	struct err err = { "" };
	uint32_t generation = 0;

	need_nftables();
	assert_int_equal(firewall_events_open(&events), 0);
	assert_int_equal(netlink_open(NETLINK_NETFILTER, &k), 0);
	assert_int_equal(firewall_table_there(k, &err), 0);
	assert_int_equal(nft("add table inet roost; add set inet roost s { type ipv4_addr; }"), 0);
	assert_int_equal(firewall_table_there(k, &err), 1);
	assert_int_equal(firewall_generation(k, &generation, &err), 0);
	assert_int_equal(netlink_events_read(events, firewall_news_take, &news), 0);
	assert_true(news.touched);
	assert_int_equal(news.generation, generation);
	assert_non_null(strstr(news.by, "nft (process "));
	assert_false(firewall_news_since(&news, generation));
	assert_int_equal(nft("add element inet roost s { 10.0.0.1 }"), 0);
	assert_int_equal(nft("add table ip roost"), 0);
	assert_int_equal(netlink_events_read(events, firewall_news_take, &news), 0);
	assert_int_equal(news.generation, generation + 1);
	netlink_close(k);
	netlink_close(events);
}

static void drops_are_counted(void **state)
{
	struct netlink *k = NULL;
	struct firewall_drops drops;
	struct err err = { "" };

	need_nftables();
	assert_int_equal(netlink_open(NETLINK_NETFILTER, &k), 0);
	assert_int_equal(firewall_read_drops(k, &drops, &err), 0);
	assert_int_equal(drops.packets[FIREWALL_DROP_VXLAN], 0);
	assert_int_equal(nft("table inet roost { counter drop_vxlan { packets 7 bytes 70; }; "
			     "counter drop_sour { packets 8 bytes 80; }; "
			     "counter drop_source { packets 4294967297 bytes 90; }; }; "
			     "table inet other { counter drop_loopback { packets 9 bytes 9; }; }"),
			 0);
	assert_int_equal(firewall_read_drops(k, &drops, &err), 0);
	assert_int_equal(drops.packets[FIREWALL_DROP_VXLAN], 7);
	assert_int_equal(drops.packets[FIREWALL_DROP_SOURCE], 4294967297);
	assert_int_equal(drops.packets[FIREWALL_DROP_LOOPBACK], 0);
	netlink_close(k);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_stands_is_left_and_what_was_changed_is_set_again),
		CASE(a_part_that_the_kernel_refuses_does_not_take_the_other_with_it),
		CASE(a_library_that_is_not_there_is_named),
		CASE(an_answer_that_makes_no_sense_is_an_error),
		CASE(only_our_table_makes_news_and_its_generation_says_when),
		CASE(the_kernel_tells_the_same),
		CASE(drops_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
