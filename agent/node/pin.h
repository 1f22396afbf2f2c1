/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <run-dir>/node: the identity chosen on this boot, as JSON.
 *
 *   identity -> [pin] -> /run/roost/node -> [pin] -> identity, after a restart of the agent
 *
 * Written to a temporary name and renamed. A file of another boot counts as
 * absent: /run is a tmpfs, but a test's or a container's may not be. A damaged
 * file is told as a sentence and the identity chosen anew.
 */
#pragma once

#include "agent/node/identity.h"

#define PIN_FILE "node"

/* Pure. -EINVAL with what is wrong; *ret gets name, boot, addresses, router id and reason. */
int pin_decode(const char *text, size_t len, struct identity *ret, struct err *err);
int pin_encode(const struct identity *id, char **ret);

/*
 * 1: read, and of this boot; *id then has everything. 0: absent, or of another boot. -EINVAL: it
 * is damaged, err says where. Other negative errno: it could not be read. *id needs its name,
 * machine and boot; a pinned name that differs from id->name stays (identity_differs() tells).
 */
int pin_read(const char *run_dir, struct identity *id, struct err *err);
int pin_write(const char *run_dir, const struct identity *id, struct err *err);
