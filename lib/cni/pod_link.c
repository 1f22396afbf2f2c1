/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/pod_link.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/hash.h"

#define STEM   "roost"
#define DIGITS 10

const struct mac pod_link_host_mac = { { 0xee, 0xee, 0xee, 0xee, 0xee, 0xee } };

const char *pod_link_name(const char *container, const char *interface, char name[IF_NAME_TEXT])
{
	char digits[HASH_TEXT];

	hash_print(HASH_TEXTS(container, interface), digits);
	snprintf(name, IF_NAME_TEXT, STEM "%.*s", DIGITS, digits);
	return name;
}

bool pod_link_is_ours(const char *name)
{
	const size_t stem = strlen(STEM);

	return strncmp(name, STEM, stem) == 0 &&
	       strspn(name + stem, "0123456789abcdef") == DIGITS && name[stem + DIGITS] == '\0';
}

struct address pod_gateway(sa_family_t family)
{
	if (family == AF_INET)
		return (struct address){ AF_INET, { 169, 254, 1, 1 } };
	/* fe80::/64 and the EUI-64 of the host end's MAC, as the kernel makes it. */
	return (struct address){ AF_INET6,
				 { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0xec, 0xee, 0xee, 0xff, 0xfe, 0xee,
				   0xee, 0xee } };
}
