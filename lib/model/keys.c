/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/keys.h"

#include <errno.h>
#include <string.h>

enum part { PART_NODE, PART_NETWORK, PART_POOL, PART_NAME, PART_FAMILY, PART_BLOCK, PART_ADDRESS };

static const char *const part_names[] = {
	[PART_NODE] = "<node>",       [PART_NETWORK] = "<network>", [PART_POOL] = "<pool>",
	[PART_NAME] = "<name>",       [PART_FAMILY] = "<family>",   [PART_BLOCK] = "<block>",
	[PART_ADDRESS] = "<address>",
};

static const char *const patterns[KEY_KINDS] = {
	[KEY_CONFIG] = "config",
	[KEY_POOL] = "pool/<pool>",
	[KEY_EXTENT] = "extent/<network>/<pool>",
	[KEY_BLOCK] = "block/<network>/<block>",
	[KEY_HOST_BLOCK] = "host/<node>/<family>/block/<network>/<block>",
	[KEY_ADDRESS] = "host/<node>/address/<network>/<address>",
	[KEY_GIVE_BACK] = "host/<node>/give-back/<network>",
	[KEY_NODE] = "node/<node>",
	[KEY_SPEC] = "spec/<node>",
	[KEY_REMOVED] = "removed/<node>",
	[KEY_RECOVERY] = "recovery",
	[KEY_PEER] = "peer/<name>",
	[KEY_FILTER] = "filter/<name>",
	[KEY_STATIC_ROUTE] = "static-route/<name>",
	[KEY_STATUS_NODE] = "status/node/<node>",
	[KEY_STATUS_POOL] = "status/pool/<pool>",
	[KEY_STATUS_STATIC_ROUTE] = "status/static-route/<name>/<node>",
	[KEY_LEADER] = "leader/controller",
	[KEY_HISTORY] = "history/<name>",
};

const char *key_pattern(enum key_kind kind)
{
	return kind < KEY_KINDS ? patterns[kind] : NULL;
}

/* The next segment, up to '/' or the end; *p moves behind the '/', or to NULL at the end. */
static size_t next_segment(const char **p)
{
	size_t n = strcspn(*p, "/");

	*p = (*p)[n] ? *p + n + 1 : NULL;
	return n;
}

/* Which part a segment of a pattern stands for; -1 for a plain word. */
static int part_of(const char *segment, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(part_names); i++)
		if (strlen(part_names[i]) == n && memcmp(part_names[i], segment, n) == 0)
			return (int)i;
	return -1;
}

static const char *family_word(sa_family_t family)
{
	return family == AF_INET ? "ipv4" : family == AF_INET6 ? "ipv6" : NULL;
}

/* --- parser --------------------------------------------------------------------------------- */

static int take_name(const char *text, name_check_fn *check, char *ret, size_t room)
{
	size_t n = strlen(text);

	if (n >= room || check(text, NULL) < 0)
		return -EINVAL;
	memcpy(ret, text, n + 1);
	return 0;
}

static int take_part(enum part part, const char *text, struct key *key, sa_family_t *family)
{
	switch (part) {
	case PART_NODE:
		return take_name(text, node_name_check, key->node, sizeof(key->node));
	case PART_NETWORK:
		return take_name(text, network_check, key->network, sizeof(key->network));
	case PART_POOL:
		return take_name(text, name_check, key->pool, sizeof(key->pool));
	case PART_NAME:
		return take_name(text, name_check, key->name, sizeof(key->name));
	case PART_BLOCK:
		return prefix_parse_key(text, &key->block);
	case PART_ADDRESS:
		return address_parse(text, &key->address);
	case PART_FAMILY:
		*family = strcmp(text, "ipv4") == 0   ? AF_INET
			  : strcmp(text, "ipv6") == 0 ? AF_INET6
						      : AF_UNSPEC;
		return *family ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static int parse_as(enum key_kind kind, const char *text, struct key *ret)
{
	const char *pattern = patterns[kind];
	struct key key = { .kind = kind };
	sa_family_t family = AF_UNSPEC;
	int r;

	while (pattern && text) {
		const char *want = pattern, *have = text;
		size_t n_want = next_segment(&pattern), n_have = next_segment(&text);
		int part = part_of(want, n_want);
		char segment[NODE_NAME_TEXT];

		if (part < 0) {
			if (n_want != n_have || memcmp(want, have, n_want) != 0)
				return -EINVAL;
			continue;
		}
		if (n_have >= sizeof(segment))
			return -EINVAL;
		memcpy(segment, have, n_have);
		segment[n_have] = '\0';
		r = take_part((enum part)part, segment, &key, &family);
		if (r < 0)
			return r;
	}
	if (pattern || text || (family && family != key.block.address.family))
		return -EINVAL;
	*ret = key;
	return 0;
}

int key_parse(const char *text, struct key *ret)
{
	/* The words in the patterns keep the kinds apart: at most one can fit. */
	for (int kind = 0; kind < KEY_KINDS; kind++)
		if (patterns[kind][0] == text[0] && parse_as((enum key_kind)kind, text, ret) == 0)
			return 0;
	return -EINVAL;
}

int key_parse_full(const char *prefix, const char *text, struct key *ret)
{
	size_t n = strlen(prefix);

	if (strncmp(text, prefix, n) != 0)
		return -EINVAL;
	return key_parse(text + n, ret);
}

/* --- builders ------------------------------------------------------------------------------- */

static const char *checked(const char *name, name_check_fn *check)
{
	return name && check(name, NULL) == 0 ? name : NULL;
}

/* The text of one part, in buffer or in the part itself; NULL when it is not valid. */
static const char *give_part(enum part part, const struct key_parts *parts, char *buffer)
{
	switch (part) {
	case PART_NODE:
		return checked(parts->node, node_name_check);
	case PART_NETWORK:
		return checked(parts->network, network_check);
	case PART_POOL:
		return checked(parts->pool, name_check);
	case PART_NAME:
		return checked(parts->name, name_check);
	case PART_FAMILY:
		return family_word(parts->family);
	case PART_BLOCK:
		if (!parts->block || !family_word(parts->block->address.family) ||
		    parts->block->length > address_bits(&parts->block->address) ||
		    prefix_has_host_bits(parts->block))
			return NULL;
		return prefix_print_key(parts->block, buffer);
	case PART_ADDRESS:
		if (!parts->address || !family_word(parts->address->family))
			return NULL;
		return address_print(parts->address, buffer);
	}
	return NULL;
}

/* Patterns stop at an empty segment: "host/<node>/" makes what many keys begin with. */
int key_build(char *text, const char *pattern, const struct key_parts *parts)
{
	char made[KEY_TEXT], buffer[PREFIX_TEXT];
	size_t used = 0;

	while (pattern) {
		const char *word = pattern;
		size_t n = next_segment(&pattern);
		int part = part_of(word, n);

		if (part >= 0) {
			word = give_part((enum part)part, parts, buffer);
			if (!word)
				return -EINVAL;
			n = strlen(word);
		}
		if (used + n + 2 > sizeof(made))
			return -EINVAL;
		memcpy(made + used, word, n);
		used += n;
		if (pattern)
			made[used++] = '/';
	}
	made[used] = '\0';
	memcpy(text, made, used + 1);
	return 0;
}

int key_print(const struct key *key, char *text)
{
	const struct key_parts parts = {
		.node = key->node,
		.network = key->network,
		.pool = key->pool,
		.name = key->name,
		.block = &key->block,
		.address = &key->address,
		.family = key->block.address.family,
	};

	if (key->kind >= KEY_KINDS)
		return -EINVAL;
	return key_build(text, patterns[key->kind], &parts);
}

int key_full(const char *prefix, const char *key, char *text)
{
	size_t n = strlen(prefix), m = strlen(key);

	if (n + m >= KEY_FULL_TEXT)
		return -ENAMETOOLONG;
	memcpy(text, prefix, n);
	memcpy(text + n, key, m + 1);
	return 0;
}
