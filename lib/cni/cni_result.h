/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of an ADD, in C and in each version's own JSON.
 *
 *   agent's reply, plumbing -> struct cni_result -> [print] -> stdout
 *   prevResult of the configuration -> [read] -> struct cni_result -> CHECK
 *
 * Pure. 0.1.0 and 0.2.0 know one address of each family and no interfaces, 0.3.0 to
 * 0.4.0 say the family of each address, 1.1.0 has more about interfaces and routes;
 * what a version has no word for is left out. The arrays belong to the result;
 * texts are borrowed from the document they were read from.
 */
#pragma once

#include "lib/base/array.h"
#include "lib/cni/cni_fields.h"

struct cni_interface {
	const char *name, *mac, *sandbox; /* "" or NULL: none */
	uint32_t mtu;                     /* this line: 1.1.0; 0: not said */
	const char *socket_path, *pci_id;
};

struct cni_ip {
	struct prefix address;  /* with host bits */
	struct address gateway; /* family 0: none */
	int64_t interface;      /* index, -1: not said */
};

struct cni_route {
	struct prefix dst;
	struct address gw;              /* family 0: none */
	uint32_t mtu, advmss, priority; /* from here on 1.1.0; 0: not said */
	int64_t table, scope;           /* -1: not said, as 0 is a value */
};
#define CNI_ROUTE_NONE .table = -1, .scope = -1

struct cni_dns {
	const char *domain; /* "" or NULL: none */
	struct texts nameservers, search, options;
};

struct cni_routes {
	struct cni_route *v;
	size_t n, room;
};

struct cni_result {
	ARRAY(struct cni_interface) interfaces;
	ARRAY(struct cni_ip) ips;
	struct cni_routes routes;
	struct cni_dns dns;
};

void cni_dns_done(struct cni_dns *dns);
void cni_result_done(struct cni_result *result);

/*
 * One line, free() it. -EINVAL with CNI_CODE_CONFIG if the version cannot say it: two addresses of
 * one family, or none, up to 0.2.0. -ENOMEM.
 */
int cni_result_print(const struct cni_result *result, enum cni_version version, char **ret,
		     struct cni_error *e);

/*
 * at: the prevResult. Its own cniVersion tells its shape, the configuration's if it has none.
 * Wrong types and values are refused, interface indices beyond the list too.
 */
int cni_result_read(struct json_at at, enum cni_version version, struct cni_result *ret,
		    struct cni_error *e);

/* Parts that IPAM configurations and the agent's replies have in the same form. */
extern const struct field cni_text_element, cni_route_element, cni_dns_fields[4];
#define CNI_ROUTES(record, member, json) LIST(record, member, json, &cni_route_element)
#define CNI_DNS(record, member, json)    OBJECT(record, member, json, cni_dns_fields)
/* Without host bits. */
void cni_routes_mask(struct cni_routes *routes);
