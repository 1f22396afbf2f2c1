/* SPDX-License-Identifier: Apache-2.0 */
/* The other direction of cni_result.h: JSON of any version into struct cni_result. */
#include <errno.h>
#include <string.h>

#include "lib/cni/cni_result.h"

/* A number that may be absent; 1.1.0's are all unsigned 32 bits at most. */
static int read_number(struct cni_error *e, struct json_at at, int64_t *ret)
{
	int r = json_read_integer(at, 0, UINT32_MAX, ret);

	return r < 0 ? cni_wrong(e, at, json_type_int) : r;
}

static int read_u32(struct cni_error *e, struct json_at at, uint32_t *ret)
{
	int64_t number = 0;
	int r = read_number(e, at, &number);

	if (r > 0)
		*ret = (uint32_t)number;
	return r;
}

/* Memory for the elements of a list, absent or not. */
static int make_room(struct json_at at, size_t size, void *ret, size_t *ret_n, struct cni_error *e)
{
	size_t n = 0;
	void *v;

	if (cni_read_array(e, at, &n) < 0)
		return -EINVAL;
	v = calloc(n ?: 1, size);
	if (!v)
		return cni_no_memory(e);
	*(void **)ret = v;
	*ret_n = n;
	return 0;
}

/* --- routes and DNS ------------------------------------------------------------------------- */

static int read_route(struct json_at at, struct cni_route *ret, struct cni_error *e)
{
	struct json_at dst = cni_member(&at, "dst");

	*ret = (struct cni_route){ CNI_ROUTE_NONE };
	dst.required = true;
	if (cni_read_object(e, at) < 0 || cni_read_host_prefix(e, dst, &ret->dst) < 0 ||
	    cni_read_address(e, cni_member(&at, "gw"), &ret->gw) < 0 ||
	    read_u32(e, cni_member(&at, "mtu"), &ret->mtu) < 0 ||
	    read_u32(e, cni_member(&at, "advmss"), &ret->advmss) < 0 ||
	    read_u32(e, cni_member(&at, "priority"), &ret->priority) < 0 ||
	    read_number(e, cni_member(&at, "table"), &ret->table) < 0 ||
	    read_number(e, cni_member(&at, "scope"), &ret->scope) < 0)
		return -EINVAL;
	ret->dst = prefix_mask(&ret->dst);
	return 0;
}

int cni_routes_read(struct json_at at, struct cni_route **ret, size_t *ret_n, struct cni_error *e)
{
	AUTO(free) struct cni_route *v = NULL;
	size_t n = 0;
	int r = make_room(at, sizeof(*v), &v, &n, e);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = read_route(json_element(&at, i), &v[i], e);
	if (r < 0)
		return r;
	*ret = TAKE(v);
	*ret_n = n;
	return 0;
}

int cni_dns_read(struct json_at at, struct cni_dns *ret, struct cni_error *e)
{
	struct cni_dns dns = { 0 };

	if (cni_read_object(e, at) < 0 ||
	    cni_read_texts(e, cni_member(&at, "nameservers"), &dns.nameservers) < 0 ||
	    cni_read_text(e, cni_member(&at, "domain"), &dns.domain) < 0 ||
	    cni_read_texts(e, cni_member(&at, "search"), &dns.search) < 0 ||
	    cni_read_texts(e, cni_member(&at, "options"), &dns.options) < 0) {
		cni_dns_done(&dns);
		return -EINVAL;
	}
	*ret = dns;
	return 0;
}

/* --- 0.1.0, 0.2.0 --------------------------------------------------------------------------- */

static int append_routes(struct cni_result *result, const struct cni_route *more, size_t n,
			 struct cni_error *e)
{
	struct cni_route *grown = reallocarray(result->routes, result->n_routes + n + 1,
					       sizeof(*grown));

	if (!grown)
		return cni_no_memory(e);
	if (n > 0)
		memcpy(grown + result->n_routes, more, n * sizeof(*more));
	result->routes = grown;
	result->n_routes += n;
	return 0;
}

static int read_family(struct json_at at, struct cni_result *result, struct cni_error *e)
{
	AUTO(free) struct cni_route *routes = NULL;
	struct cni_ip ip = { .interface = -1 };
	struct json_at address = cni_member(&at, "ip");
	int r = cni_read_object(e, at);
	size_t n;

	if (r <= 0)
		return r;
	address.required = true;
	if (cni_read_host_prefix(e, address, &ip.address) < 0 ||
	    cni_read_address(e, cni_member(&at, "gateway"), &ip.gateway) < 0)
		return -EINVAL;
	r = cni_routes_read(cni_member(&at, "routes"), &routes, &n, e);
	if (r < 0)
		return r;
	result->ips[result->n_ips++] = ip;
	return append_routes(result, routes, n, e);
}

static int read_02(struct json_at at, struct cni_result *result, struct cni_error *e)
{
	int r;

	result->ips = calloc(2, sizeof(*result->ips));
	if (!result->ips)
		return cni_no_memory(e);
	r = read_family(cni_member(&at, "ip4"), result, e);
	return r < 0 ? r : read_family(cni_member(&at, "ip6"), result, e);
}

/* --- from 0.3.0 on -------------------------------------------------------------------------- */

static int read_interface(struct json_at at, struct cni_interface *ret, struct cni_error *e)
{
	if (cni_read_object(e, at) < 0 ||
	    cni_read_text(e, cni_member(&at, "name"), &ret->name) < 0 ||
	    cni_read_text(e, cni_member(&at, "mac"), &ret->mac) < 0 ||
	    cni_read_text(e, cni_member(&at, "sandbox"), &ret->sandbox) < 0 ||
	    read_u32(e, cni_member(&at, "mtu"), &ret->mtu) < 0 ||
	    cni_read_text(e, cni_member(&at, "socketPath"), &ret->socket_path) < 0 ||
	    cni_read_text(e, cni_member(&at, "pciID"), &ret->pci_id) < 0)
		return -EINVAL;
	return 0;
}

static int read_ip(struct json_at at, size_t n_interfaces, struct cni_ip *ret, struct cni_error *e)
{
	struct json_at address = cni_member(&at, "address"), index = cni_member(&at, "interface");
	int64_t number = -1;

	address.required = true;
	if (cni_read_object(e, at) < 0 || cni_read_host_prefix(e, address, &ret->address) < 0 ||
	    cni_read_address(e, cni_member(&at, "gateway"), &ret->gateway) < 0 ||
	    read_number(e, index, &number) < 0)
		return -EINVAL;
	if (number >= (int64_t)n_interfaces) {
		json_refuse(index, "is beyond the list of interfaces");
		return cni_wrong(e, index, json_type_int);
	}
	ret->interface = (int)number;
	return 0;
}

static int read_03(struct json_at at, struct cni_result *result, struct cni_error *e)
{
	struct json_at interfaces = cni_member(&at, "interfaces"), ips = cni_member(&at, "ips");
	int r = make_room(interfaces, sizeof(*result->interfaces), &result->interfaces,
			  &result->n_interfaces, e);

	for (size_t i = 0; r == 0 && i < result->n_interfaces; i++)
		r = read_interface(json_element(&interfaces, i), &result->interfaces[i], e);
	if (r == 0)
		r = make_room(ips, sizeof(*result->ips), &result->ips, &result->n_ips, e);
	for (size_t i = 0; r == 0 && i < result->n_ips; i++)
		r = read_ip(json_element(&ips, i), result->n_interfaces, &result->ips[i], e);
	if (r == 0)
		r = cni_routes_read(cni_member(&at, "routes"), &result->routes, &result->n_routes,
				    e);
	return r;
}

int cni_result_read(struct json_at at, enum cni_version version, struct cni_result *ret,
		    struct cni_error *e)
{
	AUTO_DONE(cni_result_done) struct cni_result result = { 0 };
	struct json_at said = cni_member(&at, "cniVersion");
	const char *text = NULL;
	int r;

	at.required = true;
	if (cni_read_object(e, at) < 0 || cni_read_text(e, said, &text) < 0)
		return -EINVAL;
	if (text && cni_version_parse(text, &version) < 0) {
		json_refuse(said, "is not a version that this plugin supports");
		return cni_wrong(e, said, json_type_string);
	}
	r = version < CNI_0_3_0 ? read_02(at, &result, e) : read_03(at, &result, e);
	if (r == 0)
		r = cni_dns_read(cni_member(&at, "dns"), &result.dns, e);
	if (r < 0)
		return r;
	*ret = result;
	result = (struct cni_result){ 0 };
	return 0;
}
