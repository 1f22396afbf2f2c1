/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_api.h"

#include <errno.h>
#include <string.h>

#include "lib/json/json.h"
#include "lib/lease/lease_reply.h"
#include "lib/model/vtep.h"

#define VXLAN "vxlan"

/* --- paths ---------------------------------------------------------------------------------- */

/* The next part of a path, without its slash; "" at its end. Returns what is behind it. */
static const char *next_part(const char *path, char *ret, size_t room)
{
	size_t n;

	while (*path == '/')
		path++;
	n = strcspn(path, "/");
	snprintf(ret, room, "%.*s", n < room ? (int)n : 0, path);
	/* Too long for anything that we know: a name that nobody has. */
	if (n >= room)
		snprintf(ret, room, "?");
	return path + n;
}

static const struct {
	const char *method, *noun;
	bool subnet;
	enum lease_verb verb;
} verbs[] = {
	{ "GET", "config", false, LEASE_CONFIG },
	{ "GET", "leases", false, LEASE_WATCH },
	{ "GET", "leases", true, LEASE_WATCH_ONE },
	{ "POST", "leases", false, LEASE_ACQUIRE },
	{ "PUT", "leases", true, LEASE_RENEW },
	{ "DELETE", "leases", true, LEASE_REVOKE },
	{ "GET", "reservations", false, LEASE_RESERVATIONS },
	{ "POST", "reservations", false, LEASE_RESERVE },
	{ "DELETE", "reservations", true, LEASE_UNRESERVE },
};

static int no_such(const char *method, const char *path, struct err *err)
{
	char shown[SHOW_TEXT], verb[SHOW_TEXT];

	return err_set(err, -ENOENT, "there is no %s %s: see docs/LEASES.md",
		       text_show(method, verb), text_show(path, shown));
}

static int take_network(const char *text, struct lease_call *call, struct err *err)
{
	if (strcmp(text, "_") == 0)
		text = "default";
	if (network_check(text, err) < 0)
		return -EINVAL;
	snprintf(call->network, sizeof(call->network), "%s", text);
	return 0;
}

static int take_subnet(const char *text, struct lease_call *call, struct err *err)
{
	char shown[SHOW_TEXT];

	if (prefix_parse_key(text, &call->subnet) == 0 && call->subnet.address.family == AF_INET)
		return 0;
	return err_set(err, -EINVAL, "\"%s\" is not a subnet in the form 10.5.34.0-24",
		       text_show(text, shown));
}

int lease_call_parse(const char *method, const char *path, struct lease_call *ret, struct err *err)
{
	struct lease_call call = { .verb = LEASE_VERBS };
	char part[NAME_TEXT], noun[16], subnet[PREFIX_TEXT], more[2];
	const char *rest = next_part(path, part, sizeof(part));
	int r = 0;

	if (strcmp(part, "network") == 0) {
		r = take_network("_", &call, err);
	} else if (strcmp(part, "v1") == 0) {
		rest = next_part(rest, part, sizeof(part));
		if (!part[0] && strcmp(method, "GET") == 0) {
			*ret = (struct lease_call){ .verb = LEASE_NETWORKS };
			return 0;
		}
		r = part[0] ? take_network(part, &call, err) : no_such(method, path, err);
	} else {
		r = no_such(method, path, err);
	}
	if (r < 0)
		return r;
	rest = next_part(rest, noun, sizeof(noun));
	rest = next_part(rest, subnet, sizeof(subnet));
	next_part(rest, more, sizeof(more));
	for (size_t i = 0; i < ARRAY_SIZE(verbs) && !more[0]; i++)
		if (strcmp(verbs[i].method, method) == 0 && strcmp(verbs[i].noun, noun) == 0 &&
		    verbs[i].subnet == (subnet[0] != '\0'))
			call.verb = verbs[i].verb;
	if (call.verb == LEASE_VERBS)
		return no_such(method, path, err);
	if (subnet[0])
		r = take_subnet(subnet, &call, err);
	if (r == 0)
		*ret = call;
	return r;
}

int lease_cursor_parse(const char *text, int64_t *ret)
{
	size_t n = strlen(text);
	int64_t value = 0;

	/* Eighteen digits fit, whatever they are; etcd will not get that far. */
	if (n == 0 || n > 18 || text[strspn(text, "0123456789")])
		return -EINVAL;
	for (; *text; text++)
		value = 10 * value + (*text - '0');
	*ret = value;
	return 0;
}

/* --- bodies --------------------------------------------------------------------------------- */

void lease_wish_done(struct lease_wish *w)
{
	free(w->backend_type);
	free(w->backend_data);
	*w = (struct lease_wish){ 0 };
}

static int read_public_ip(struct json_at at, struct address *ret)
{
	int r = json_read_address(at, ret);

	if (r < 0)
		return r;
	if (address_is_unspecified(ret) || address_is_multicast(ret) || address_is_loopback(ret))
		return json_refuse(at, "is not an address that other nodes can reach");
	return 0;
}

static int read_subnet(struct json_at at, struct prefix *ret)
{
	int r = json_read_prefix(at, ret);

	if (r > 0 && ret->address.family != AF_INET)
		return json_refuse(at, "is not an IPv4 subnet");
	return r < 0 ? r : 0;
}

/* A client in Go reads a name in any case: what was not checked would be the MAC that it takes. */
static int refuse_other_spelling(struct json_at at)
{
	json_object_object_foreach(at.value, name, ignored) {
		(void)ignored;
		if (strcasecmp(name, "VtepMAC") == 0 && strcmp(name, "VtepMAC") != 0)
			return json_wrong(at,
					  "has a field that differs from \"VtepMAC\" only in case");
	}
	return 0;
}

static int read_backend_data(struct json_at at, struct lease_wish *w)
{
	struct json_at mac = json_member(&at, "VtepMAC");
	const char *text = NULL;
	int r;

	if (!at.value)
		return (w->backend_data = strdup("")) ? 0 : -ENOMEM;
	r = json_read_object(at);
	r = r < 0 ? r : json_print(at.value, &w->backend_data);
	if (r < 0)
		return r;
	if (strlen(w->backend_data) > LEASE_BACKEND_DATA_MAX)
		return json_wrong(at, "is longer than %d bytes", LEASE_BACKEND_DATA_MAX);
	if (strcmp(w->backend_type, VXLAN) != 0)
		return 0;
	r = refuse_other_spelling(at);
	if (r < 0)
		return r;
	r = json_read_text(mac, 17, &text);
	if (r <= 0)
		return r;
	return mac_parse(text, &w->mac) && mac_is_of_device(&w->mac)
		       ? 0
		       : json_refuse(mac, "is not the MAC address of a device");
}

static int read_attrs(const struct json_at *in, struct lease_wish *w)
{
	struct json_at type = json_member(in, "BackendType");
	const char *text = "";
	struct err why;
	int r = read_public_ip(json_need(in, "PublicIP"), &w->public_ip);

	r = r < 0 ? r : json_read_text(type, 63, &text);
	if (r < 0)
		return r;
	if (text[0] && word_check(text, &why) < 0)
		return json_wrong(type, "%s", why.text);
	w->backend_type = strdup(text);
	if (!w->backend_type)
		return -ENOMEM;
	return read_backend_data(json_member(in, "BackendData"), w);
}

static int read_wish(enum lease_verb verb, const struct json_at *in, struct lease_wish *w)
{
	struct json_at attrs;
	int r;

	if (verb == LEASE_ACQUIRE)
		return read_attrs(in, w);
	r = read_subnet(json_need(in, "Subnet"), &w->subnet);
	if (r < 0)
		return r;
	if (verb == LEASE_RESERVE)
		return read_public_ip(json_need(in, "PublicIP"), &w->public_ip);
	attrs = json_need(in, "Attrs");
	r = json_read_object(attrs);
	return r < 0 ? r : read_attrs(&attrs, w);
}

int lease_wish_parse(enum lease_verb verb, const char *body, size_t len, struct lease_wish *ret,
		     struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	AUTO_DONE(lease_wish_done) struct lease_wish w = { 0 };
	struct lease held;
	struct json_at root;
	int r = json_parse(body, len, &object, err);

	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	root = json_root(object, err);
	r = read_wish(verb, &root, &w);
	if (r < 0)
		return r == -ENOMEM ? err_set(err, r, "out of memory") : -EINVAL;
	if (!w.backend_type)
		w.backend_type = strdup("");
	if (!w.backend_data)
		w.backend_data = strdup("");
	if (!w.backend_type || !w.backend_data)
		return err_set(err, -ENOMEM, "out of memory");
	if (json_object_object_get_ex(object, "Expiration", NULL) &&
	    lease_read(body, len, &held, NULL) == 0)
		w.expires = held.expires ?: INT64_MAX;
	*ret = w;
	w = (struct lease_wish){ 0 };
	return 0;
}

/* --- answers -------------------------------------------------------------------------------- */

/* Of a node with an agent: what a client of ours would have said of itself. */
static int agent_attrs(const struct node *node, const struct config_vxlan *vxlan, char **ret)
{
	struct json_out out = { 0 };
	char mac[MAC_TEXT];
	struct mac derived;

	if (!node || !mac_is_of_device(&node->vtep.mac))
		return -ENODATA;
	/* It would draw the traffic of the node that has this MAC. */
	derived = vtep_mac(node->name);
	if (memcmp(&derived, &node->vtep.mac, sizeof(derived)) != 0)
		return -ENODATA;
	json_out_open(&out, NULL, '{');
	json_out_address(&out, "PublicIP",
			 node->ipv4.address.family ? &node->ipv4.address : &node->ipv6.address);
	json_out_text(&out, "BackendType", VXLAN);
	json_out_open(&out, "BackendData", '{');
	json_out_number(&out, "VNI", vxlan->vni);
	json_out_text(&out, "VtepMAC", mac_print(&node->vtep.mac, mac));
	json_out_close(&out, '}');
	json_out_close(&out, '}');
	return json_out_take(&out, ret);
}

static int lease_attrs(const struct block_lease *lease, char **ret)
{
	struct json_out head = { 0 };
	AUTO(free) char *text = NULL;
	int r;

	json_out_open(&head, NULL, '{');
	json_out_address(&head, "PublicIP", &lease->public_ip);
	json_out_some_text(&head, "BackendType", lease->backend_type);
	r = json_out_take(&head, &text);
	if (r < 0)
		return r;
	r = lease->backend_data[0]
		    ? asprintf(ret, "%s,\"BackendData\":%s}", text, lease->backend_data)
		    : asprintf(ret, "%s}", text);
	return r < 0 ? -ENOMEM : 0;
}

int lease_render(const struct block *block, const struct node *node,
		 const struct config_vxlan *vxlan, char **ret, char **ret_attrs)
{
	bool ours = block->lease.public_ip.family;
	AUTO(free) char *attrs = NULL, *text = NULL;
	char subnet[PREFIX_TEXT];
	int r = ours ? lease_attrs(&block->lease, &attrs) : agent_attrs(node, vxlan, &attrs);

	if (r < 0)
		return r;
	if (asprintf(&text, "{\"Subnet\":\"%s\",\"Attrs\":%s,\"Expiration\":\"%s\"}",
		     prefix_print(&block->block, subnet), attrs,
		     ours && block->lease.expires[0] ? block->lease.expires : LEASE_NEVER) < 0)
		return -ENOMEM;
	*ret = TAKE(text);
	if (ret_attrs)
		*ret_attrs = TAKE(attrs);
	return 0;
}

int lease_render_config(const struct lease_network_config *c, char **ret)
{
	struct json_out out = { 0 };

	json_out_open(&out, NULL, '{');
	json_out_prefix(&out, "Network", &c->network);
	json_out_address(&out, "SubnetMin", &c->first.address);
	json_out_address(&out, "SubnetMax", &c->last.address);
	json_out_number(&out, "SubnetLen", c->first.length);
	json_out_open(&out, "Backend", '{');
	json_out_text(&out, "Type", VXLAN);
	json_out_number(&out, "VNI", c->vxlan.vni);
	json_out_number(&out, "Port", c->vxlan.port);
	if (c->direct_routing)
		json_out_bool(&out, "DirectRouting", true);
	json_out_close(&out, '}');
	json_out_close(&out, '}');
	return json_out_take(&out, ret);
}
