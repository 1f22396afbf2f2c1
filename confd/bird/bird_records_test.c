/* SPDX-License-Identifier: Apache-2.0 */
/* Each expectation holds for all versions, but for what the comment says. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "confd/bird/bird_golden.h"
#include "confd/bird/bird_reply.h"

static struct bird_reader reader;

/* A reply made up for the purpose. */
static struct bird_reply reply_of(const char *bytes)
{
	struct bird_reply reply = { 0 };
	size_t used;

	bird_reader_next(&reader);
	assert_int_equal(bird_reader_feed(&reader, bytes, strlen(bytes), &used, &reply), 1);
	return reply;
}

static struct bird_reply real(const char *version, const char *command, int nth)
{
	struct bird_reply reply = { 0 };

	bird_reader_next(&reader);
	golden(version, command, nth, &reader, &reply);
	return reply;
}

/* --- status --------------------------------------------------------------------------------- */

static void versions_are_read(void **state)
{
	static const struct {
		const char *text;
		struct bird_version v;
	} good[] = {
		{ "BIRD 2.0.12 ready.", { 2, 0, 12 } },
		{ "BIRD 2.17 ready.", { 2, 17, 0 } },
		{ "BIRD 3.1.7", { 3, 1, 7 } },
		{ "BIRD v2.0.12-3-g12ab ready.", { 2, 0, 12 } },
		{ "BIRD 3 ready.", { 3, 0, 0 } },
	};
	static const char *const bad[] = { "", "BIRD", "BIRD ready", "FRR 8.4", "BIRD 2. ready" };
	struct bird_version v;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(bird_version_parse(good[i].text, &v), 0);
		assert_memory_equal(&v, &good[i].v, sizeof(v));
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(bird_version_parse(bad[i], &v), -EBADMSG);
}

static void status_is_read(void **state)
{
	static const struct bird_version versions[] = { { 2, 0, 12 }, { 2, 17, 5 }, { 3, 1, 7 } };
	struct bird_status s;
	struct bird_reply reply;

	for (size_t i = 0; i < ARRAY_SIZE(golden_versions); i++) {
		reply = real(golden_versions[i], "show status", 0);
		assert_int_equal(bird_status_parse(&reply, &s), 0);
		assert_memory_equal(&s.version, &versions[i], sizeof(s.version));
		assert_string_equal(s.router_id, "192.168.50.1");
		assert_string_equal(s.hostname, "n1");
		assert_string_equal(s.state, "Daemon is up and running");
		assert_int_equal(strlen(s.server_time), strlen("2026-11-16 23:27:16.114"));
		assert_string_equal(s.last_reboot, s.last_reconfiguration);
		assert_true(s.recovering);
		assert_int_equal(s.waiting_for, 5);

		reply = real(golden_versions[i], "show status", 1);
		assert_int_equal(bird_status_parse(&reply, &s), 0);
		assert_false(s.recovering);
		assert_int_equal(s.waiting_for, 0);
	}
	reply = reply_of("9001 syntax error\n");
	assert_int_equal(bird_status_parse(&reply, &s), -EBADMSG);
}

static void the_outcome_of_configure_is_read(void **state)
{
	static const struct {
		const char *reply;
		enum bird_progress is;
	} cases[] = {
		{ "0002-Reading configuration from f\n0003 Reconfigured\n", BIRD_PROGRESS_DONE },
		{ "0002-Reading configuration from f\n0004 Reconfiguration in progress\n",
		  BIRD_PROGRESS_RUNNING },
		{ "0002-Reading configuration from f\n0005 Reconfiguration already in progress, "
		  "queueing new config\n",
		  BIRD_PROGRESS_QUEUED },
		{ "0002-R\n0006 Reconfiguration ignored, shutting down\n", BIRD_PROGRESS_SHUTDOWN },
		{ "0002-R\n8002 f:1:2 syntax error\n", BIRD_PROGRESS_REFUSED },
		{ "8007 Access denied\n", BIRD_PROGRESS_DENIED },
		{ "9001 syntax error\n", BIRD_PROGRESS_UNKNOWN },
		{ "0000 \n", BIRD_PROGRESS_UNKNOWN },
	};
	struct bird_reply reply;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		reply = reply_of(cases[i].reply);
		assert_string_equal(bird_progress_name(bird_configure_parse(&reply)),
				    bird_progress_name(cases[i].is));
	}
	/* With BFD or OSPF a configure that changes nothing takes BIRD 3 a while. */
	for (size_t i = 0; i < ARRAY_SIZE(golden_versions); i++) {
		reply = real(golden_versions[i], "configure", 0);
		assert_int_equal(bird_configure_parse(&reply),
				 i == 2 ? BIRD_PROGRESS_RUNNING : BIRD_PROGRESS_DONE);
		reply = real(golden_versions[i], "configure", 1);
		assert_int_equal(bird_configure_parse(&reply), BIRD_PROGRESS_DENIED);
	}
}

static void the_age_of_a_configuration_is_told_by_two_times(void **state)
{
	struct bird_status s = { .server_time = "2026-11-17 00:00:01.598",
				 .last_reconfiguration = "2026-11-16 23:59:59.600" };
	int64_t age = 0;

	assert_int_equal(bird_status_age_ms(&s, &age), 0);
	assert_int_equal(age, 1998);
	strcpy(s.server_time, "2026-11-17 00:00:01");
	assert_int_equal(bird_status_age_ms(&s, &age), 0);
	assert_int_equal(age, 1400);
	for (size_t i = 0; i < 4; i++) {
		static const char *const others[] = { "", "17 Nov 2026", "2026-11-17 00:00:01.5",
						      "2026-11-17 00:00:01.598Z" };

		strcpy(s.server_time, others[i]);
		assert_int_equal(bird_status_age_ms(&s, &age), -EBADMSG);
	}
}

static void the_status_of_configure_is_its_first_line(void **state)
{
	struct bird_reply reply;

	reply = reply_of("0004-Reconfiguration in progress\n0000 \n");
	assert_int_equal(bird_configure_status_parse(&reply), BIRD_PROGRESS_RUNNING);
	reply = reply_of("0005-Reconfiguration in progress, next one enqueued\n"
			 "0022-Configuration unconfirmed, undo in 4.9 s\n0000 \n");
	assert_int_equal(bird_configure_status_parse(&reply), BIRD_PROGRESS_QUEUED);
	reply = reply_of("0003-Daemon is up and running\n0000 \n");
	assert_int_equal(bird_configure_status_parse(&reply), BIRD_PROGRESS_DONE);
}

/* --- protocols ------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct bird_protocol *)a)->name,
		      ((const struct bird_protocol *)b)->name);
}

static void print(const struct bird_protocols *list, char *to, size_t room)
{
	size_t n = 0;

	for (const struct bird_protocol *p = list->v; p < list->v + list->n; p++) {
		const struct bird_channel *c = bird_protocol_channels(list, p);

		n += (size_t)snprintf(to + n, room - n, "%s %s %s %s", p->name, p->proto, p->table,
				      p->state);
		if (p->bgp_state[0])
			n += (size_t)snprintf(to + n, room - n,
					      " [%s %s AS%" PRIu32 ">AS%" PRIu32 " %s%s]",
					      p->bgp_state, p->neighbor, p->local_as,
					      p->neighbor_as, p->last_error, p->description);
		for (size_t i = 0; i < p->n_channels; i++) {
			n += (size_t)snprintf(to + n, room - n, " %s %s %s", c[i].name, c[i].table,
					      c[i].state);
			if (c[i].counted)
				n += (size_t)snprintf(to + n, room - n,
						      " %" PRIu64 "/%" PRIu64 "/%" PRIu64,
						      c[i].imported, c[i].exported, c[i].preferred);
		}
		n += (size_t)snprintf(to + n, room - n, "\n");
	}
}

static void all_details_of_protocols_are_read(void **state)
{
	static const char want[] =
		"bfd1 BFD --- up\n"
		"clients BGP --- start [Passive 192.168.50.128/25 AS64512>AS64512 ]"
		" ipv4 master4 DOWN\n"
		"device1 Device --- up\n"
		"direct1 Direct --- up ipv4 master4 UP 2/0/2 ipv6 master6 UP 1/0/1\n"
		"kernel4 Kernel master4 up ipv4 master4 UP 1/2/1\n"
		"kernel6 Kernel master6 up ipv6 master6 UP 0/0/0\n"
		"n-x.y:z BGP --- start [Passive fd50::2 AS64512>AS64512 ] ipv6 master6 DOWN\n"
		"n_192_168_50_2 BGP --- up [Established 192.168.50.2 AS64512>AS64512"
		" the other one] ipv4 master4 UP 4/5/2 ipv6 master6 UP 0/0/0\n"
		"n_lladdr BGP --- start [Connect fe80::1234%eth0 AS64512>AS64512 ]"
		" ipv6 master6 DOWN\n"
		"n_nobody BGP --- start [Connect 192.168.50.9 AS64512>AS64513"
		" Socket: No route to host] ipv4 master4 DOWN\n"
		"n_off BGP --- down [Down 192.168.50.7 AS64512>AS64512 ] ipv4 master4 DOWN\n"
		"n_wrong_as BGP --- start [Active 192.168.51.2 AS64512>AS64599"
		" Socket: Connection reset by peer] ipv4 master4 DOWN\n"
		"ospf4 OSPF master4 up ipv4 master4 UP 2/0/0\n"
		"ospf6 OSPF master6 up ipv6 master6 UP 1/0/0\n"
		"p4 Pipe --- up main master4  0/11/0\n"
		"rip4 RIP master4 up ipv4 master4 UP 0/0/0\n"
		"s4 Static master4 up ipv4 master4 UP 2/0/2\n";
	static char got[8192];

	for (size_t i = 0; i < ARRAY_SIZE(golden_versions); i++) {
		AUTO_DONE(bird_protocols_done) struct bird_protocols list = { 0 };
		struct bird_reply reply = real(golden_versions[i], "show protocols all", 0);
		const struct bird_protocol *p;

		assert_int_equal(bird_protocols_parse(&reply, &list), 0);
		p = bird_protocols_find(&list, "n_192_168_50_2");
		assert_non_null(p);
		assert_string_equal(p->neighbor_id, "192.168.50.2");
		assert_string_equal(p->source, "192.168.50.1");
		assert_null(bird_protocols_find(&list, "n_192"));
		/* The description of n_off is too long for a line. */
		assert_int_equal(list.overflows, 1);
		qsort(list.v, list.n, sizeof(*list.v), by_name);
		print(&list, got, sizeof(got));
		assert_string_equal(got, want);
	}
}

static void the_short_form_has_the_same_protocols(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(golden_versions); i++) {
		AUTO_DONE(bird_protocols_done) struct bird_protocols list = { 0 };
		struct bird_reply reply = real(golden_versions[i], "show protocols", 0);
		const struct bird_protocol *p;

		assert_int_equal(bird_protocols_parse(&reply, &list), 0);
		assert_int_equal(list.n, 17);
		assert_int_equal(list.n_channels, 0);
		p = bird_protocols_find(&list, "n_nobody");
		assert_string_equal(p->info, "Connect       Socket: No route to host");
		assert_string_equal(p->bgp_state, "Connect");
		assert_int_equal(strlen(p->since), strlen("23:27:14.619"));
		assert_string_equal(bird_protocols_find(&list, "n_off")->info, "");
		assert_string_equal(bird_protocols_find(&list, "n_off")->bgp_state, "");
		assert_string_equal(bird_protocols_find(&list, "p4")->info, "master4 <=> other4");
		assert_string_equal(bird_protocols_find(&list, "p4")->bgp_state, "");
	}
}

static void a_time_may_be_a_date_or_both(void **state)
{
	AUTO_DONE(bird_protocols_done) struct bird_protocols list = { 0 };
	struct bird_reply reply = reply_of(
		"1002-a BGP --- up 2026-11-15  Established   \n"
		" b BGP --- start 2026-11-15 23:27:14  Idle          Error: x\n"
		" c Static master4 up 2026-11-15 23:27:14\n"
		" d Static master4 up 2026-11-15\n0000 \n");

	assert_int_equal(bird_protocols_parse(&reply, &list), 0);
	assert_int_equal(list.n, 4);
	assert_string_equal(list.v[0].since, "2026-11-15");
	assert_string_equal(list.v[0].info, "Established");
	assert_string_equal(list.v[1].since, "2026-11-15 23:27:14");
	assert_string_equal(list.v[1].info, "Idle          Error: x");
	assert_string_equal(list.v[1].bgp_state, "Idle");
	assert_string_equal(list.v[2].since, "2026-11-15 23:27:14");
	assert_string_equal(list.v[2].info, "");
	assert_string_equal(list.v[3].since, "2026-11-15");
}

static void counts_may_have_the_filtered_ones(void **state)
{
	AUTO_DONE(bird_protocols_done) struct bird_protocols list = { 0 };
	struct bird_reply reply = reply_of(
		"1002-a BGP --- up 10:00:00  Established\n1006-  BGP state: Established\n"
		"     Neighbor AS:  4294967295\n"
		"   Channel ipv4\n     Routes:  4 imported, 3 filtered, 5 exported, 2 preferred\n"
		"     State: UP\n0000 \n");

	assert_int_equal(bird_protocols_parse(&reply, &list), 0);
	assert_int_equal(list.v[0].neighbor_as, 4294967295);
	assert_int_equal(list.channels[0].imported, 4);
	assert_int_equal(list.channels[0].filtered, 3);
	assert_int_equal(list.channels[0].exported, 5);
	assert_int_equal(list.channels[0].preferred, 2);
	assert_string_equal(list.channels[0].state, "UP");
}

static void a_description_cannot_pose_as_a_detail(void **state)
{
	AUTO_DONE(bird_protocols_done) struct bird_protocols list = { 0 };
	struct bird_reply reply = reply_of(
		"1002-a BGP --- start 10:00:00  Idle\n"
		"1006-  Description:    Channel ipv4: BGP state: Established\n"
		"   BGP state: Idle\n0000 \n");

	assert_int_equal(bird_protocols_parse(&reply, &list), 0);
	assert_string_equal(list.v[0].description, "Channel ipv4: BGP state: Established");
	assert_string_equal(list.v[0].bgp_state, "Idle");
	assert_int_equal(list.n_channels, 0);
}

static void a_row_that_cannot_be_read_is_told(void **state)
{
	static const char *const bad[] = {
		"1002-a BGP --- up\n0000 \n",
		"1002-\n0000 \n",
		"1006-  BGP state: Established\n0000 \n",
		"8003 No protocols match\n",
	};
	struct bird_protocols list;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct bird_reply reply = reply_of(bad[i]);

		assert_int_equal(bird_protocols_parse(&reply, &list), -EBADMSG);
	}
}

/* --- tables --------------------------------------------------------------------------------- */

static void expect_table(const struct bird_reply *reply, const char *want)
{
	AUTO_DONE(bird_table_done) struct bird_table t = { 0 };
	char got[1024] = "";
	size_t n = 0;

	assert_int_equal(bird_table_parse(reply, &t), 0);
	for (size_t i = 0; i < t.n; i++) {
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s", t.v[i].protocol);
		for (size_t k = 0; k < BIRD_COLUMNS; k++)
			n += (size_t)snprintf(got + n, sizeof(got) - n, "|%s", t.v[i].cell[k]);
		n += (size_t)snprintf(got + n, sizeof(got) - n, "\n");
	}
	assert_string_equal(got, want);
}

static void bfd_sessions_are_read(void **state)
{
	struct bird_reply reply = real("2.0.12", "show bfd sessions", 0);

	expect_table(&reply, "bfd1|192.168.50.9|eth0|Down|23:27:14.621|1.000|0.000\n"
			     "bfd1|192.168.50.2|eth0|Up|23:27:15.374|0.200|0.600\n");
	for (size_t i = 0; i < ARRAY_SIZE(golden_versions); i++) {
		AUTO_DONE(bird_table_done) struct bird_table t = { 0 };
		unsigned up = 0;

		reply = real(golden_versions[i], "show bfd sessions", 0);
		assert_int_equal(bird_table_parse(&reply, &t), 0);
		assert_int_equal(t.n, 2);
		for (size_t k = 0; k < t.n; k++)
			up += strcmp(t.v[k].cell[BIRD_BFD_STATE], "Up") == 0 &&
			      strcmp(t.v[k].cell[BIRD_BFD_ADDRESS], "192.168.50.2") == 0;
		assert_int_equal(up, 1);
	}
}

static void ospf_neighbours_are_read(void **state)
{
	struct bird_reply reply = real("3.1", "show ospf neighbors", 0);

	expect_table(&reply, "ospf4|192.168.50.2|1|Full/DR|3.381|eth0|192.168.50.2\n"
			     "ospf4|192.168.50.2|1|Full/DR|3.381|eth0|192.168.51.2\n"
			     "ospf6|192.168.50.2|1|Full/BDR|3.055|eth0|fe80::4b7:46ff:fe72:eb06\n");
	for (size_t i = 0; i < ARRAY_SIZE(golden_versions); i++) {
		AUTO_DONE(bird_table_done) struct bird_table t = { 0 };

		reply = real(golden_versions[i], "show ospf neighbors", 0);
		assert_int_equal(bird_table_parse(&reply, &t), 0);
		assert_int_equal(t.n, 3);
		assert_string_equal(t.v[2].protocol, "ospf6");
	}
}

static void a_table_of_nobody_is_empty(void **state)
{
	struct bird_reply reply;

	reply = reply_of("9001 There is no BFD protocol running\n");
	expect_table(&reply, "");
	reply = reply_of("1013-ospf4: is not up\n0000 \n");
	expect_table(&reply, "");
	reply = reply_of("1013-ospf4: is not up\n ospf6:\n Router ID\n"
			 " 1.1.1.1\t 1\tFull/DR\t 1.0\teth0  fe80::1\n0000 \n");
	expect_table(&reply, "ospf6|1.1.1.1|1|Full/DR|1.0|eth0|fe80::1\n");
}

static void a_table_that_cannot_be_read_is_told(void **state)
{
	static const char *const bad[] = {
		"1020-bfd1:\n heading\n 10.0.0.1 eth0 Up 10:00:00 0.2\n0000 \n",
		"1020-bfd1:\n heading\n 10.0.0.1 eth0 Up 10:00:00 0.2 0.6 x\n0000 \n",
		"1020-10.0.0.1 eth0 Up 10:00:00 0.2 0.6\n0000 \n",
		"9001 syntax error\n",
	};
	struct bird_table t;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct bird_reply reply = reply_of(bad[i]);

		assert_int_equal(bird_table_parse(&reply, &t), -EBADMSG);
	}
}

static void expect_counts(const struct bird_reply *reply, const char *want)
{
	AUTO_DONE(bird_counts_done) struct bird_counts c = { 0 };
	char got[256] = "";
	size_t n = 0;

	assert_int_equal(bird_counts_parse(reply, &c), 0);
	for (size_t i = 0; i < c.n; i++)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s %" PRIu64 " %" PRIu64 "|",
				      c.v[i].table, c.v[i].routes, c.v[i].networks);
	assert_string_equal(got, want);
}

static void route_counts_are_read(void **state)
{
	struct bird_counts c;
	struct bird_reply reply;

	for (size_t i = 0; i < ARRAY_SIZE(golden_versions); i++) {
		reply = real(golden_versions[i], "show route count", 0);
		expect_counts(&reply, "master4 11 7|master6 2 1|");
		reply = real(golden_versions[i], "show route table other4 count", 0);
		expect_counts(&reply, "other4 11 7|");
	}
	reply = reply_of("1007-many routes\n0000 \n");
	assert_int_equal(bird_counts_parse(&reply, &c), -EBADMSG);
	reply = reply_of("8004 Stopped due to reconfiguration\n");
	assert_int_equal(bird_counts_parse(&reply, &c), -EBADMSG);
}

static int let_go(void **state)
{
	bird_reader_done(&reader);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_read),
		cmocka_unit_test(status_is_read),
		cmocka_unit_test(the_outcome_of_configure_is_read),
		cmocka_unit_test(the_age_of_a_configuration_is_told_by_two_times),
		cmocka_unit_test(the_status_of_configure_is_its_first_line),
		cmocka_unit_test(all_details_of_protocols_are_read),
		cmocka_unit_test(the_short_form_has_the_same_protocols),
		cmocka_unit_test(a_time_may_be_a_date_or_both),
		cmocka_unit_test(counts_may_have_the_filtered_ones),
		cmocka_unit_test(a_description_cannot_pose_as_a_detail),
		cmocka_unit_test(a_row_that_cannot_be_read_is_told),
		cmocka_unit_test(bfd_sessions_are_read),
		cmocka_unit_test(ospf_neighbours_are_read),
		cmocka_unit_test(a_table_of_nobody_is_empty),
		cmocka_unit_test(a_table_that_cannot_be_read_is_told),
		cmocka_unit_test(route_counts_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, let_go);
}
