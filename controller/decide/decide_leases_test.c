/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide/decide_leases.h"

#include "controller/leases/lease_world.h"

static void expect(const char *expired, const char *want)
{
	AUTO_DONE(plans_done) struct plans plans = { 0 };
	AUTO(free) char *text = NULL;

	leases_decide(&view->mirror, expired, &plans);
	text = plans_print(&plans);
	assert_string_equal(text, want);
}

static void what_has_expired_long_ago_is_freed(void **unused)
{
	begin();
	put("block/default/10.5.1.0-24", LEASE("192.0.2.5", THEN));
	also("node/lease-192.0.2.5", HOLDER("192.0.2.5"));
	expect(THEN, "");
	expect("2026-11-16T02:45:56Z",
	       "lease/lease-192.0.2.5:\n"
	       "if block/default/10.5.1.0-24 = 3\n"
	       "if node/lease-192.0.2.5 = 3\n"
	       "delete block/default/10.5.1.0-24\n"
	       "delete host/lease-192.0.2.5/ipv4/block/default/10.5.1.0-24\n"
	       "delete node/lease-192.0.2.5\n");
}

static void all_else_stays(void **unused)
{
	begin();
	put("block/default/10.5.1.0-24", RESERVED("192.0.2.5"));
	put("block/default/10.5.2.0-24", "{\"node\":\"n1\",\"pool\":\"over\"}");
	put("block/default/10.5.3.0-24", "no JSON");
	put("block/default/10.5.4.0-24", LEASE("192.0.2.6", LATER));
	expect("2026-11-17T02:45:00Z", "");
}

static void without_its_holder_s_record_a_lease_goes_too(void **unused)
{
	begin();
	put("block/default/10.5.1.0-24", LEASE("192.0.2.5", THEN));
	expect(LATER, "lease/lease-192.0.2.5:\n"
		      "if block/default/10.5.1.0-24 = 3\n"
		      "if node/lease-192.0.2.5 absent\n"
		      "delete block/default/10.5.1.0-24\n"
		      "delete host/lease-192.0.2.5/ipv4/block/default/10.5.1.0-24\n");
}

#define WITH_VIEW(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_VIEW(what_has_expired_long_ago_is_freed),
		WITH_VIEW(all_else_stays),
		WITH_VIEW(without_its_holder_s_record_a_lease_goes_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
