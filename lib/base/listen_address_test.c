/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/listen_address.h"

static void is(const char *text, const char *address, unsigned port)
{
	struct listen_address a;
	char shown[ADDRESS_TEXT];

	assert_int_equal(listen_address_parse(text, &a, NULL), 0);
	assert_string_equal(address_print(&a.address, shown), address);
	assert_int_equal(a.port, port);
}

static void a_port_alone_is_on_loopback(void **unused)
{
	is("9641", "127.0.0.1", 9641);
	is("0.0.0.0:1", "0.0.0.0", 1);
	is("192.0.2.7:65535", "192.0.2.7", 65535);
	is("[::]:9641", "::", 9641);
	is("[fd00::7]:9641", "fd00::7", 9641);
}

static void what_could_be_meant_otherwise_is_refused(void **unused)
{
	static const char *const bad[] = {
		"",      "0",       "65536",        "096410",    "x",           "9641 ",
		":9641", "1.2.3.4", "1.2.3.4:",     "1.2.3.4:0", "::1:80",      "fd00::7:1",
		"[]:80", "[::1]",   "[1.2.3.4]:80", "host:80",   "[::1]:80:80", "-1",
	};
	struct listen_address a;
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(listen_address_parse(bad[i], &a, &err), -EINVAL);
	listen_address_parse("host:80", &a, &err);
	assert_string_equal(err.text,
			    "\"host:80\" is not ADDRESS:PORT, as in 192.0.2.7:9641 or [::]:9641, "
			    "nor a port alone, which means 127.0.0.1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_alone_is_on_loopback),
		cmocka_unit_test(what_could_be_meant_otherwise_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
