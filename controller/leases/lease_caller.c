/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_caller.h"

#include <errno.h>
#include <string.h>

#include "lib/base/names.h"

static void peer_name(const struct address *peer, char name[static LEASE_OWNER_TEXT])
{
	char text[ADDRESS_TEXT];

	snprintf(name, LEASE_OWNER_TEXT, LEASE_OWNER_PEER "%s", address_print(peer, text));
}

/* Whether one of the words with commas between is this one. */
static bool is_listed(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; n && at[0]; at += at[0] == ',') {
		size_t len = strcspn(at, ",");

		if (len == n && strncmp(at, word, n) == 0)
			return true;
		at += len;
	}
	return false;
}

void lease_caller_set(struct lease_caller *c, const struct address *peer, const char *certified,
		      const char *operators)
{
	c->peer = *peer;
	c->certified = certified[0] != '\0';
	if (c->certified)
		snprintf(c->owner, sizeof(c->owner), "%s", certified);
	else
		peer_name(peer, c->owner);
	c->operator_ = is_listed(operators, c->owner);
}

bool lease_caller_may(const struct lease_caller *c, const struct block_lease *lease)
{
	const char *owner = lease->owner ?: "";
	char text[LEASE_OWNER_TEXT], address[ADDRESS_TEXT];

	if (c->operator_ || (owner[0] && strcmp(owner, c->owner) == 0))
		return true;
	if (owner[0]) {
		/* From the time before the clients had certificates. */
		peer_name(&c->peer, text);
		return strcmp(owner, text) == 0;
	}
	snprintf(text, sizeof(text), "IP:%s", address_print(&lease->public_ip, address));
	return address_compare(&c->peer, &lease->public_ip) == 0 || strcmp(c->owner, text) == 0;
}

const char *lease_caller_binds(const struct lease_caller *c, const char *owner)
{
	return c->operator_ ? owner ?: "" : c->owner;
}

static int check_one(const char *name, struct err *err)
{
	static const char *const kinds[] = { "URI:", "DNS:", "CN:" };
	static const char *const address_kinds[] = { "IP:", LEASE_OWNER_PEER };
	struct address address;
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t n = strlen(kinds[i]);

		if (strncmp(name, kinds[i], n) == 0 && name[n] && !strchr(name, ' '))
			return word_check(name, err);
	}
	for (size_t i = 0; i < ARRAY_SIZE(address_kinds); i++) {
		size_t n = strlen(address_kinds[i]);

		/* As it is printed, for it is compared as text. */
		if (strncmp(name, address_kinds[i], n) == 0 &&
		    address_parse(name + n, &address) == 0 &&
		    strcmp(address_print(&address, text), name + n) == 0)
			return 0;
	}
	return err_set(err, -EINVAL,
		       "\"%s\" is no name of a client: URI:, DNS:, IP: or CN: and the name in its "
		       "certificate, or address: and its address",
		       name);
}

int lease_operators_check(const char *text, struct err *err)
{
	char name[LEASE_OWNER_TEXT];
	int r = 0;

	for (const char *at = text; r == 0; at += strcspn(at, ",") + 1) {
		size_t len = strcspn(at, ",");

		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		r = len < sizeof(name) ? check_one(name, err)
				       : err_set(err, -EINVAL, "a name is longer than 253 bytes");
		if (!at[len])
			break;
	}
	return r;
}
