/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/vtep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *show(const char *node, char text[18])
{
	struct mac m = vtep_mac(node);

	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", m.bytes[0], m.bytes[1], m.bytes[2],
		 m.bytes[3], m.bytes[4], m.bytes[5]);
	return text;
}

/* Other nodes hold it in permanent entries: it must never change. */
static void the_mac_is_the_same_for_ever(void **unused)
{
	char text[18];

	assert_string_equal(show("a.example.net", text), "2a:65:85:47:f5:6d");
}

static void the_mac_is_local_unicast_and_the_nodes_own(void **unused)
{
	struct mac macs[1000];
	char name[16];

	for (size_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "node-%zu", i);
		macs[i] = vtep_mac(name);
		assert_int_equal(macs[i].bytes[0] & 3, 2);
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(&macs[i], &macs[j], sizeof(macs[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_mac_is_the_same_for_ever),
		cmocka_unit_test(the_mac_is_local_unicast_and_the_nodes_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
