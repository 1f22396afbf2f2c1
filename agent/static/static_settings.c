/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of subnets and addresses, as the agent is told them. */
#include <errno.h>
#include <string.h>

#include "agent/static/static_routes.h"

/* One after the other, up to a ','. 1: there is one; 0: no more; -EINVAL. */
static int next(const char **text, char *word, size_t size, const char *what, struct err *err)
{
	size_t n = strcspn(*text, ",");

	if (!**text)
		return 0;
	if (n == 0 || n >= size)
		return err_set(err, -EINVAL, "\"%s\": %s are separated by single commas", *text,
			       what);
	memcpy(word, *text, n);
	word[n] = '\0';
	*text += n + ((*text)[n] == ',');
	return 1;
}

int static_subnets_parse(const char *text, struct prefixes *ret, struct err *err)
{
	AUTO(free) struct prefix *v = NULL;
	char word[PREFIX_TEXT + 16];
	size_t n = 0;
	int r;

	while ((r = next(&text, word, sizeof(word), "subnets", err)) > 0) {
		struct prefix *grown = reallocarray(v, n + 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		v = grown;
		if (prefix_parse(word, &v[n]) < 0)
			return err_set(err, -EINVAL,
				       "\"%s\" is not a subnet such as 10.0.0.0/8 or fd00::/8, "
				       "without bits beyond its length",
				       word);
		n++;
	}
	if (r < 0)
		return r;
	*ret = (struct prefixes){ TAKE(v), n };
	return 0;
}

int static_probes_parse(const char *text, struct address ret[2], struct err *err)
{
	struct address probes[2] = { 0 };
	char word[ADDRESS_TEXT + 16];
	int r;

	while ((r = next(&text, word, sizeof(word), "addresses", err)) > 0) {
		struct address a;

		if (address_parse(word, &a) < 0 || address_is_unspecified(&a) ||
		    address_is_multicast(&a) || address_is_loopback(&a))
			return err_set(err, -EINVAL, "\"%s\" is not the address of another host",
				       word);
		if (probes[a.family == AF_INET6].family)
			return err_set(err, -EINVAL, "\"%s\": one address of each family at most",
				       word);
		probes[a.family == AF_INET6] = a;
	}
	if (r < 0)
		return r;
	memcpy(ret, probes, sizeof(probes));
	return 0;
}

int static_subnets_check(const char *text, struct err *err)
{
	struct prefixes subnets = { 0 };
	int r = static_subnets_parse(text, &subnets, err);

	free(subnets.v);
	return r;
}

int static_probes_check(const char *text, struct err *err)
{
	struct address probes[2];

	return static_probes_parse(text, probes, err);
}
