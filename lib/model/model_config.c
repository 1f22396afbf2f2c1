/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/model.h"

#include <errno.h>
#include <string.h>

#include "lib/model/record.h"

static const char *const protocols[] = { "bgp", "ospf", "rip", "none", NULL };
static const char *const announces[] = { "learn", "static", NULL };
static const char *const ospf_types[] = { "broadcast", "ptp", NULL };

static int log_level_check(const char *text, struct err *err)
{
	static const char *const levels[] = { "error", "warning", "info", "debug" };
	char shown[SHOW_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (strcmp(levels[i], text) == 0)
			return 0;
	return err_set(err, -EINVAL, "\"%s\" is not one of error, warning, info, debug",
		       text_show(text, shown));
}

static const struct field community = { ELEMENT(text), .check = community_check };
static const struct field interface = { ELEMENT(text), .check = interface_pattern_check };

/* The ranges are those of the wire formats, or of BIRD where it allows less. */
static const struct field bgp_fields[] = {
	{ FIELD(config_bgp, hold_time, "holdTime", number), .min = 3, .max = 65535, .or_zero = true,
	  .initial = 90 },
	{ FIELD(config_bgp, keepalive_time, "keepaliveTime", number), .max = 65535 },
	{ FIELD(config_bgp, connect_retry_time, "connectRetryTime", number), .min = 1, .max = 65535,
	  .initial = 5 },
	{ FIELD(config_bgp, graceful_restart, "gracefulRestart", flag), .initial = true },
	{ FIELD(config_bgp, graceful_restart_time, "gracefulRestartTime", number), .min = 1,
	  .max = 4095, .initial = 120 },
	{ FIELD(config_bgp, bfd, "bfd", flag) },
	{ FIELD(config_bgp, ecmp, "ecmp", number), .min = 1, .max = 255, .initial = 8 },
	{ FIELD(config_bgp, listen_port, "listenPort", number), .min = 1, .max = 65535,
	  .initial = 179 },
	{ LIST(config_bgp, communities, "communities", &community) },
	{ FIELD(config_bgp, password_file, "passwordFile", text), .check = path_check },
	{ FIELD(config_bgp, ttl_security, "ttlSecurity", flag) },
	{ FIELD(config_bgp, verify_owners, "verifyOwners", flag) },
};

static const struct field bfd_fields[] = {
	{ FIELD(config_bfd, min_rx, "minRx", number), .min = 10, .max = 60000, .initial = 300 },
	{ FIELD(config_bfd, min_tx, "minTx", number), .min = 10, .max = 60000, .initial = 300 },
	{ FIELD(config_bfd, multiplier, "multiplier", number), .min = 1, .max = 255, .initial = 3 },
};

static const struct field ospf_fields[] = {
	{ FIELD(config_ospf, area, "area", address), .family = AF_INET },
	{ LIST(config_ospf, interfaces, "interfaces", &interface) },
	{ FIELD(config_ospf, cost, "cost", number), .min = 1, .max = 65535, .initial = 10 },
	{ FIELD(config_ospf, hello, "hello", number), .min = 1, .max = 65535, .initial = 10 },
	{ FIELD(config_ospf, dead, "dead", number), .min = 2, .max = 65535, .initial = 40 },
	{ FIELD(config_ospf, type, "type", choice), .choices = ospf_types },
	{ FIELD(config_ospf, password_file, "passwordFile", text), .check = path_check },
};

static const struct field rip_fields[] = {
	{ LIST(config_rip, interfaces, "interfaces", &interface) },
	{ FIELD(config_rip, update_time, "updateTime", number), .min = 1, .max = 3600,
	  .initial = 30 },
	{ FIELD(config_rip, timeout_time, "timeoutTime", number), .min = 1, .max = 65535,
	  .initial = 180 },
	{ FIELD(config_rip, password_file, "passwordFile", text), .check = path_check },
};

static const struct field vxlan_fields[] = {
	{ FIELD(config_vxlan, vni, "vni", number), .min = 1, .max = 0xffffff, .initial = 4096 },
	{ FIELD(config_vxlan, port, "port", number), .min = 1, .max = 65535, .initial = 4789 },
	{ FIELD(config_vxlan, mtu_overhead, "mtuOverhead", number), .min = 50, .max = 1000,
	  .or_zero = true },
	{ FIELD(config_vxlan, checksum_offload, "checksumOffload", flag), .initial = true },
};

static const struct field fields[] = {
	{ FIELD(cluster_config, asn, "asn", number), .min = 1, .max = UINT32_MAX,
	  .initial = 64512 },
	{ FIELD(cluster_config, protocol, "protocol", choice), .choices = protocols },
	{ FIELD(cluster_config, announce, "announce", choice), .choices = announces },
	{ FIELD(cluster_config, mesh, "mesh", flag), .initial = true },
	{ OBJECT(cluster_config, bgp, "bgp", bgp_fields) },
	{ OBJECT(cluster_config, bfd, "bfd", bfd_fields) },
	{ OBJECT(cluster_config, ospf, "ospf", ospf_fields) },
	{ OBJECT(cluster_config, rip, "rip", rip_fields) },
	{ FIELD(cluster_config, export_table, "exportTable", number), .max = INT32_MAX },
	{ OBJECT(cluster_config, vxlan, "vxlan", vxlan_fields) },
	{ FIELD(cluster_config, reclaim_after, "reclaimAfter", number), .min = 900,
	  .max = INT32_MAX, .initial = 3600 },
	{ FIELD(cluster_config, log_level, "logLevel", text), .check = log_level_check },
};

/* The area has a default that the table cannot hold. */
static void derive(const void *basis, void *record)
{
	struct cluster_config *config = record;

	config->ospf.area = (struct address){ .family = AF_INET };
}

static int check(const void *record, struct err *err)
{
	const struct cluster_config *c = record;

	/* The session would expire between two keep-alives; BIRD refuses more than holdTime. */
	if (c->bgp.keepalive_time && c->bgp.keepalive_time >= c->bgp.hold_time)
		return err_set(err, -EINVAL,
			       "field \"bgp.keepaliveTime\": %u is not less than holdTime %u",
			       c->bgp.keepalive_time, c->bgp.hold_time);
	if (c->ospf.dead <= c->ospf.hello)
		return err_set(err, -EINVAL, "field \"ospf.dead\": %u is not more than hello %u",
			       c->ospf.dead, c->ospf.hello);
	if (c->rip.timeout_time <= c->rip.update_time)
		return err_set(err, -EINVAL,
			       "field \"rip.timeoutTime\": %u is not more than updateTime %u",
			       c->rip.timeout_time, c->rip.update_time);
	if (c->protocol == PROTOCOL_OSPF && c->ospf.interfaces.n == 0)
		return err_set(err, -EINVAL,
			       "field \"ospf.interfaces\": is missing, and protocol "
			       "\"ospf\" needs it");
	/* main and local: there the blocks are already, or are not ours to put. */
	if (c->export_table == 254 || c->export_table == 255)
		return err_set(err, -EINVAL, "field \"exportTable\": %u is the kernel's %s table",
			       c->export_table, c->export_table == 254 ? "main" : "local");
	return 0;
}

const struct record config_record = {
	.kind = KEY_CONFIG,
	.size = sizeof(struct cluster_config),
	.fields = fields,
	.n_fields = ARRAY_SIZE(fields),
	.derive = derive,
	.check = check,
};

RECORD_DEFINE(cluster_config, config_record)
