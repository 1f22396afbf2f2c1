/* SPDX-License-Identifier: Apache-2.0 */
/* What the entries of commands.c name. */
#pragma once

#include "ctl/frame/command.h"

typedef int verb_fn(struct ctl *ctl, struct err *err);

/* The records that operators write: the noun says which. */
verb_fn record_create, record_edit, record_delete, record_show;
verb_fn get_run, apply_run, history_run;

extern const struct command_list pool_list, peer_list, filter_list, route_list, node_list,
	block_list, address_list, lease_list;
verb_fn pool_show;
verb_fn route_show, route_delete;
verb_fn status_run, render_run;
extern const struct command_list bgp_list;
extern const struct command_list overlay_list, pod_why;
verb_fn node_show, node_label, node_drain, node_undrain, node_delete, node_restore;
verb_fn block_show;
verb_fn lease_show, lease_delete;
verb_fn address_show, address_release;
verb_fn ipam_show, ipam_check;
verb_fn etcd_roles_run;
verb_fn version_run, completion_run;
verb_fn examples_run, complete_run; /* hidden */
