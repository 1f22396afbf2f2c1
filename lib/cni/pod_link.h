/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod's link: what the plugin, the agent and a later agent without memory agree on.
 *
 *   plugin: makes the veth pair by these names ─┐
 *   agent: routes, sysctls, neighbours ─────────┴─> the kernel, where both recognise what is ours
 *
 * Pure. The host end is named after container and interface, so whoever deletes one
 * needs no memory; its MAC is the same on every node, so that the pod's permanent
 * neighbours and the link-local address behind it are too.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/names.h"
#include "lib/json/values.h"

/* Links to be destroyed are in the first, those that are going right now in the second. */
#define DOOMED_GROUP 0x726f6f73u
#define GOING_GROUP  (DOOMED_GROUP + 1)
static inline bool pod_link_is_doomed(uint32_t group)
{
	return group == DOOMED_GROUP || group == GOING_GROUP;
}

/* "roost" and exactly ten hex digits. Returns name. */
const char *pod_link_name(const char *container, const char *interface, char name[IF_NAME_TEXT]);
bool pod_link_is_ours(const char *name);

/* ee:ee:ee:ee:ee:ee */
extern const struct mac pod_link_host_mac;
/* What the pod sends to: 169.254.1.1, or the host end's link-local address, by family. */
struct address pod_gateway(sa_family_t family);
