/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/ipam_plugin.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define OWN "roost-ipam"

/* --- whose ---------------------------------------------------------------------------------- */

/* Whether that file is the one beside the program that runs. */
static bool is_beside_us(const char *program)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(OWN));
	struct stat a, b;
	char *slash;

	if (n <= 0)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	memcpy(slash + 1, OWN, sizeof(OWN));
	return strcmp(path, program) == 0 || (stat(path, &a) == 0 && stat(program, &b) == 0 &&
					      a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

int ipam_plugin_choose(const struct cni_call *call, struct ipam_plugin *ret, struct cni_error *e)
{
	const char *type = call->conf.ipam_type, *path = call->env.path;
	const bool ours = strcmp(type, OWN) == 0;
	int r = roost_ipam_check(&call->conf, e);

	if (r < 0)
		return r;
	r = delegate_find(path, type, ret->program);
	ret->own = ours && (r < 0 || is_beside_us(ret->program));
	if (r == 0 || ours)
		return 0;
	if (!*path)
		return cni_fail(e, CNI_CODE_ENVIRONMENT,
				"required env variables [CNI_PATH] missing: the IPAM plugin \"%s\" "
				"is looked for there",
				type);
	return cni_fail(e, CNI_CODE_CONFIG,
			"the IPAM plugin \"%s\" is not in any directory of CNI_PATH (%s)", type,
			path);
}

const char *ipam_plugin_name(const struct ipam_plugin *ipam, const struct cni_call *call,
			     const struct plugin_given *given)
{
	/* Fixed addresses in the configuration: no agent has ever heard of them. */
	return ipam->own && !given->reply ? "static" : call->conf.ipam_type;
}

/* --- ADD ------------------------------------------------------------------------------------ */

static int own_add(const struct cni_call *call, const struct roost_conf *conf,
		   struct plugin_given *ret, struct cni_error *e)
{
	AUTO_DONE(plugin_given_done) struct plugin_given given = { 0 };
	int r = plugin_assign(call, &conf->want, &given, e);

	if (r < 0)
		return r;
	if (given.reply && given.n_fixed > 0) {
		plugin_undo(call, &given);
		return cni_fail(e, CNI_CODE_CONFIG,
				"fixed addresses in \"ipam.addresses\" and some from a pool cannot "
				"be routed together: remove one of them");
	}
	*ret = given;
	given = (struct plugin_given){ 0 };
	return 0;
}

static int read_result(const struct cni_call *call, const char *text, size_t len,
		       struct plugin_given *given, struct cni_error *e)
{
	const char *type = call->conf.ipam_type;
	struct err why;
	int r = json_parse(text, len, &given->reply, &why);

	if (r < 0)
		return cni_fail(e, CNI_CODE_IO, "the output of the IPAM plugin \"%s\" is %s", type,
				why.text);
	r = cni_result_read(cni_root(given->reply, e), call->conf.version, &given->result, e);
	if (r < 0) {
		err_wrap(&e->msg, r, "the result of the IPAM plugin \"%s\"", type);
		e->code = CNI_CODE_IO;
		return r;
	}
	if (given->result.ips.n == 0)
		return cni_fail(e, CNI_CODE_IO, "the IPAM plugin \"%s\" gave no address", type);
	return 0;
}

static void run_del(const struct ipam_plugin *ipam, const struct cni_call *call)
{
	const struct deadline deadline = deadline_in(CNI_UNDO_MS);
	AUTO(free) char *ignored = NULL;
	struct cni_error why = { 0 };
	size_t len;

	if (delegate_run(call, ipam->program, CNI_DEL, &deadline, &ignored, &len, &why) < 0)
		cni_complain(call, "the address of %s/%s is not released: %s", call->env.container,
			     call->env.ifname, why.msg.text);
}

static int other_add(const struct ipam_plugin *ipam, const struct cni_call *call,
		     struct plugin_given *ret, struct cni_error *e)
{
	AUTO_DONE(plugin_given_done) struct plugin_given given = { 0 };
	AUTO(free) char *text = NULL;
	size_t len;
	int r = delegate_run(call, ipam->program, CNI_ADD, &call->deadline, &text, &len, e);
	/* A plugin that refuses holds nothing, and what it held before may be a live pod's. */
	const bool may_hold = r == 0 || r == -ETIMEDOUT;

	if (r == 0)
		r = read_result(call, text, len, &given, e);
	if (r < 0) {
		if (may_hold)
			run_del(ipam, call);
		return r;
	}
	*ret = given;
	given = (struct plugin_given){ 0 };
	return 0;
}

int ipam_plugin_add(const struct ipam_plugin *ipam, const struct cni_call *call,
		    const struct roost_conf *conf, struct plugin_given *ret, struct cni_error *e)
{
	return ipam->own ? own_add(call, conf, ret, e) : other_add(ipam, call, ret, e);
}

void ipam_plugin_undo(const struct ipam_plugin *ipam, const struct cni_call *call,
		      const struct plugin_given *given)
{
	if (ipam->own)
		plugin_undo(call, given);
	else
		run_del(ipam, call);
}

/* --- the other verbs ------------------------------------------------------------------------ */

/* GC and STATUS are younger than many plugins, which then have nothing to say about them. */
static bool is_unknown_verb(enum cni_verb verb, unsigned code)
{
	return (verb == CNI_GC || verb == CNI_STATUS) &&
	       (code == CNI_CODE_VERSION || code == CNI_CODE_ENVIRONMENT);
}

int ipam_plugin_forward(const struct ipam_plugin *ipam, const struct cni_call *call,
			struct cni_error *e)
{
	AUTO(free) char *ignored = NULL;
	struct cni_error why = { 0 };
	size_t len;
	int r;

	if (ipam->own)
		return 0;
	r = delegate_run(call, ipam->program, call->env.verb, &call->deadline, &ignored, &len,
			 &why);
	if (r < 0 && is_unknown_verb(call->env.verb, why.code))
		return 0;
	if (r < 0)
		*e = why;
	return r;
}

int ipam_plugin_check(const struct ipam_plugin *ipam, const struct cni_call *call,
		      struct cni_error *e)
{
	return ipam->own ? plugin_check(call, NULL, e) : ipam_plugin_forward(ipam, call, e);
}
