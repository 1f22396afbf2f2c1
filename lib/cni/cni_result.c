/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_result.h"

#include <errno.h>
#include <string.h>

#include "lib/base/json_out.h"

void cni_dns_done(struct cni_dns *dns)
{
	free(dns->nameservers.v);
	free(dns->search.v);
	free(dns->options.v);
	*dns = (struct cni_dns){ 0 };
}

void cni_result_done(struct cni_result *result)
{
	free(result->interfaces.v);
	free(result->ips.v);
	free(result->routes.v);
	cni_dns_done(&result->dns);
	*result = (struct cni_result){ 0 };
}

/* --- printing: parts that all versions have ------------------------------------------------- */

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

	for (size_t i = 0; i < result->routes.n; i++) {
		const struct cni_route *r = &result->routes.v[i];

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

/* --- printing: 0.1.0, 0.2.0 ----------------------------------------------------------------- */

static const struct cni_ip *first_of(const struct cni_result *result, sa_family_t family)
{
	for (size_t i = 0; i < result->ips.n; i++)
		if (result->ips.v[i].address.address.family == family)
			return &result->ips.v[i];
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

	if (result->ips.n > 0 && result->ips.n == families)
		return 0;
	return cni_fail(e, CNI_CODE_CONFIG,
			"a result of cniVersion \"%s\" has one address, or one of each family; "
			"this one would have %zu: set a cniVersion from \"0.3.0\" on",
			cni_version_name(version), result->ips.n);
}

/* --- printing: from 0.3.0 on ---------------------------------------------------------------- */

static void put_interfaces(struct json_out *out, const struct cni_result *result,
			   enum cni_version version)
{
	if (result->interfaces.n == 0)
		return;
	json_out_open(out, "interfaces", '[');
	for (size_t i = 0; i < result->interfaces.n; i++) {
		const struct cni_interface *f = &result->interfaces.v[i];

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
	if (result->ips.n == 0)
		return;
	json_out_open(out, "ips", '[');
	for (size_t i = 0; i < result->ips.n; i++) {
		const struct cni_ip *ip = &result->ips.v[i];
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

/* --- reading -------------------------------------------------------------------------------- */

const struct field cni_text_element = { ELEMENT(borrowed) };
const struct field cni_dns_fields[4] = {
	{ LIST(cni_dns, nameservers, "nameservers", &cni_text_element) },
	{ FIELD(cni_dns, domain, "domain", borrowed) },
	{ LIST(cni_dns, search, "search", &cni_text_element) },
	{ LIST(cni_dns, options, "options", &cni_text_element) },
};

#define NUMBER(member) FIELD(cni_route, member, #member, number), .max = UINT32_MAX
static const struct field route_fields[] = {
	{ FIELD(cni_route, dst, "dst", host_prefix), .required = true },
	{ FIELD(cni_route, gw, "gw", address) },
	{ NUMBER(mtu) },
	{ NUMBER(advmss) },
	{ NUMBER(priority) },
	{ FIELD(cni_route, table, "table", said) },
	{ FIELD(cni_route, scope, "scope", said) },
};
const struct field cni_route_element = { ELEMENT_OBJECT(cni_route, route_fields) };

void cni_routes_mask(struct cni_routes *routes)
{
	for (size_t i = 0; i < routes->n; i++)
		routes->v[i].dst = prefix_mask(&routes->v[i].dst);
}

/* 0.1.0, 0.2.0 */
struct of_family {
	struct prefix ip;
	struct address gateway;
	struct cni_routes routes;
};
static const struct field family_fields[] = {
	{ FIELD(of_family, ip, "ip", host_prefix), .required = true },
	{ FIELD(of_family, gateway, "gateway", address) },
	{ CNI_ROUTES(of_family, routes, "routes") },
};
struct old_result {
	struct of_family ip4, ip6;
};
static const struct field old_fields[] = {
	{ OBJECT(old_result, ip4, "ip4", family_fields) },
	{ OBJECT(old_result, ip6, "ip6", family_fields) },
};

static int take_family(const struct of_family *from, struct cni_result *to)
{
	struct cni_ip ip = { .address = from->ip, .gateway = from->gateway, .interface = -1 };

	/* There is no such object: its address is required. */
	if (!from->ip.address.family)
		return 0;
	for (size_t i = 0; i < from->routes.n; i++)
		if (array_append(&to->routes, from->routes.v[i]) < 0)
			return -ENOMEM;
	return array_append(&to->ips, ip);
}

static int read_old(struct json_at at, struct cni_result *result)
{
	struct old_result old = { 0 };
	int r = fields_read(old_fields, ARRAY_SIZE(old_fields), &at, &old);

	r = r ?: take_family(&old.ip4, result);
	r = r ?: take_family(&old.ip6, result);
	fields_done(old_fields, ARRAY_SIZE(old_fields), &old);
	return r;
}

/* From 0.3.0 on. */
static const struct field interface_fields[] = {
	{ FIELD(cni_interface, name, "name", borrowed) },
	{ FIELD(cni_interface, mac, "mac", borrowed) },
	{ FIELD(cni_interface, sandbox, "sandbox", borrowed) },
	{ FIELD(cni_interface, mtu, "mtu", number), .max = UINT32_MAX },
	{ FIELD(cni_interface, socket_path, "socketPath", borrowed) },
	{ FIELD(cni_interface, pci_id, "pciID", borrowed) },
};
static const struct field interface_element = { ELEMENT_OBJECT(cni_interface, interface_fields) };
static const struct field ip_fields[] = {
	{ FIELD(cni_ip, address, "address", host_prefix), .required = true },
	{ FIELD(cni_ip, gateway, "gateway", address) },
	{ FIELD(cni_ip, interface, "interface", said) },
};
static const struct field ip_element = { ELEMENT_OBJECT(cni_ip, ip_fields) };
static const struct field result_fields[] = {
	{ LIST(cni_result, interfaces, "interfaces", &interface_element) },
	{ LIST(cni_result, ips, "ips", &ip_element) },
	{ CNI_ROUTES(cni_result, routes, "routes") },
};
static const struct field dns_field = { CNI_DNS(cni_result, dns, "dns") };

static int check_interfaces(struct json_at at, const struct cni_result *result)
{
	struct json_at list = json_member(&at, "ips");

	for (size_t i = 0; i < result->ips.n; i++) {
		struct json_at ip = json_element(&list, i);

		if (result->ips.v[i].interface >= (int64_t)result->interfaces.n)
			return json_refuse(json_member(&ip, "interface"),
					   "is beyond the list of interfaces");
	}
	return 0;
}

int cni_result_read(struct json_at at, enum cni_version version, struct cni_result *ret,
		    struct cni_error *e)
{
	AUTO_DONE(cni_result_done) struct cni_result result = { 0 };
	struct json_at said = json_member(&at, "cniVersion");
	const char *text = NULL;
	int r;

	at.required = true;
	r = json_read_object(at);
	r = r < 0 ? r : json_read_text(said, JSON_STRING_MAX, &text);
	if (r > 0 && cni_version_parse(text, &version) < 0)
		r = json_refuse(said, "is not a version that this plugin supports");
	if (r < 0)
		return cni_read(e, r);
	if (version < CNI_0_3_0) {
		r = read_old(at, &result);
	} else {
		r = fields_read(result_fields, ARRAY_SIZE(result_fields), &at, &result);
		r = r ?: check_interfaces(at, &result);
	}
	r = r ?: fields_read(&dns_field, 1, &at, &result);
	if (r < 0)
		return cni_read(e, r);
	cni_routes_mask(&result.routes);
	*ret = result;
	result = (struct cni_result){ 0 };
	return 0;
}
