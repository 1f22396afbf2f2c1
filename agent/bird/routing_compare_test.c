/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/bird/routing_compare.h"

static const struct bird_session session;
static struct bird_intent meant[] = {
	{ .name = "kernel4", .kind = "Kernel" },
	{ .name = "n_10_0_0_2", .kind = "BGP", .session = &session },
	{ .name = "n_10_0_0_3", .kind = "BGP", .session = &session },
};

static struct bird_protocol row(const char *name, const char *proto, const char *state,
				const char *bgp_state, const char *info)
{
	return (struct bird_protocol){
		.name = name, .proto = proto, .state = state, .bgp_state = bgp_state, .info = info
	};
}
#define KERNEL           row("kernel4", "Kernel", "up", "", "")
#define SESSION(name)    row(name, "BGP", "up", "Established", "Established")
#define WAITING(name)    row(name, "BGP", "start", "Connect", "Connect")
#define DISABLED(name)   row(name, "BGP", "down", "", "")
#define DOWN_ERROR(name) row(name, "BGP", "down", "Down", "Down  Error: limit")

#define expect(want, ...)                                                                          \
	expect_rows(want, (struct bird_protocol[]){ __VA_ARGS__ },                                 \
		    sizeof((struct bird_protocol[]){ __VA_ARGS__ }) /                              \
			    sizeof(struct bird_protocol))
static void expect_rows(const char *want, struct bird_protocol *rows, size_t n)
{
	const struct bird_plan plan = { .protocols = meant, .n_protocols = ARRAY_SIZE(meant) };
	const struct bird_protocols runs = { .v = rows, .n = n };
	struct routing_difference d;
	char text[256];

	assert_int_equal(routing_compare(&plan, &runs, &d), 0);
	snprintf(text, sizeof(text), "missing %zu surplus %zu disabled %zu up %zu/%zu %s",
		 d.missing, d.surplus, d.disabled, d.established, d.sessions, d.first);
	assert_string_equal(text, want);
}

static void what_was_meant_is_no_difference_in_any_order(void **unused)
{
	expect("missing 0 surplus 0 disabled 0 up 2/2 ", KERNEL, SESSION("n_10_0_0_2"),
	       SESSION("n_10_0_0_3"));
	expect("missing 0 surplus 0 disabled 0 up 1/2 ", WAITING("n_10_0_0_3"),
	       SESSION("n_10_0_0_2"), KERNEL);
}

static void what_is_missing_or_of_another_kind_is_counted(void **unused)
{
	expect("missing 1 surplus 0 disabled 0 up 1/2 n_10_0_0_2", KERNEL, SESSION("n_10_0_0_3"));
	expect("missing 1 surplus 0 disabled 0 up 2/2 kernel4",
	       row("kernel4", "Static", "up", "", ""), SESSION("n_10_0_0_2"),
	       SESSION("n_10_0_0_3"));
	expect("missing 3 surplus 0 disabled 0 up 0/2 kernel4",
	       row("device1", "Device", "up", "", ""));
}

static void only_names_like_ours_are_too_many(void **unused)
{
	expect("missing 0 surplus 1 disabled 0 up 2/2 n_10_0_0_9", KERNEL, SESSION("n_10_0_0_2"),
	       SESSION("n_10_0_0_3"), WAITING("n_10_0_0_9"));
	expect("missing 0 surplus 0 disabled 0 up 2/2 ", KERNEL, SESSION("n_10_0_0_2"),
	       SESSION("n_10_0_0_3"), SESSION("upstream"), row("mine", "Static", "down", "", ""));
}

static void disabled_is_what_is_down_without_a_word(void **unused)
{
	expect("missing 0 surplus 0 disabled 1 up 1/2 n_10_0_0_2", KERNEL, DISABLED("n_10_0_0_2"),
	       SESSION("n_10_0_0_3"));
	expect("missing 0 surplus 0 disabled 0 up 1/2 ", KERNEL, DOWN_ERROR("n_10_0_0_2"),
	       SESSION("n_10_0_0_3"));
	expect("missing 0 surplus 0 disabled 1 up 2/2 kernel4",
	       row("kernel4", "Kernel", "down", "", ""), SESSION("n_10_0_0_2"),
	       SESSION("n_10_0_0_3"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_meant_is_no_difference_in_any_order),
		cmocka_unit_test(what_is_missing_or_of_another_kind_is_counted),
		cmocka_unit_test(only_names_like_ours_are_too_many),
		cmocka_unit_test(disabled_is_what_is_down_without_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
