/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_want.h"

#include <errno.h>
#include <string.h>

#define ANNOTATIONS "io.kubernetes.cri.pod-annotations"

/* --- lists in a text: "a, b" or ["a","b"] --------------------------------------------------- */

static const char blanks[] = " \t\r\n";

/* The text without what surrounds it: blanks, and a pair of brackets or quotes if it has them. */
static char *strip(char *text, const char *pair)
{
	size_t n;

	text += strspn(text, blanks);
	n = strlen(text);
	while (n > 0 && strchr(blanks, text[n - 1]))
		n--;
	if (n >= 2 && text[0] == pair[0] && text[n - 1] == pair[1]) {
		text++;
		n -= 2;
	}
	text[n] = '\0';
	return text;
}

typedef int item_fn(struct cni_want *want, const char *item, struct err *why);

static int each_item(const char *text, item_fn *item, struct cni_want *want, struct err *why)
{
	AUTO(free) char *copy = strdup(text);
	char *rest, *one;
	int r = 0;

	if (!copy)
		return err_set(why, -ENOMEM, "out of memory");
	rest = strip(copy, "[]");
	if (!*strip(rest, "  "))
		return 0;
	while (r == 0 && (one = strsep(&rest, ",")))
		r = item(want, strip(one, "\"\""), why);
	return r;
}

static int add_pool(struct cni_want *want, const char *item, struct err *why)
{
	int r = name_check(item, why);

	if (r < 0)
		return r;
	if (want->n_pools == CNI_POOLS_MAX)
		return err_set(why, -EINVAL, "more than %d pools", CNI_POOLS_MAX);
	strcpy(want->pools[want->n_pools++], item);
	return 0;
}

/* With a length or without: it comes from the pool anyway. */
static int add_address(struct cni_want *want, const char *item, struct err *why)
{
	char shown[SHOW_TEXT];
	struct prefix p;

	if (prefix_parse_host(item, &p) < 0 && address_parse(item, &p.address) < 0)
		return err_set(why, -EINVAL, "\"%s\" is not an address such as \"10.1.0.5\"",
			       text_show(item, shown));
	if (want->n_addresses == CNI_ADDRESSES_MAX)
		return err_set(why, -EINVAL, "more than %d addresses", CNI_ADDRESSES_MAX);
	want->addresses[want->n_addresses++] = p.address;
	return 0;
}

static int one_value(struct json_at at, const char *text, item_fn *item, struct cni_want *want,
		     struct cni_error *e)
{
	struct err why;

	if (item(want, text, &why) == 0)
		return 1;
	return cni_read(e, json_wrong(at, "%s", why.text));
}

/* A string is one item, a list has one in each element. 0 if absent, 1 if there. */
static int each_value(struct json_at at, item_fn *item, struct cni_want *want, struct cni_error *e)
{
	struct texts texts = { 0 };
	const char *text;
	int r;

	if (!json_object_is_type(at.value, json_type_array)) {
		r = cni_read(e, json_read_text(at, JSON_STRING_MAX, &text));
		return r > 0 ? one_value(at, text, item, want, e) : r;
	}
	r = cni_read(e, json_read_texts(at, JSON_STRING_MAX, &texts.v, &texts.n));
	if (r < 0)
		return r;
	r = 0;
	for (size_t i = 0; r >= 0 && i < texts.n; i++)
		r = one_value(json_element(&at, i), texts.v[i], item, want, e);
	free(texts.v);
	return r;
}

/* --- annotations ---------------------------------------------------------------------------- */

/* Kubernetes tells annotations apart by case, unlike the fields around them. */
static int each_in_annotation(const struct json_at *runtime, const char *name, item_fn *item,
			      struct cni_want *want, struct cni_error *e)
{
	struct json_at all = json_member(runtime, ANNOTATIONS), at;
	size_t before = want->n_pools + want->n_addresses;
	const char *text;
	struct err why;
	int r;

	all.as_go = false;
	at = json_member(&all, name);
	at.as_go = true;
	r = cni_read(e, json_read_text(at, JSON_STRING_MAX, &text));

	if (r <= 0)
		return r;
	r = each_item(text, item, want, &why);
	if (r < 0) {
		cni_fail(e, r == -ENOMEM ? CNI_CODE_IO : CNI_CODE_CONFIG,
			 "the pod's annotation %s: %s", name, why.text);
		return r;
	}
	return want->n_pools + want->n_addresses > before;
}

/* Either place may switch them off. */
static int read_switch(const struct json_at *root, bool *ret, struct cni_error *e)
{
	struct json_at ipam = json_member(root, "ipam");
	const struct json_at *const places[] = { &ipam, root };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		bool on = true;
		int r = cni_read(e, json_read_bool(json_member(places[i], "podAnnotations"), &on));

		if (r < 0)
			return r;
		*ret = *ret && on;
	}
	return 0;
}

/* --- pools ---------------------------------------------------------------------------------- */

/* runtime NULL: annotations are ignored. */
static int read_pools(const struct json_at *root, const struct json_at *runtime,
		      struct cni_want *want, struct cni_error *e)
{
	struct json_at ipam = json_member(root, "ipam");
	const struct json_at *const places[] = { &ipam, root };
	int r = runtime ? each_in_annotation(runtime, "roost.io/pool", add_pool, want, e) : 0;

	want->pools_from_pod = r > 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(places); i++) {
		r = each_value(json_member(places[i], "pool"), add_pool, want, e);
		if (r == 0)
			r = each_value(json_member(places[i], "pools"), add_pool, want, e);
	}
	return r < 0 ? r : 0;
}

/* --- addresses ------------------------------------------------------------------------------ */

/* As each_value, but what is wrong leaves nothing behind. */
static int from_args(struct json_at at, struct cni_want *want)
{
	struct cni_error ignored = { 0 };

	at.err = NULL;
	if (each_value(at, add_address, want, &ignored) >= 0)
		return want->n_addresses > 0;
	want->n_addresses = 0;
	return 0;
}

static int from_cni_args(const char *text, struct cni_want *want, struct cni_error *e)
{
	struct err why;
	int r = each_item(text, add_address, want, &why);

	if (r < 0)
		cni_fail(e, CNI_CODE_ENVIRONMENT, "invalid IP in CNI_ARGS: %s", why.text);
	return r;
}

static int read_addresses(struct json_at runtime, bool annotations, struct json_at args,
			  const char *cni_args_ip, struct cni_want *want, struct cni_error *e)
{
	int r = each_value(json_member(&runtime, "ips"), add_address, want, e);

	if (r == 0 && annotations)
		r = each_in_annotation(&runtime, "roost.io/addresses", add_address, want, e);
	if (r == 0)
		r = from_args(json_member(&args, "ips"), want);
	if (r == 0)
		r = from_cni_args(cni_args_ip, want, e);
	return r < 0 ? r : 0;
}

/* --- MAC address and DNS -------------------------------------------------------------------- */

static bool device_mac_parse(const char *text, struct mac *ret)
{
	struct mac mac;

	if (!mac_parse(text, &mac) || !mac_is_of_device(&mac))
		return false;
	*ret = mac;
	return true;
}

static int read_mac(struct json_at runtime, struct json_at args, const char *cni_args_mac,
		    struct mac *ret, struct cni_error *e)
{
	struct json_at at = json_member(&runtime, "mac");
	const char *text;
	char shown[SHOW_TEXT];
	int r = cni_read(e, json_read_text(at, JSON_STRING_MAX, &text));

	if (r < 0)
		return r;
	if (r > 0 && device_mac_parse(text, ret))
		return 0;
	if (r > 0)
		return cni_read(e, json_refuse(at, "is not the MAC address of a device"));
	at = json_member(&args, "mac");
	if (json_object_is_type(at.value, json_type_string) &&
	    device_mac_parse(json_object_get_string(at.value), ret))
		return 0;
	if (!*cni_args_mac || device_mac_parse(cni_args_mac, ret))
		return 0;
	return cni_fail(e, CNI_CODE_ENVIRONMENT,
			"invalid MAC in CNI_ARGS: \"%s\" is not the MAC address of a device",
			text_show(cni_args_mac, shown));
}

/* The capability has other names for two of them than the result. */
static const struct field dns_fields[] = {
	{ LIST(cni_dns, nameservers, "servers", &cni_text_element) },
	{ LIST(cni_dns, search, "searches", &cni_text_element) },
	{ LIST(cni_dns, options, "options", &cni_text_element) },
};
static const struct field dns_field = { OBJECT(cni_want, dns, "dns", dns_fields) };

int cni_want_read(const struct cni_conf *conf, const struct cni_env *env, struct cni_want *ret,
		  struct cni_error *e)
{
	struct json_at root = cni_root(conf->json, e),
		       runtime = json_member(&root, "runtimeConfig"),
		       outer = json_member(&root, "args"), args = json_member(&outer, "cni");
	bool annotations = true;
	int r;

	*ret = (struct cni_want){ 0 };
	r = cni_read(e, json_read_object(runtime));
	if (r >= 0)
		r = read_switch(&root, &annotations, e);
	if (r >= 0)
		r = read_pools(&root, annotations ? &runtime : NULL, ret, e);
	if (r == 0)
		r = read_addresses(runtime, annotations, args, env->args.ip, ret, e);
	if (r == 0)
		r = read_mac(runtime, args, env->args.mac, &ret->mac, e);
	if (r == 0)
		r = cni_read(e, fields_read(&dns_field, 1, &runtime, ret));
	if (r < 0)
		cni_want_done(ret);
	return r;
}

void cni_want_done(struct cni_want *want)
{
	cni_dns_done(&want->dns);
}
