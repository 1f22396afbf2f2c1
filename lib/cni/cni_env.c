/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_env.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "lib/base/names.h"

bool cni_ifname_ok(const char *name)
{
	return pod_interface_check(name, NULL) == 0;
}

/* Which verbs cannot do without it. */
#define ON(verb)      (1U << (verb))
#define ON_ATTACHMENT (ON(CNI_ADD) | ON(CNI_DEL) | ON(CNI_CHECK))

static int wrong_container(const char *text, struct cni_error *e)
{
	char shown[SHOW_TEXT];
	struct err why;

	if (container_id_check(text, &why) == 0)
		return 0;
	cni_fail(e, CNI_CODE_ENVIRONMENT, "invalid CNI_CONTAINERID: %s", why.text);
	return cni_details(e, "CNI_CONTAINERID=%s", text_show(text, shown));
}

static int wrong_ifname(const char *text, struct cni_error *e)
{
	char shown[SHOW_TEXT];

	if (cni_ifname_ok(text))
		return 0;
	cni_fail(e, CNI_CODE_ENVIRONMENT,
		 "invalid CNI_IFNAME: \"%s\" is not an interface name: 1 to 15 bytes, no '/', ':' "
		 "or blank, and not '.' or '..'",
		 text_show(text, shown));
	return cni_details(e, "CNI_IFNAME=%s", shown);
}

static const struct variable {
	const char *name;
	size_t at;
	unsigned required;
	int (*wrong)(const char *text, struct cni_error *e);
} variables[] = {
	{ "CNI_CONTAINERID", offsetof(struct cni_env, container), ON_ATTACHMENT, wrong_container },
	{ "CNI_NETNS", offsetof(struct cni_env, netns), ON(CNI_ADD) | ON(CNI_CHECK), NULL },
	{ "CNI_IFNAME", offsetof(struct cni_env, ifname), ON_ATTACHMENT, wrong_ifname },
	{ "CNI_PATH", offsetof(struct cni_env, path), 0, NULL },
};

/* Adds to "CNI_NETNS,CNI_IFNAME". */
static void note_missing(char *list, size_t room, const char *name)
{
	size_t n = strlen(list);

	snprintf(list + n, room - n, "%s%s", n ? "," : "", name);
}

static int read_variables(cni_variable_fn *get, void *arg, struct cni_env *env, struct cni_error *e)
{
	char missing[64] = "";

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const struct variable *v = &variables[i];
		const char *text = get(v->name, arg) ?: "";
		bool required = v->required & ON(env->verb);

		if (required && !*text)
			note_missing(missing, sizeof(missing), v->name);
		else if (required && v->wrong && v->wrong(text, e) < 0)
			return -EINVAL;
		*(const char **)((char *)env + v->at) = text;
	}
	if (!missing[0])
		return 0;
	cni_fail(e, CNI_CODE_ENVIRONMENT, "required env variables [%s] missing", missing);
	return -EINVAL;
}

/* --- CNI_ARGS ------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t at;
	name_check_fn *check; /* what fails it is dropped: it is metadata, and goes on as JSON */
} keys[] = {
	{ "IP", offsetof(struct cni_args, ip), NULL },
	{ "MAC", offsetof(struct cni_args, mac), NULL },
	{ "K8S_POD_NAMESPACE", offsetof(struct cni_args, namespace), word_check },
	{ "K8S_POD_NAME", offsetof(struct cni_args, pod), word_check },
	{ "K8S_POD_UID", offsetof(struct cni_args, uid), id_check },
};

static void take_pair(struct cni_args *args, const char *name, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(name, keys[i].name) == 0 &&
		    (!keys[i].check || keys[i].check(value, NULL) == 0))
			*(const char **)((char *)args + keys[i].at) = value;
}

static int read_args(const char *text, struct cni_env *env)
{
	char *rest, *pair;

	env->args = (struct cni_args){ "", "", "", "", "" };
	if (!text || !*text)
		return 0;
	env->args_store = rest = strdup(text);
	if (!rest)
		return -ENOMEM;
	while ((pair = strsep(&rest, ";"))) {
		const char *name = strsep(&pair, "=");

		if (pair)
			take_pair(&env->args, name, pair);
	}
	return 0;
}

static bool is_true(const char *text)
{
	return text && (strcmp(text, "1") == 0 || strcasecmp(text, "true") == 0);
}

int cni_env_read(cni_variable_fn *variable, void *arg, struct cni_env *ret, struct cni_error *e)
{
	const char *command = variable("CNI_COMMAND", arg);
	struct cni_env env = { 0 };
	char shown[SHOW_TEXT];

	if (!command || !*command)
		return 0;
	if (cni_verb_parse(command, &env.verb) < 0)
		return cni_fail(e, CNI_CODE_ENVIRONMENT, "unknown CNI_COMMAND: %s",
				text_show(command, shown));
	if (read_variables(variable, arg, &env, e) < 0)
		return -EINVAL;
	env.netns_override = is_true(variable("CNI_NETNS_OVERRIDE", arg));
	if (read_args(variable("CNI_ARGS", arg), &env) < 0) {
		cni_fail(e, CNI_CODE_IO, "out of memory");
		return -ENOMEM;
	}
	*ret = env;
	return 1;
}

void cni_env_done(struct cni_env *env)
{
	free(env->args_store);
	env->args_store = NULL;
}
