/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte picks the verb, the first line is CNI_ARGS, the rest is stdin. Whatever is
 * refused has a code and a sentence; what is taken gives bodies that are JSON, and a result
 * that reads back as it was printed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cni/cni_assign.h"

static char args[256];

static const char *variable(const char *name, void *arg)
{
	if (strcmp(name, "CNI_COMMAND") == 0)
		return cni_verb_name(*(const enum cni_verb *)arg);
	if (strcmp(name, "CNI_ARGS") == 0)
		return args;
	return strcmp(name, "CNI_NETNS") == 0 ? "/run/netns/x" : "eth0";
}

static bool taken(int r, const struct cni_error *e)
{
	if (r < 0 && (!e->code || !e->msg.text[0]))
		abort();
	return r >= 0;
}

static void must_be_json(char *made)
{
	AUTO(json_put) struct json_object *o = NULL;
	AUTO(free) char *text = made;

	if (!text || json_parse(text, strlen(text), &o, NULL) < 0)
		abort();
}

static void try_result(const struct cni_conf *conf)
{
	AUTO_DONE(cni_result_done) struct cni_result a = { 0 }, b = { 0 };
	AUTO(json_put) struct json_object *o = NULL;
	AUTO(free) char *first = NULL, *again = NULL;
	struct cni_error e = { 0 };
	struct json_at root = cni_root(conf->json, &e);

	if (!taken(cni_result_read(json_member(&root, "prevResult"), conf->version, &a, &e), &e) ||
	    !taken(cni_result_print(&a, CNI_1_1_0, &first, &e), &e))
		return;
	if (json_parse(first, strlen(first), &o, NULL) < 0)
		abort();
	root = cni_root(o, &e);
	if (cni_result_read(root, CNI_0_1_0, &b, &e) < 0 ||
	    cni_result_print(&b, CNI_1_1_0, &again, &e) < 0 || strcmp(first, again) != 0)
		abort();
}

static void try_add(const struct cni_conf *conf, const struct cni_env *env)
{
	AUTO_DONE(cni_want_done) struct cni_want want = { 0 };
	AUTO_DONE(cni_ipam_done) struct cni_ipam ipam = { 0 };
	AUTO_DONE(cni_result_done) struct cni_result result = { 0 };
	struct cni_error e = { 0 };
	char *text = NULL;
	bool existing;

	if (!taken(cni_want_read(conf, env, &want, &e), &e) ||
	    !taken(cni_ipam_read(conf, &ipam, &e), &e))
		return;
	if (taken(cni_assign_body(conf, env, &want, &ipam, &text, &e), &e))
		must_be_json(TAKE(text));
	/* The configuration may stand for a reply as well as anything. */
	if (taken(cni_assign_reply(conf->json, &ipam, &existing, &result, &e), &e) &&
	    taken(cni_result_print(&result, conf->version, &text, &e), &e))
		must_be_json(TAKE(text));
}

static void try_gc(const struct cni_conf *conf)
{
	AUTO(cni_attachments) struct cni_attachments valid = { 0 };
	struct cni_error e = { 0 };
	char *text = NULL;

	if (taken(cni_valid_read(conf, &valid, &e), &e) && cni_gc_body(conf, &valid, &text) == 0)
		must_be_json(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum cni_verb verb = size ? (enum cni_verb)(data[0] % CNI_VERBS) : CNI_ADD;
	const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
	AUTO_DONE(cni_env_done) struct cni_env env = { 0 };
	AUTO_DONE(cni_conf_done) struct cni_conf conf = { 0 };
	struct cni_error e = { 0 };
	size_t n;

	if (!line)
		return 0;
	n = (size_t)(line - data) - (line > data);
	n = n < sizeof(args) ? n : sizeof(args) - 1;
	memcpy(args, data + (line > data), n);
	args[n] = '\0';
	size -= (size_t)(line + 1 - data);
	if (cni_env_read(variable, &verb, &env, &e) != 1)
		abort();
	if (!taken(cni_conf_read((const char *)line + 1, size, verb, &conf, &e), &e))
		return 0;
	try_add(&conf, &env);
	try_gc(&conf);
	try_result(&conf);
	return 0;
}
