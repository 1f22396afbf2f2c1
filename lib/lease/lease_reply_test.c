/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/lease/lease_reply.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/auto.h"

static struct lease_network network_of(const char *text)
{
	struct lease_network n = { 0 };
	struct err err = { "" };

	if (lease_network_read(text, strlen(text), &n, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return n;
}

static void expect_refused(const char *text, const char *why)
{
	struct lease_network n;
	struct err err = { "" };

	assert_int_equal(lease_network_read(text, strlen(text), &n, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("\"%s\" instead of \"%s\"", err.text, why);
}

static void a_network_with_flannels_defaults(void **unused)
{
	struct lease_network n = network_of("{\"Network\":\"10.5.0.0/16\",\"SubnetLen\":24}");
	char text[PREFIX_TEXT];

	assert_string_equal(prefix_print(&n.cidr, text), "10.5.0.0/16");
	assert_int_equal(n.subnet_len, 24);
	assert_int_equal(n.vni, 1);
	assert_int_equal(n.port, 8472);
	assert_false(n.direct);
}

static void a_network_that_says_all(void **unused)
{
	struct lease_network n = network_of(
		"{\"Network\":\"10.5.0.0/16\",\"SubnetMin\":\"10.5.1.0\",\"SubnetMax\":"
		"\"10.5.255.0\",\"SubnetLen\":26,\"Backend\":{\"Type\":\"vxlan\",\"VNI\":4096,"
		"\"Port\":4789,\"DirectRouting\":true}}");

	assert_int_equal(n.subnet_len, 26);
	assert_int_equal(n.vni, 4096);
	assert_int_equal(n.port, 4789);
	assert_true(n.direct);
}

static void a_network_that_cannot_be_used(void **unused)
{
	expect_refused("{\"SubnetLen\":24}", "Network");
	expect_refused("{\"Network\":\"10.5.0.0/16\"}", "SubnetLen");
	expect_refused("{\"Network\":\"10.5.0.0/16\",\"SubnetLen\":8}", "SubnetLen");
	expect_refused("{\"Network\":\"10.5.0.1/16\",\"SubnetLen\":24}", "Network");
	expect_refused("{\"Network\":\"10.5.0.0/16\",\"SubnetLen\":24,"
		       "\"Backend\":{\"Type\":\"udp\"}}",
		       "only vxlan");
	expect_refused("{\"Network\":\"10.5.0.0/16\",\"SubnetLen\":24,"
		       "\"Backend\":{\"Type\":\"vxlan\",\"VNI\":\"1\"}}",
		       "VNI");
	expect_refused("no such network", "JSON");
}

static struct lease lease_of(const char *text)
{
	struct lease l = { 0 };
	struct err err = { "" };

	if (lease_read(text, strlen(text), &l, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return l;
}

static void expect_lease(const char *text, const char *want)
{
	struct lease l = lease_of(text);
	char subnet[PREFIX_TEXT], holder[ADDRESS_TEXT] = "-", got[256];
	const uint8_t *b = l.mac.bytes;

	if (l.holder.family)
		address_print(&l.holder, holder);
	snprintf(got, sizeof(got), "%s %s %02x:%02x:%02x:%02x:%02x:%02x %lld",
		 prefix_print(&l.subnet, subnet), holder, b[0], b[1], b[2], b[3], b[4], b[5],
		 (long long)l.expires);
	assert_string_equal(got, want);
}

static void a_lease(void **unused)
{
	expect_lease("{\"Subnet\":\"10.5.34.0/24\",\"Attrs\":{\"PublicIP\":\"192.0.2.5\","
		     "\"BackendType\":\"vxlan\",\"BackendData\":{\"VNI\":1,\"VtepMAC\":"
		     "\"02:0a:0b:0c:0d:0e\"}},\"Expiration\":\"2026-11-18T10:00:00Z\"}",
		     "10.5.34.0/24 192.0.2.5 02:0a:0b:0c:0d:0e 1794996000");
}

/* As Go prints them: with a fraction, with an offset, and its zero time. */
static void times_of_all_kinds(void **unused)
{
	expect_lease("{\"Subnet\":\"10.5.34.0/24\",\"Expiration\":\"2026-11-18T10:00:00.123456Z\"}",
		     "10.5.34.0/24 - 00:00:00:00:00:00 1794996000");
	expect_lease("{\"Subnet\":\"10.5.34.0/24\",\"Expiration\":\"2026-11-18T12:30:00+02:30\"}",
		     "10.5.34.0/24 - 00:00:00:00:00:00 1794996000");
	expect_lease("{\"Subnet\":\"10.5.34.0/24\",\"Expiration\":\"2026-11-18T08:00:00-02:00\"}",
		     "10.5.34.0/24 - 00:00:00:00:00:00 1794996000");
	expect_lease("{\"Subnet\":\"10.5.34.0/24\",\"Expiration\":\"0001-01-01T00:00:00Z\"}",
		     "10.5.34.0/24 - 00:00:00:00:00:00 0");
	expect_lease("{\"Subnet\":\"10.5.34.0/24\"}", "10.5.34.0/24 - 00:00:00:00:00:00 0");
}

/* The lease stands, whatever its holder wrote beside it. */
static void attributes_of_another_kind(void **unused)
{
	expect_lease("{\"Subnet\":\"10.5.34.0/24\",\"Attrs\":{\"PublicIP\":17,\"BackendData\":[]}}",
		     "10.5.34.0/24 - 00:00:00:00:00:00 0");
	expect_lease("{\"Subnet\":\"10.5.34.0/24\",\"Attrs\":{\"PublicIP\":\"192.0.2.5\","
		     "\"BackendType\":\"udp\",\"BackendData\":null}}",
		     "10.5.34.0/24 192.0.2.5 00:00:00:00:00:00 0");
	expect_lease("{\"Subnet\":\"10.5.34.0/24\",\"Attrs\":{\"PublicIP\":\"192.0.2.5\","
		     "\"BackendData\":{\"VtepMAC\":\"01:02:03:04:05:06\"}}}",
		     "10.5.34.0/24 192.0.2.5 00:00:00:00:00:00 0");
}

static void a_subnet_must_be_one(void **unused)
{
	static const char *const wrong[] = { "{}", "{\"Subnet\":\"10.5.34.0\"}", "{\"Subnet\":1}",
					     "[]",
					     "{\"Subnet\":\"10.5.34.0/24\",\"Expiration\":"
					     "\"soon\"}" };
	struct lease l;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(lease_read(wrong[i], strlen(wrong[i]), &l, NULL), -EINVAL);
}

static int changes_of(const char *text, struct lease_changes *ret)
{
	return lease_changes_read(text, strlen(text), ret, NULL);
}

static void events_and_snapshots(void **unused)
{
	AUTO_DONE(lease_changes_done)
	struct lease_changes events = { 0 }, all = { 0 }, none = { 0 };

	assert_int_equal(changes_of("{\"events\":[{\"type\":\"removed\",\"lease\":{\"Subnet\":"
				    "\"10.5.1.0/24\"}},{\"type\":\"added\",\"lease\":{\"Subnet\":"
				    "\"10.5.2.0/24\"}}],\"snapshot\":[],\"cursor\":\"17\"}",
				    &events),
			 0);
	assert_false(events.reset);
	assert_int_equal(events.n, 2);
	assert_true(events.v[0].removed);
	assert_false(events.v[1].removed);
	assert_string_equal(events.cursor, "17");
	assert_int_equal(changes_of("{\"events\":[],\"snapshot\":[{\"Subnet\":\"10.5.1.0/24\"}],"
				    "\"cursor\":18}",
				    &all),
			 0);
	assert_true(all.reset);
	assert_int_equal(all.n, 1);
	assert_string_equal(all.cursor, "18");
	/* Empty is a snapshot too: nobody holds anything. */
	assert_int_equal(changes_of("{\"cursor\":\"1\"}", &none), 0);
	assert_true(none.reset);
	assert_int_equal(none.n, 0);
}

static void what_is_no_list_of_changes(void **unused)
{
	static const char *const wrong[] = {
		"{\"events\":[],\"snapshot\":[]}",
		"{\"cursor\":\"next=1\"}",
		"{\"cursor\":\"1\",\"events\":[{\"type\":\"moved\",\"lease\":{\"Subnet\":"
		"\"10.5.1.0/24\"}}]}",
		"{\"cursor\":\"1\",\"snapshot\":[{\"Subnet\":\"here\"}]}",
		"{\"cursor\":\"1\",\"snapshot\":{}}",
	};
	struct lease_changes changes;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(changes_of(wrong[i], &changes), -EINVAL);
}

static void what_is_sent_can_be_read(void **unused)
{
	struct lease l = lease_of("{\"Subnet\":\"10.5.34.0/24\",\"Attrs\":{\"PublicIP\":"
				  "\"192.0.2.5\",\"BackendData\":{\"VtepMAC\":"
				  "\"02:0a:0b:0c:0d:0e\"}}}");
	AUTO(free) char *attrs = NULL, *whole = NULL;

	assert_int_equal(lease_attrs_print(&l, 7, &attrs), 0);
	assert_string_equal(attrs,
			    "{\"PublicIP\":\"192.0.2.5\",\"BackendType\":\"vxlan\","
			    "\"BackendData\":{\"VNI\":7,\"VtepMAC\":\"02:0a:0b:0c:0d:0e\"}}");
	assert_int_equal(lease_print(&l, 7, &whole), 0);
	expect_lease(whole, "10.5.34.0/24 192.0.2.5 02:0a:0b:0c:0d:0e 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_network_with_flannels_defaults),
		cmocka_unit_test(a_network_that_says_all),
		cmocka_unit_test(a_network_that_cannot_be_used),
		cmocka_unit_test(a_lease),
		cmocka_unit_test(times_of_all_kinds),
		cmocka_unit_test(attributes_of_another_kind),
		cmocka_unit_test(a_subnet_must_be_one),
		cmocka_unit_test(events_and_snapshots),
		cmocka_unit_test(what_is_no_list_of_changes),
		cmocka_unit_test(what_is_sent_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
