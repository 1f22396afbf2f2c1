/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's end of the overlay's tunnel: what every program and every boot agree on.
 *
 *   node's name ─> [vtep_mac] ─> node/<node> in etcd, the device, other nodes' FDB entries
 *
 * Pure. The MAC follows from the name alone, so a reboot or a device that is made
 * anew leaves no stale entry on other nodes.
 */
#pragma once

#include "lib/json/values.h"

/* Locally administered, unicast; the same for ever. */
struct mac vtep_mac(const char *node);
