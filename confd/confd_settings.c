/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/confd_settings.h"

#include <errno.h>

#include "lib/base/listen_address.h"

static const struct option_def defs[] = {
	{ OPTION(confd_settings, once, "once", FLAG), .not_in_file = true,
	  .help = "render everything once and end; 1 if anything failed" },
	{ OPTION(confd_settings, watch, "watch", FLAG), .not_in_file = true,
	  .help = "render again whenever etcd changes; this is what happens without --once" },
	{ OPTION(confd_settings, dry_run, "dry-run", FLAG), .not_in_file = true,
	  .help = "change nothing, print what would change as a diff, and end; 2 if anything "
		  "would" },
	{ OPTION(confd_settings, accept, "accept", FLAG), .not_in_file = true,
	  .help = "take etcd's keys as they are, also if it was restored or emptied before this "
		  "start" },
	{ OPTION(confd_settings, data, "data", TEXT), .argument = "FILE", .not_in_file = true,
	  .help = "render once with this JSON object instead of etcd's keys; - is standard input" },
	{ OPTION(confd_settings, resource, "resource", TEXT), .argument = "NAME",
	  .not_in_file = true, .help = "only this one: the file's name without .json" },
	{ OPTION(confd_settings, resource_dir, "resource-dir", PATH),
	  .initial = "/etc/roost/confd.d", .argument = "DIR",
	  .help = "where the resources are: *.json" },
	{ OPTION(confd_settings, template_dir, "template-dir", PATH),
	  .initial = "/etc/roost/templates", .argument = "DIR",
	  .help = "where the templates are: *.mustache" },
	{ OPTION(confd_settings, state_dir, "state-dir", PATH), .initial = "/var/lib/roost-confd",
	  .argument = "DIR", .help = "where it remembers from which state of etcd each file is" },
	{ OPTION(confd_settings, metrics, "metrics", TEXT), .argument = "[ADDRESS:]PORT",
	  .check = listen_address_check,
	  .help = "where Prometheus finds /metrics, /healthz and /readyz; a port alone is on "
		  "loopback; without it nowhere" },
	OPTIONS_ETCD(confd_settings),
	{ OPTION(confd_settings, config, "config", PATH), .argument = "FILE", .not_in_file = true,
	  .help = "the configuration file" },
	OPTIONS_LOG(confd_settings),
};

const struct option_table confd_settings_table = {
	.program = "roost-confd",
	.about = "Files from templates and etcd's keys: rendered, checked, put in place, reloaded.",
	.config_path = CONFD_SETTINGS_FILE,
	.defs = defs,
	.n = ARRAY_SIZE(defs),
	.size = sizeof(struct confd_settings),
};

static int check_together(struct confd_settings *s, struct err *err)
{
	if (s->watch && (s->once || s->dry_run || s->data[0]))
		return err_set(err, -EINVAL, "--watch does not end, but --%s runs once",
			       s->once      ? "once"
			       : s->dry_run ? "dry-run"
					    : "data");
	s->once = s->once || s->dry_run || s->data[0];
	return options_check_etcd(&s->etcd, err);
}

int confd_settings_load(int argc, char *const *argv, char *const *env, struct confd_settings *ret,
			enum options_verb *ret_verb, struct err *err)
{
	int r = options_load(&confd_settings_table, argc, argv, env, ret, ret_verb, err);

	if (r < 0 || *ret_verb != OPTIONS_RUN)
		return r;
	r = check_together(ret, err);
	if (r < 0)
		confd_settings_done(ret);
	return r;
}

void confd_settings_done(struct confd_settings *s)
{
	options_done(&confd_settings_table, s);
}
