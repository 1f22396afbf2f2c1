/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/etcd_roles.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect(enum etcd_role role, const char *node, const char *name, const char *want)
{
	struct etcd_permission p[ETCD_PERMISSIONS_MAX];
	char text[1024] = "", role_name[ETCD_ROLE_TEXT];
	int n = etcd_role_permissions(role, node, p);

	assert_int_equal(etcd_role_name(role, node, role_name), 0);
	assert_string_equal(role_name, name);
	for (int i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s%s\n",
			 p[i].write ? "write" : "read", p[i].key, p[i].prefix ? "*" : "");
	assert_string_equal(text, want);
}

static void a_node_writes_what_is_its_own_and_where_nodes_meet(void **unused)
{
	expect(ETCD_ROLE_NODE, "n1", "roost-node-n1",
	       "read *\nwrite block/*\nwrite extent/*\nwrite host/n1/*\nwrite node/n1\n"
	       "write recovery\nwrite status/node/n1\nwrite status/static-route/*\n");
}

static void a_controller_writes_no_record_of_an_operator(void **unused)
{
	struct etcd_permission p[ETCD_PERMISSIONS_MAX];
	int n = etcd_role_permissions(ETCD_ROLE_CONTROLLER, NULL, p);

	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		assert_string_not_equal(p[i].key, "config");
		assert_string_not_equal(p[i].key, "pool/");
		assert_true(p[i].key[0] || !p[i].write);
	}
}

static void an_operator_writes_all_and_a_viewer_nothing(void **unused)
{
	expect(ETCD_ROLE_OPERATOR, NULL, "roost-operator", "write *\n");
	expect(ETCD_ROLE_VIEWER, NULL, "roost-viewer", "read *\n");
}

static void a_name_that_is_none_gets_no_role(void **unused)
{
	struct etcd_permission p[ETCD_PERMISSIONS_MAX];
	char name[ETCD_ROLE_TEXT];

	assert_int_equal(etcd_role_permissions(ETCD_ROLE_NODE, "n1/../n2", p), -EINVAL);
	assert_int_equal(etcd_role_permissions(ETCD_ROLE_NODE, "", p), -EINVAL);
	assert_int_equal(etcd_role_name(ETCD_ROLE_NODE, "*", name), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_writes_what_is_its_own_and_where_nodes_meet),
		cmocka_unit_test(a_controller_writes_no_record_of_an_operator),
		cmocka_unit_test(an_operator_writes_all_and_a_viewer_nothing),
		cmocka_unit_test(a_name_that_is_none_gets_no_role),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
