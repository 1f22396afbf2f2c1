/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/listen_address.h"

#include <errno.h>
#include <string.h>

#include "lib/base/names.h"

static bool parse_port(const char *text, uint16_t *ret)
{
	unsigned long n = 0;

	if (!*text || strlen(text) > 5 || text[strspn(text, "0123456789")])
		return false;
	for (; *text; text++)
		n = 10 * n + (unsigned long)(*text - '0');
	*ret = (uint16_t)n;
	return n > 0 && n <= UINT16_MAX;
}

/* IPv6 in brackets, and nothing else in them. */
static bool parse_address(const char *text, size_t len, struct address *ret)
{
	bool brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
	char copy[ADDRESS_TEXT];

	if (brackets) {
		text++;
		len -= 2;
	}
	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return address_parse(copy, ret) == 0 && (ret->family == AF_INET6) == brackets;
}

int listen_address_parse(const char *text, struct listen_address *ret, struct err *err)
{
	const char *colon = strrchr(text, ':');
	struct listen_address found = { .address = { AF_INET, { 127, 0, 0, 1 } } };
	char shown[SHOW_TEXT];

	if (!parse_port(colon ? colon + 1 : text, &found.port) ||
	    (colon && !parse_address(text, (size_t)(colon - text), &found.address)))
		return err_set(
			err, -EINVAL,
			"\"%s\" is not ADDRESS:PORT, as in 192.0.2.7:9641 or [::]:9641, nor a "
			"port alone, which means 127.0.0.1",
			text_show(text, shown));
	*ret = found;
	return 0;
}

int listen_address_check(const char *text, struct err *err)
{
	struct listen_address unused;

	return listen_address_parse(text, &unused, err);
}
