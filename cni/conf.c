/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/conf.h"

#include <errno.h>
#include <string.h>

/* Less is no IPv4 link; more than the last does not fit a packet's length. */
#define MTU_MIN 68
#define MTU_MAX 65535

int roost_ipam_check(const struct cni_conf *conf, struct cni_error *e)
{
	char shown[SHOW_TEXT];

	if (!*conf->ipam_type)
		return cni_fail(e, CNI_CODE_CONFIG,
				"network \"%s\" names no IPAM plugin: write \"ipam\": {\"type\": "
				"\"roost-ipam\"}; pods without an address are not supported",
				conf->name);
	if (strchr(conf->ipam_type, '/') || strcmp(conf->ipam_type, ".") == 0 ||
	    strcmp(conf->ipam_type, "..") == 0)
		return cni_fail(e, CNI_CODE_CONFIG,
				"field \"ipam.type\": \"%s\" is not the name of a plugin in "
				"CNI_PATH",
				text_show(conf->ipam_type, shown));
	return 0;
}

static const struct field own_fields[] = {
	{ FIELD(roost_conf, mtu, "mtu", number), .min = MTU_MIN, .max = MTU_MAX, .or_zero = true },
	{ FIELD(roost_conf, route_localnet, "routeLocalnet", flag) },
	{ CNI_DNS(roost_conf, dns, "dns") },
};

int roost_conf_read(const struct cni_call *call, struct roost_conf *ret, struct cni_error *e)
{
	AUTO_DONE(roost_conf_done) struct roost_conf conf = { 0 };
	struct json_at root = cni_root(call->conf.json, e), prev = json_member(&root, "prevResult");
	int r = roost_ipam_check(&call->conf, e);

	if (r == 0)
		r = cni_want_read(&call->conf, &call->env, &conf.want, e);
	if (r == 0)
		r = cni_read(e, fields_read(own_fields, ARRAY_SIZE(own_fields), &root, &conf));
	if (r == 0 && prev.value) {
		conf.chained = true;
		r = cni_result_read(prev, call->conf.version, &conf.prev, e);
	}
	if (r < 0)
		return r;
	*ret = conf;
	conf = (struct roost_conf){ 0 };
	return 0;
}

void roost_conf_done(struct roost_conf *conf)
{
	cni_want_done(&conf->want);
	cni_dns_done(&conf->dns);
	cni_result_done(&conf->prev);
}
