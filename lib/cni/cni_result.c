/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_result.h"

#include <errno.h>

#include "lib/json/json_out.h"

void cni_dns_done(struct cni_dns *dns)
{
	free(dns->nameservers.v);
	free(dns->search.v);
	free(dns->options.v);
	*dns = (struct cni_dns){ 0 };
}

void cni_result_done(struct cni_result *result)
{
	free(result->interfaces);
	free(result->ips);
	free(result->routes);
	cni_dns_done(&result->dns);
	*result = (struct cni_result){ 0 };
}

/* --- parts that all versions have ----------------------------------------------------------- */

static void put_texts(struct json_out *out, const char *name, const struct texts *texts)
{
	if (texts->n == 0)
		return;
	json_out_open(out, name, '[');
	for (size_t i = 0; i < texts->n; i++)
		json_out_text(out, NULL, texts->v[i]);
	json_out_close(out, ']');
}

static void put_dns(struct json_out *out, const struct cni_dns *dns)
{
	bool domain = dns->domain && *dns->domain;

	if (!domain && dns->nameservers.n + dns->search.n + dns->options.n == 0)
		return;
	json_out_open(out, "dns", '{');
	put_texts(out, "nameservers", &dns->nameservers);
	json_out_some_text(out, "domain", dns->domain);
	put_texts(out, "search", &dns->search);
	put_texts(out, "options", &dns->options);
	json_out_close(out, '}');
}

/* 0: not said. */
static void put_some_number(struct json_out *out, const char *name, int64_t number)
{
	if (number)
		json_out_number(out, name, number);
}

static void put_route(struct json_out *out, const struct cni_route *r, enum cni_version version)
{
	json_out_open(out, NULL, '{');
	json_out_prefix(out, "dst", &r->dst);
	json_out_some_address(out, "gw", &r->gw);
	if (version >= CNI_1_1_0) {
		put_some_number(out, "mtu", r->mtu);
		put_some_number(out, "advmss", r->advmss);
		put_some_number(out, "priority", r->priority);
		if (r->table >= 0)
			json_out_number(out, "table", r->table);
		if (r->scope >= 0)
			json_out_number(out, "scope", r->scope);
	}
	json_out_close(out, '}');
}

/* Those of one family, or all with family 0. */
static void put_routes(struct json_out *out, const struct cni_result *result, sa_family_t family,
		       enum cni_version version)
{
	bool open = false;

	for (size_t i = 0; i < result->n_routes; i++) {
		const struct cni_route *r = &result->routes[i];

		if (family && r->dst.address.family != family)
			continue;
		if (!open)
			json_out_open(out, "routes", '[');
		open = true;
		put_route(out, r, version);
	}
	if (open)
		json_out_close(out, ']');
}

/* --- 0.1.0, 0.2.0 --------------------------------------------------------------------------- */

static const struct cni_ip *first_of(const struct cni_result *result, sa_family_t family)
{
	for (size_t i = 0; i < result->n_ips; i++)
		if (result->ips[i].address.address.family == family)
			return &result->ips[i];
	return NULL;
}

static void put_family(struct json_out *out, const struct cni_result *result, sa_family_t family)
{
	const struct cni_ip *ip = first_of(result, family);

	if (!ip)
		return;
	json_out_open(out, family == AF_INET ? "ip4" : "ip6", '{');
	json_out_prefix(out, "ip", &ip->address);
	json_out_some_address(out, "gateway", &ip->gateway);
	put_routes(out, result, family, CNI_0_2_0);
	json_out_close(out, '}');
}

static int fits_02(const struct cni_result *result, enum cni_version version, struct cni_error *e)
{
	size_t families = !!first_of(result, AF_INET) + !!first_of(result, AF_INET6);

	if (result->n_ips > 0 && result->n_ips == families)
		return 0;
	return cni_fail(e, CNI_CODE_CONFIG,
			"a result of cniVersion \"%s\" has one address, or one of each family; "
			"this one would have %zu: set a cniVersion from \"0.3.0\" on",
			cni_version_name(version), result->n_ips);
}

/* --- from 0.3.0 on -------------------------------------------------------------------------- */

static void put_interfaces(struct json_out *out, const struct cni_result *result,
			   enum cni_version version)
{
	if (result->n_interfaces == 0)
		return;
	json_out_open(out, "interfaces", '[');
	for (size_t i = 0; i < result->n_interfaces; i++) {
		const struct cni_interface *f = &result->interfaces[i];

		json_out_open(out, NULL, '{');
		json_out_text(out, "name", f->name ?: "");
		json_out_some_text(out, "mac", f->mac);
		if (version >= CNI_1_1_0)
			put_some_number(out, "mtu", f->mtu);
		json_out_some_text(out, "sandbox", f->sandbox);
		if (version >= CNI_1_1_0) {
			json_out_some_text(out, "socketPath", f->socket_path);
			json_out_some_text(out, "pciID", f->pci_id);
		}
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

static void put_ips(struct json_out *out, const struct cni_result *result, enum cni_version version)
{
	if (result->n_ips == 0)
		return;
	json_out_open(out, "ips", '[');
	for (size_t i = 0; i < result->n_ips; i++) {
		const struct cni_ip *ip = &result->ips[i];
		bool four = ip->address.address.family == AF_INET;

		json_out_open(out, NULL, '{');
		if (version < CNI_1_0_0)
			json_out_text(out, "version", four ? "4" : "6");
		if (ip->interface >= 0)
			json_out_number(out, "interface", ip->interface);
		json_out_prefix(out, "address", &ip->address);
		json_out_some_address(out, "gateway", &ip->gateway);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

int cni_result_print(const struct cni_result *result, enum cni_version version, char **ret,
		     struct cni_error *e)
{
	struct json_out out = { 0 };
	bool old = version < CNI_0_3_0;

	if (old && fits_02(result, version, e) < 0)
		return -EINVAL;
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "cniVersion", cni_version_name(version));
	if (old) {
		put_family(&out, result, AF_INET);
		put_family(&out, result, AF_INET6);
	} else {
		put_interfaces(&out, result, version);
		put_ips(&out, result, version);
		put_routes(&out, result, 0, version);
	}
	put_dns(&out, &result->dns);
	json_out_close(&out, '}');
	return json_out_take(&out, ret) < 0 ? cni_no_memory(e) : 0;
}
