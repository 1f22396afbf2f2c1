/* SPDX-License-Identifier: Apache-2.0 */
/* Links out of messages: names, settings, and what vxlan devices are made of. */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/kernel/kernel_message_parts.h"

/* --- settings ------------------------------------------------------------------------------- */

/* The kernel's array may be shorter or longer than our headers say. */
static void read_conf_array(const struct attribute *a, sa_family_t family, struct klink *ret)
{
	for (size_t c = 0; c < N_DEVCONF; c++) {
		size_t offset = devconf_info[c].place * sizeof(int32_t);

		if (devconf_info[c].family != family || offset + sizeof(int32_t) > a->length)
			continue;
		memcpy(&ret->conf[c], a->data + offset, sizeof(int32_t));
		ret->known |= CONF_BIT(c);
	}
}

static void read_af_spec(const struct attribute *spec, struct klink *ret)
{
	struct attributes families = nested(spec);
	struct attribute family, a;

	while (next_attribute(&families, &family)) {
		struct attributes parts = nested(&family);

		while (next_attribute(&parts, &a))
			if (family.type == AF_INET && a.type == IFLA_INET_CONF)
				read_conf_array(&a, AF_INET, ret);
			else if (family.type == AF_INET6 && a.type == IFLA_INET6_CONF)
				read_conf_array(&a, AF_INET6, ret);
	}
}

/* --- kinds ---------------------------------------------------------------------------------- */

/*
 * Devices of ours are made without any of these. Which they are does not matter: such a device is
 * made anew.
 */
static bool is_foreign_to_ours(const struct attribute *a)
{
	switch (a->type) {
	case IFLA_VXLAN_LINK:
	case IFLA_VXLAN_LIMIT:
		return read_u32(a, 0) != 0;
	case IFLA_VXLAN_PROXY:
	case IFLA_VXLAN_RSC:
	case IFLA_VXLAN_L2MISS:
	case IFLA_VXLAN_L3MISS:
	case IFLA_VXLAN_COLLECT_METADATA:
	case IFLA_VXLAN_REMCSUM_TX:
	case IFLA_VXLAN_REMCSUM_RX:
		return a->length && a->data[0];
	case IFLA_VXLAN_GROUP:
	case IFLA_VXLAN_GROUP6:
	case IFLA_VXLAN_GBP:
	case IFLA_VXLAN_GPE:
		return true;
	default:
		return false;
	}
}

static void read_vxlan_attribute(const struct attribute *a, struct kvxlan *ret)
{
	ret->other |= is_foreign_to_ours(a);
	if (a->type == IFLA_VXLAN_ID)
		ret->vni = read_u32(a, 0);
	else if (a->type == IFLA_VXLAN_PORT && a->length == 2)
		ret->port = (uint16_t)(a->data[0] << 8 | a->data[1]);
	else if (a->type == IFLA_VXLAN_LOCAL)
		read_address(a, AF_INET, &ret->local);
	else if (a->type == IFLA_VXLAN_LOCAL6)
		read_address(a, AF_INET6, &ret->local);
	else if (a->type == IFLA_VXLAN_LEARNING && a->length)
		ret->learning = a->data[0];
	else if (a->type == IFLA_VXLAN_TTL && a->length)
		ret->ttl = a->data[0];
}

static bool is_kind(const struct attribute *a, const char *kind)
{
	size_t n = strlen(kind);

	return a->length >= n && memcmp(a->data, kind, n) == 0 &&
	       (a->length == n || a->data[n] == '\0');
}

/* The kernel tells the kind before the rest of it. */
static void read_link_info(const struct attribute *info, struct klink *ret)
{
	struct attributes parts = nested(info), data;
	struct attribute a, b;

	while (next_attribute(&parts, &a))
		if (a.type == IFLA_INFO_KIND) {
			ret->veth = is_kind(&a, "veth");
			ret->vxlan = is_kind(&a, "vxlan");
		} else if (a.type == IFLA_INFO_DATA && ret->vxlan) {
			data = nested(&a);
			while (next_attribute(&data, &b))
				read_vxlan_attribute(&b, &ret->tunnel);
		}
}

/* --- the link ------------------------------------------------------------------------------- */

static void read_name(const struct attribute *a, char name[IF_NAME_TEXT])
{
	size_t n = strnlen((const char *)a->data, a->length);

	n = n < IF_NAME_TEXT ? n : IF_NAME_TEXT - 1;
	memcpy(name, a->data, n);
	name[n] = '\0';
}

int message_link(const struct nlmsghdr *hdr, struct klink *ret)
{
	struct klink l = { 0 };
	struct attributes list;
	struct attribute a;
	struct ifinfomsg body;

	/* A bridge tells of its ports by the same type; that is not about the link itself. */
	if (open_message(hdr, &body, sizeof(body), &list) < 0 || body.ifi_family != AF_UNSPEC ||
	    body.ifi_index <= 0)
		return -EBADMSG;
	l.index = (uint32_t)body.ifi_index;
	l.flags = body.ifi_flags;
	while (next_attribute(&list, &a)) {
		if (a.type == IFLA_IFNAME)
			read_name(&a, l.name);
		else if (a.type == IFLA_MTU)
			l.mtu = read_u32(&a, 0);
		else if (a.type == IFLA_GROUP)
			l.group = read_u32(&a, 0);
		else if (a.type == IFLA_ADDRESS && a.length == sizeof(l.mac.bytes))
			memcpy(l.mac.bytes, a.data, a.length);
		else if (a.type == IFLA_LINKINFO)
			read_link_info(&a, &l);
		else if (a.type == IFLA_AF_SPEC)
			read_af_spec(&a, &l);
	}
	if (!l.name[0])
		return -EBADMSG;
	*ret = l;
	return 0;
}
