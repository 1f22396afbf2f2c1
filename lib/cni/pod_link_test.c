/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/pod_link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void the_name_follows_from_container_and_interface(void **unused)
{
	char a[IF_NAME_TEXT], b[IF_NAME_TEXT];

	assert_true(pod_link_is_ours(pod_link_name("3f9c", "eth0", a)));
	assert_int_equal(strlen(a), 15);
	assert_string_equal(pod_link_name("3f9c", "eth0", b), a);
	assert_string_not_equal(pod_link_name("3f9c", "eth1", b), a);
	assert_string_not_equal(pod_link_name("3f9ce", "th0", b), a);
}

/* Links of running pods are found again by it: it must never change. */
static void the_name_is_the_same_for_ever(void **unused)
{
	char name[IF_NAME_TEXT];

	assert_string_equal(pod_link_name("3f9c", "eth0", name), "roost96c6b68b65");
}

static void only_the_exact_form_is_ours(void **unused)
{
	static const char *const others[] = { "",
					      "roost",
					      "roost.vxlan",
					      "roost012345678",
					      "roost0123456789a",
					      "roost012345678G",
					      "Roost0123456789",
					      "eth0",
					      "roost01234 6789" };

	assert_true(pod_link_is_ours("roost0123456789"));
	assert_true(pod_link_is_ours("roostabcdef0000"));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(pod_link_is_ours(others[i]));
}

static void the_gateway_is_what_the_kernel_makes_of_the_mac(void **unused)
{
	struct address v4 = pod_gateway(AF_INET), v6 = pod_gateway(AF_INET6);
	char text[ADDRESS_TEXT];

	assert_string_equal(address_print(&v4, text), "169.254.1.1");
	assert_string_equal(address_print(&v6, text), "fe80::ecee:eeff:feee:eeee");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_follows_from_container_and_interface),
		cmocka_unit_test(the_name_is_the_same_for_ever),
		cmocka_unit_test(only_the_exact_form_is_ours),
		cmocka_unit_test(the_gateway_is_what_the_kernel_makes_of_the_mac),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
