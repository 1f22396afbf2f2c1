/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/lease_holder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void expect_name(const char *address, const char *name)
{
	char text[NODE_NAME_TEXT];
	struct address a;

	assert_int_equal(address_parse(address, &a), 0);
	assert_string_equal(lease_holder_name(&a, text), name);
	assert_int_equal(node_name_check(name, NULL), 0);
	assert_true(lease_holder_is(name));
}

static void a_holder_is_named_after_its_address(void **unused)
{
	expect_name("192.0.2.5", "lease-192.0.2.5");
	expect_name("2001:db8::5", "lease-2001-db8--5");
	expect_name("2001:db8::", "lease-2001-db8--0");
}

static void other_nodes_are_none(void **unused)
{
	assert_false(lease_holder_is("n1"));
	assert_false(lease_holder_is("lease-office"));
	assert_false(lease_holder_is("lease-"));
	assert_false(node_is_lease(&(struct node){ .name = "lease-192.0.2.5", .machine = "m" }));
	assert_false(node_is_lease(&(struct node){ .name = "n1", .machine = "lease" }));
	assert_true(node_is_lease(&(struct node){ .name = "lease-192.0.2.5", .machine = "lease" }));
}

static void its_record_is_a_nodes(void **unused)
{
	AUTO(free) char *four = NULL, *six = NULL;
	struct address a;

	assert_int_equal(address_parse("192.0.2.5", &a), 0);
	assert_int_equal(lease_holder_record(&a, &(struct mac){ { 2, 0, 0, 0, 0, 9 } }, "", &four),
			 0);
	assert_string_equal(four, "{\"ipv4\":\"192.0.2.5/32\",\"machine\":\"lease\",\"boot\":"
				  "\"lease\",\"vtep\":{\"mac\":\"02:00:00:00:00:09\"}}");
	assert_int_equal(address_parse("2001:db8::5", &a), 0);
	assert_int_equal(lease_holder_record(&a, &(struct mac){ { 0 } }, "r1", &six), 0);
	assert_string_equal(six, "{\"ipv6\":\"2001:db8::5/128\",\"machine\":\"lease\",\"boot\":"
				 "\"lease\",\"recovery\":\"r1\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_holder_is_named_after_its_address),
		cmocka_unit_test(other_nodes_are_none),
		cmocka_unit_test(its_record_is_a_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
