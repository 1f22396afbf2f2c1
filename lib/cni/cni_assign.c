/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "lib/base/json_out.h"
#include "lib/cni/cni_assign.h"

static void put_attachment(struct json_out *out, const struct cni_conf *conf,
			   const struct cni_env *env)
{
	json_out_text(out, "network", conf->name);
	json_out_text(out, "container", env->container);
	json_out_text(out, "interface", env->ifname);
}

static void put_addresses(struct json_out *out, const struct address *v, size_t n)
{
	json_out_open(out, "addresses", '[');
	for (size_t i = 0; i < n; i++)
		json_out_address(out, NULL, &v[i]);
	json_out_close(out, ']');
}

static void put_pools(struct json_out *out, const struct cni_want *want)
{
	if (want->n_pools == 0)
		return;
	json_out_open(out, "pools", '[');
	for (size_t i = 0; i < want->n_pools; i++)
		json_out_text(out, NULL, want->pools[i]);
	json_out_close(out, ']');
}

/* A gateway is nobody's pod address, whether the configuration excludes it or not. */
static void put_exclude(struct json_out *out, const struct prefixes *exclude,
			const struct address *gateway)
{
	if (exclude->n == 0 && !gateway->family)
		return;
	json_out_open(out, "exclude", '[');
	for (size_t i = 0; i < exclude->n; i++)
		json_out_prefix(out, NULL, &exclude->v[i]);
	json_out_some_address(out, NULL, gateway);
	json_out_close(out, ']');
}

static void put_range(struct json_out *out, const struct cni_ipam *ipam, const struct cni_range *r)
{
	static const struct address none;

	json_out_open(out, NULL, '{');
	json_out_prefix(out, "range", &r->range);
	json_out_some_address(out, "start", &r->start);
	json_out_some_address(out, "end", &r->end);
	put_exclude(out, &r->exclude, &none);
	json_out_some_text(out, "network", ipam->network);
	if (r->slice)
		json_out_number(out, "sliceSize", r->slice);
	if (ipam->gateway.family == r->range.address.family)
		json_out_address(out, "gateway", &ipam->gateway);
	json_out_close(out, '}');
}

static void put_ranges(struct json_out *out, const struct cni_ipam *ipam)
{
	json_out_open(out, "ranges", '[');
	for (size_t i = 0; i < ipam->ranges.n; i++)
		put_range(out, ipam, &ipam->ranges.v[i]);
	json_out_close(out, ']');
}

int cni_assign_body(const struct cni_conf *conf, const struct cni_env *env,
		    const struct cni_want *want, const struct cni_ipam *ipam, char **ret,
		    struct cni_error *e)
{
	static const struct address none;
	struct json_out out = { 0 };

	if (ipam->ranges.n > 0 && want->n_pools > 0 && !want->pools_from_pod)
		return cni_fail(e, CNI_CODE_CONFIG,
				"the IPAM configuration names both a pool and a range: a range "
				"makes its own pool, so remove one of them");
	json_out_open(&out, NULL, '{');
	put_attachment(&out, conf, env);
	json_out_some_text(&out, "netns", env->netns);
	json_out_some_text(&out, "namespace", env->args.namespace);
	json_out_some_text(&out, "pod", env->args.pod);
	json_out_some_text(&out, "uid", env->args.uid);
	if (want->n_addresses > 0)
		put_addresses(&out, want->addresses, want->n_addresses);
	put_exclude(&out, &ipam->exclude, ipam->ranges.n > 0 ? &none : &ipam->gateway);
	if (ipam->ranges.n > 0)
		put_ranges(&out, ipam);
	else
		put_pools(&out, want);
	json_out_close(&out, '}');
	return json_out_take(&out, ret) < 0 ? cni_no_memory(e) : 0;
}

int cni_attachment_body(const struct cni_conf *conf, const struct cni_env *env,
			const struct addresses *addresses, char **ret)
{
	struct json_out out = { 0 };

	json_out_open(&out, NULL, '{');
	put_attachment(&out, conf, env);
	if (addresses)
		put_addresses(&out, addresses->v, addresses->n);
	json_out_close(&out, '}');
	return json_out_take(&out, ret);
}

int cni_gc_body(const struct cni_conf *conf, const struct cni_attachments *valid, char **ret)
{
	struct json_out out = { 0 };

	json_out_open(&out, NULL, '{');
	json_out_text(&out, "network", conf->name);
	json_out_open(&out, "valid", '[');
	for (size_t i = 0; i < valid->n; i++) {
		json_out_open(&out, NULL, '{');
		json_out_text(&out, "container", valid->v[i].container);
		json_out_text(&out, "interface", valid->v[i].ifname);
		json_out_close(&out, '}');
	}
	json_out_close(&out, ']');
	json_out_close(&out, '}');
	return json_out_take(&out, ret);
}

/* --- the reply ------------------------------------------------------------------------------ */

static int given_read(const struct field *f, struct json_at in, void *at)
{
	struct json_at address = json_need(&in, "address"), length = json_need(&in, "length");
	struct cni_ip *ip = at;
	int64_t bits;
	int r = json_read_address(address, &ip->address.address);

	ip->interface = -1;
	bits = r < 0 ? 0 : address_bits(&ip->address.address);
	r = r < 0 ? r : json_read_integer(length, 0, bits, &bits);
	r = r < 0 ? r : json_read_address(json_member(&in, "gateway"), &ip->gateway);
	ip->address.length = (uint8_t)bits;
	return r < 0 ? r : 0;
}

struct reply {
	struct cni_result result;
	bool existing;
};
static const struct field_type field_given = { .read = given_read };
static const struct field given_element = { ELEMENT(given) };
static const struct field reply_fields[] = {
	{ LIST(reply, result.ips, "addresses", &given_element), .required = true },
	{ FIELD(reply, existing, "existing", flag) },
	{ CNI_ROUTES(reply, result.routes, "routes") },
	{ CNI_DNS(reply, result.dns, "dns") },
};

/* What the configuration says takes the place of what the pool says. */
static int apply(struct cni_ipam *ipam, struct cni_result *result)
{
	const struct cni_dns *dns = &ipam->dns;

	for (size_t i = 0; i < result->ips.n; i++)
		if (ipam->gateway.family == result->ips.v[i].address.address.family)
			result->ips.v[i].gateway = ipam->gateway;
	for (size_t i = 0; i < ipam->addresses.n; i++)
		if (array_append(&result->ips, ipam->addresses.v[i]) < 0)
			return -ENOMEM;
	if (ipam->routes.n > 0) {
		free(result->routes.v);
		result->routes = ipam->routes;
		ipam->routes = (struct cni_routes){ 0 };
	}
	if (dns->domain || dns->nameservers.n + dns->search.n + dns->options.n > 0) {
		cni_dns_done(&result->dns);
		result->dns = ipam->dns;
		ipam->dns = (struct cni_dns){ 0 };
	}
	return 0;
}

int cni_assign_reply(struct json_object *reply, struct cni_ipam *ipam, bool *ret_existing,
		     struct cni_result *ret, struct cni_error *e)
{
	struct reply read = { 0 };
	struct json_at root = cni_root(reply, e);
	int r = 0;

	if (reply) {
		r = fields_read(reply_fields, ARRAY_SIZE(reply_fields), &root, &read);
		if (r == 0 && read.result.ips.n == 0)
			r = json_wrong(json_member(&root, "addresses"), "is empty");
		if (r < 0 && r != -ENOMEM) {
			r = err_wrap(&e->msg, -EINVAL, "the agent's reply is invalid");
			e->code = CNI_CODE_IO;
		}
	}
	cni_routes_mask(&read.result.routes);
	r = r ?: apply(ipam, &read.result);
	if (r == -ENOMEM)
		cni_no_memory(e);
	if (r < 0) {
		cni_result_done(&read.result);
		return r;
	}
	*ret_existing = read.existing;
	*ret = read.result;
	return 0;
}

/* --- CHECK ---------------------------------------------------------------------------------- */

static bool is_static(const struct cni_ipam *ipam, const struct address *a)
{
	for (size_t i = 0; i < ipam->addresses.n; i++)
		if (address_compare(&ipam->addresses.v[i].address.address, a) == 0)
			return true;
	return false;
}

/* Later plugins of the chain may have added interfaces and addresses of their own. */
static bool is_on(const struct cni_result *prev, const struct cni_ip *ip, const char *ifname)
{
	const char *name = ip->interface < 0 ? NULL : prev->interfaces.v[ip->interface].name;

	return !name || strcmp(name, ifname) == 0;
}

int cni_check_addresses(const struct cni_result *prev, const char *ifname,
			const struct cni_ipam *ipam, struct addresses *ret)
{
	struct address *v = calloc(prev->ips.n ?: 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < prev->ips.n; i++) {
		const struct cni_ip *ip = &prev->ips.v[i];

		if (is_on(prev, ip, ifname) && !is_static(ipam, &ip->address.address))
			v[n++] = ip->address.address;
	}
	*ret = (struct addresses){ v, n };
	return 0;
}
