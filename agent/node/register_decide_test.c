/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/register_decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct node machine(const char *id, const char *boot, const char *address)
{
	struct node n = { .name = "web1", .machine = id, .boot = boot };

	assert_int_equal(prefix_parse_host(address, &n.ipv4), 0);
	snprintf(n.agent.started, sizeof(n.agent.started), "2026-11-16T02:45:55Z");
	return n;
}

#define HARDWARE(...)                                                                              \
	((struct texts){ (const char *[]){ __VA_ARGS__ },                                          \
			 sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(const char *) })

/* --- which machine -------------------------------------------------------------------------- */

static void a_reboot_is_the_same_machine(void **unused)
{
	struct node a = machine("m1", "b1", "10.0.0.1/24"), b = machine("m1", "b2", "10.0.0.1/24");

	assert_true(register_same_machine(&a, &b));
	/* Another address by DHCP: the network card says so. */
	b = machine("m1", "b2", "10.0.0.9/24");
	assert_false(register_same_machine(&a, &b));
	a.hardware = HARDWARE("mac:02:00:00:00:00:01", "mac:02:00:00:00:00:02");
	b.hardware = HARDWARE("mac:02:00:00:00:00:02", "dmi:1");
	assert_true(register_same_machine(&a, &b));
}

static void a_restart_on_the_same_boot_is_the_same_machine(void **unused)
{
	struct node a = machine("m1", "b1", "10.0.0.1/24"), b = machine("m1", "b1", "10.0.0.9/24");

	assert_true(register_same_machine(&a, &b));
}

static void a_copied_image_is_another_machine(void **unused)
{
	struct node a = machine("m1", "b1", "10.0.0.1/24"), b = machine("m1", "b2", "10.0.0.2/24");

	assert_false(register_same_machine(&a, &b));
	/* Even at the same address, or on what looks like the same boot. */
	b = machine("m1", "b1", "10.0.0.1/24");
	a.hardware = HARDWARE("mac:02:00:00:00:00:01");
	b.hardware = HARDWARE("mac:02:00:00:00:00:02");
	assert_false(register_same_machine(&a, &b));
	a.hardware = HARDWARE("dmi:1");
	b.hardware = HARDWARE("dmi:2");
	assert_false(register_same_machine(&a, &b));
}

static void another_id_is_another_machine(void **unused)
{
	struct node a = machine("m1", "b1", "10.0.0.1/24"), b = machine("m2", "b1", "10.0.0.1/24");

	assert_false(register_same_machine(&a, &b));
}

/* --- the decision --------------------------------------------------------------------------- */

static struct node self, other;

static const char *decide(const struct register_seen *seen, struct err *why)
{
	why->text[0] = '\0';
	return register_step_name(register_decide(&self, seen, false, why));
}

static int set_up(void **unused)
{
	self = machine("m2", "b2", "10.0.0.2/24");
	other = machine("m1", "b1", "10.0.0.1/24");
	return 0;
}

static void a_name_changes_machines_after_the_promised_silence(void **unused)
{
	struct register_seen seen = {
		.present = true, .node = &other, .wait_s = 3600, .until = "2026-11-16T03:45:55Z"
	};
	struct err why;

	seen.status_alive = true;
	assert_string_equal(decide(&seen, &why), "refuse");
	seen.status_alive = false;
	assert_string_equal(decide(&seen, &why), "wait");
	assert_non_null(strstr(why.text, "at 2026-11-16T03:45:55Z, after 3600 s of silence"));
	assert_non_null(strstr(why.text, "roostctl node delete web1 --now"));
	seen.silent_s = 3599;
	assert_string_equal(decide(&seen, &why), "wait");
	seen.silent_s = 3600;
	assert_string_equal(decide(&seen, &why), "take over");
}

static void an_operators_word_needs_no_silence_but_no_status(void **unused)
{
	struct register_seen seen = {
		.present = true, .node = &other, .wait_s = 3600, .off = true, .removed = true
	};
	struct err why;

	assert_string_equal(decide(&seen, &why), "take over");
	seen.status_alive = true;
	assert_string_equal(decide(&seen, &why), "refuse");
}

static void in_a_recovery_no_name_changes_machines(void **unused)
{
	struct register_seen seen = {
		.present = true, .node = &other, .wait_s = 900, .silent_s = 5000, .recovering = true
	};
	struct err why;

	assert_string_equal(decide(&seen, &why), "wait");
	/* But what was ours until etcd went back stays ours. */
	seen.held_before = seen.status_alive = true;
	assert_string_equal(decide(&seen, &why), "take over");
}

static void a_removal_under_way_is_waited_for_by_who_wants_the_name(void **unused)
{
	struct register_seen seen = { .removed = true };
	struct err why;

	/* The node itself comes back, and stops its own removal. */
	assert_string_equal(decide(&seen, &why), "create");
	seen.waited = true;
	assert_string_equal(decide(&seen, &why), "wait");
	seen.removed = false;
	assert_string_equal(decide(&seen, &why), "create");
}

static void a_restored_record_is_not_that_of_one_who_waits(void **unused)
{
	struct register_seen seen = { .present = true, .node = &other, .wait_s = 900 };
	struct err why;

	other = self;
	assert_string_equal(decide(&seen, &why), "update");
	seen.waited = true;
	assert_string_equal(decide(&seen, &why), "wait");
	seen.status_alive = true;
	assert_string_equal(decide(&seen, &why), "refuse");
	/* A write of ours whose reply was lost, and then the record was to say something else. */
	seen.wrote = true;
	assert_string_equal(decide(&seen, &why), "update");
}

static void a_clone_is_told_so(void **unused)
{
	struct node clone = machine("m2", "b9", "10.0.0.9/24");
	struct register_seen seen = {
		.present = true, .node = &clone, .status_alive = true, .wait_s = 3600
	};
	struct err why;

	assert_string_equal(decide(&seen, &why), "refuse");
	assert_non_null(strstr(why.text, "a copied image?"));
	clone = machine("m2", "b9", "10.0.0.2/24");
	assert_string_equal(decide(&seen, &why), "update");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reboot_is_the_same_machine),
		cmocka_unit_test(a_restart_on_the_same_boot_is_the_same_machine),
		cmocka_unit_test(a_copied_image_is_another_machine),
		cmocka_unit_test(another_id_is_another_machine),
		cmocka_unit_test_setup(a_name_changes_machines_after_the_promised_silence, set_up),
		cmocka_unit_test_setup(an_operators_word_needs_no_silence_but_no_status, set_up),
		cmocka_unit_test_setup(in_a_recovery_no_name_changes_machines, set_up),
		cmocka_unit_test_setup(a_removal_under_way_is_waited_for_by_who_wants_the_name,
				       set_up),
		cmocka_unit_test_setup(a_restored_record_is_not_that_of_one_who_waits, set_up),
		cmocka_unit_test_setup(a_clone_is_told_so, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
