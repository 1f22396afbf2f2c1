/* SPDX-License-Identifier: Apache-2.0 */
/* cni_ipam.h towards the agent: bodies of requests, and its reply as a result. */
#include <errno.h>
#include <string.h>

#include "lib/cni/cni_ipam.h"
#include "lib/json/json_out.h"

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
	for (size_t i = 0; i < ipam->n_ranges; i++)
		put_range(out, ipam, &ipam->ranges[i]);
	json_out_close(out, ']');
}

int cni_assign_body(const struct cni_conf *conf, const struct cni_env *env,
		    const struct cni_want *want, const struct cni_ipam *ipam, char **ret,
		    struct cni_error *e)
{
	static const struct address none;
	struct json_out out = { 0 };

	if (ipam->n_ranges > 0 && want->n_pools > 0 && !want->pools_from_pod)
		return cni_fail(e, CNI_CODE_CONFIG,
				"the IPAM configuration names both a pool and a range: a range "
				"makes its own pool, so leave one of them out");
	json_out_open(&out, NULL, '{');
	put_attachment(&out, conf, env);
	json_out_some_text(&out, "netns", env->netns);
	json_out_some_text(&out, "namespace", env->args.namespace);
	json_out_some_text(&out, "pod", env->args.pod);
	json_out_some_text(&out, "uid", env->args.uid);
	if (want->n_addresses > 0)
		put_addresses(&out, want->addresses, want->n_addresses);
	put_exclude(&out, &ipam->exclude, ipam->n_ranges > 0 ? &none : &ipam->gateway);
	if (ipam->n_ranges > 0)
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

static int read_given(struct json_at at, struct cni_ip *ret, struct cni_error *e)
{
	struct json_at address = json_need(&at, "address"), length = json_need(&at, "length");
	int64_t bits;

	*ret = (struct cni_ip){ .interface = -1 };
	if (cni_read_address(e, address, &ret->address.address) < 0)
		return -EINVAL;
	bits = address_bits(&ret->address.address);
	if (json_read_integer(length, 0, bits, &bits) < 0 ||
	    cni_read_address(e, json_member(&at, "gateway"), &ret->gateway) < 0)
		return -EINVAL;
	ret->address.length = (uint8_t)bits;
	return 0;
}

static int read_reply(struct json_at at, struct cni_result *ret, bool *ret_existing,
		      struct cni_error *e)
{
	struct json_at list = json_need(&at, "addresses");
	size_t n;
	int r;

	if (cni_read_array(e, list, &n) < 0)
		return -EINVAL;
	if (n == 0)
		return json_wrong(list, "is empty");
	ret->ips = calloc(n, sizeof(*ret->ips));
	if (!ret->ips)
		return cni_no_memory(e);
	ret->n_ips = n;
	for (size_t i = 0; i < n; i++)
		if (read_given(json_element(&list, i), &ret->ips[i], e) < 0)
			return -EINVAL;
	if (json_read_bool(json_member(&at, "existing"), ret_existing) < 0)
		return -EINVAL;
	r = cni_routes_read(json_member(&at, "routes"), &ret->routes, &ret->n_routes, e);
	return r < 0 ? r : cni_dns_read(json_member(&at, "dns"), &ret->dns, e);
}

static int apply_addresses(const struct cni_ipam *ipam, struct cni_result *result,
			   struct cni_error *e)
{
	struct cni_ip *ips = reallocarray(result->ips, result->n_ips + ipam->n_addresses + 1,
					  sizeof(*ips));

	if (!ips)
		return cni_no_memory(e);
	result->ips = ips;
	for (size_t i = 0; i < result->n_ips; i++)
		if (ipam->gateway.family == ips[i].address.address.family)
			ips[i].gateway = ipam->gateway;
	if (ipam->n_addresses > 0)
		memcpy(ips + result->n_ips, ipam->addresses, ipam->n_addresses * sizeof(*ips));
	result->n_ips += ipam->n_addresses;
	return 0;
}

/* What the configuration says takes the place of what the pool says. */
static void move_routes_and_dns(struct cni_ipam *ipam, struct cni_result *result)
{
	const struct cni_dns *dns = &ipam->dns;

	if (ipam->n_routes > 0) {
		free(result->routes);
		result->routes = TAKE(ipam->routes);
		result->n_routes = ipam->n_routes;
		ipam->n_routes = 0;
	}
	if (dns->domain || dns->nameservers.n + dns->search.n + dns->options.n > 0) {
		cni_dns_done(&result->dns);
		result->dns = ipam->dns;
		ipam->dns = (struct cni_dns){ 0 };
	}
}

int cni_assign_reply(struct json_object *reply, struct cni_ipam *ipam, bool *ret_existing,
		     struct cni_result *ret, struct cni_error *e)
{
	AUTO_DONE(cni_result_done) struct cni_result result = { 0 };
	bool existing = false;
	int r = reply ? read_reply(cni_root(reply, e), &result, &existing, e) : 0;

	if (r == -EINVAL) {
		err_wrap(&e->msg, r, "the agent's answer is not understood");
		e->code = CNI_CODE_IO;
	}
	if (r == 0)
		r = apply_addresses(ipam, &result, e);
	if (r < 0)
		return r;
	move_routes_and_dns(ipam, &result);
	*ret_existing = existing;
	*ret = result;
	result = (struct cni_result){ 0 };
	return 0;
}

/* --- CHECK ---------------------------------------------------------------------------------- */

static bool is_static(const struct cni_ipam *ipam, const struct address *a)
{
	for (size_t i = 0; i < ipam->n_addresses; i++)
		if (address_compare(&ipam->addresses[i].address.address, a) == 0)
			return true;
	return false;
}

/* Later plugins of the chain may have added interfaces and addresses of their own. */
static bool is_on(const struct cni_result *prev, const struct cni_ip *ip, const char *ifname)
{
	const char *name = ip->interface < 0 ? NULL : prev->interfaces[ip->interface].name;

	return !name || strcmp(name, ifname) == 0;
}

int cni_check_addresses(const struct cni_result *prev, const char *ifname,
			const struct cni_ipam *ipam, struct addresses *ret)
{
	struct address *v = calloc(prev->n_ips ?: 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < prev->n_ips; i++) {
		const struct cni_ip *ip = &prev->ips[i];

		if (is_on(prev, ip, ifname) && !is_static(ipam, &ip->address.address))
			v[n++] = ip->address.address;
	}
	*ret = (struct addresses){ v, n };
	return 0;
}
