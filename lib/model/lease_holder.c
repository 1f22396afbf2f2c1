/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/lease_holder.h"

#include <string.h>

#define BEGINNING "lease-"

const char *lease_holder_name(const struct address *public_ip, char *text)
{
	char address[ADDRESS_TEXT];

	/* No name ends in '-', as "2001:db8::" would. */
	snprintf(text, NODE_NAME_TEXT, BEGINNING "%s", address_print(public_ip, address));
	for (char *c = text; *c; c++)
		if (*c == ':')
			*c = '-';
	if (text[strlen(text) - 1] == '-')
		strcat(text, "0");
	return text;
}

/* An agent may be called lease-office, but hardly lease-10.0.0.1. */
bool lease_holder_is(const char *node)
{
	struct address ignored;
	char copy[ADDRESS_TEXT];
	const char *rest = node + strlen(BEGINNING);

	if (strncmp(node, BEGINNING, strlen(BEGINNING)) != 0 || strlen(rest) >= sizeof(copy))
		return false;
	if (address_parse(rest, &ignored) == 0)
		return true;
	strcpy(copy, rest);
	for (char *c = copy; *c; c++)
		if (*c == '-')
			*c = ':';
	return address_parse(copy, &ignored) == 0 && ignored.family == AF_INET6;
}

bool node_is_lease(const struct node *node)
{
	return node->machine && strcmp(node->machine, LEASE_MACHINE) == 0 &&
	       lease_holder_is(node->name);
}

int lease_holder_record(const struct address *public_ip, const struct mac *mac,
			const char *recovery, char **ret)
{
	struct node node = { .machine = LEASE_MACHINE,
			     .boot = LEASE_MACHINE,
			     .recovery = recovery };
	const struct prefix whole = { *public_ip, (uint8_t)address_bits(public_ip) };

	if (public_ip->family == AF_INET)
		node.ipv4 = whole;
	else
		node.ipv6 = whole;
	node.vtep.mac = *mac;
	return node_encode(&node, ret);
}
