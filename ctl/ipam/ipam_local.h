/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this node holds, for the audit: its agent's list, its files, its links and routes.
 *
 *   kernel dump, agent.sock, run directory -> [ipam_local_read] -> struct audit_local -> audit
 *
 * The kernel is read first: an ADD asks the agent before it makes a link, and the agent forgets an
 * attachment after its link is gone, so a link that is seen and unknown afterwards is a stray.
 */
#pragma once

#include "ctl/frame/ctl.h"
#include "ipam/audit/audit.h"

struct ipam_local;

/*
 * 0; *ret is NULL and why says so when there is no agent that serves. why also tells what was left
 * out of a reading. A negative errno with a sentence in err only when memory is short.
 */
int ipam_local_read(struct ctl *ctl, struct ipam_local **ret, struct err *why, struct err *err);
const struct audit_local *ipam_local_audit(const struct ipam_local *l);
void ipam_local_free(struct ipam_local *l);
AUTO_DEFINE(struct ipam_local *, ipam_local_free)

/* 0, or what the kernel says. */
int ipam_local_delete_link(uint32_t link, struct err *err);
