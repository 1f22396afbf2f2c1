/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_conf.h"

#include <errno.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/cni/cni_env.h"

/* Go takes null for an object without fields, so what fails is the missing name. */
static bool is_null(const char *text, size_t len)
{
	static const char blanks[] = " \t\r\n";

	while (len > 0 && text[0] && strchr(blanks, text[0]))
		text++, len--;
	while (len > 0 && text[len - 1] && strchr(blanks, text[len - 1]))
		len--;
	return len == 4 && memcmp(text, "null", 4) == 0;
}

static int parse(const char *text, size_t len, struct json_object **ret, struct cni_error *e)
{
	struct err why;
	int r;

	if (is_null(text, len)) {
		*ret = json_object_new_object();
		return *ret ? 0 : cni_no_memory(e);
	}
	r = json_parse(text, len, ret, &why);
	if (r < 0)
		cni_fail(e, r == -ENOMEM ? CNI_CODE_IO : CNI_CODE_DECODE,
			 "the network configuration on stdin is %s", why.text);
	return r;
}

static int check_name(const char *name, struct cni_error *e)
{
	char shown[SHOW_TEXT];

	if (!*name)
		return cni_fail(e, CNI_CODE_CONFIG, "the network configuration has no \"name\"");
	if (container_id_check(name, NULL) == 0)
		return 0;
	return cni_fail(e, CNI_CODE_CONFIG,
			"invalid network name: \"%s\" is not made of A-Z, a-z, 0-9, '_', '.', '-', "
			"beginning with a letter or digit",
			text_show(name, shown));
}

static int unsupported(const char *text, struct cni_error *e)
{
	char list[80] = "", shown[SHOW_TEXT];

	for (int i = 0; i < CNI_VERSIONS; i++) {
		size_t n = strlen(list);

		snprintf(list + n, sizeof(list) - n, "%s\"%s\"", n ? " " : "",
			 cni_version_name((enum cni_version)i));
	}
	text_show(text, shown);
	cni_fail(e, CNI_CODE_VERSION, "cniVersion \"%s\" is not supported", shown);
	return cni_details(e, "config is \"%s\", plugin supports [%s]", shown, list);
}

static int check_version(const char *text, enum cni_verb verb, enum cni_version *ret,
			 struct cni_error *e)
{
	enum cni_version version, since = cni_verb_since(verb);
	char shown[SHOW_TEXT];

	if (cni_version_parse(text, &version) < 0) {
		/* These verbs compare versions, so theirs must at least be one. */
		if (since > CNI_0_1_0 && !cni_version_is_one(text))
			return cni_fail(e, CNI_CODE_DECODE, "cniVersion \"%s\" is no version",
					text_show(text, shown));
		return unsupported(text, e);
	}
	*ret = version;
	if (version < since)
		return cni_fail(e, CNI_CODE_VERSION,
				"config version \"%s\" does not allow %s: it needs \"%s\"",
				cni_version_name(version), cni_verb_name(verb),
				cni_version_name(since));
	return 0;
}

/* Types first, in one go, as Go decodes; then the values. */
static int read_fields(struct cni_conf *c, const char **ret_version, struct cni_error *e)
{
	struct json_at root = cni_root(c->json, e), ipam = cni_member(&root, "ipam");

	c->name = c->type = c->ipam_type = "";
	c->socket = CNI_SOCKET_DEFAULT;
	if (cni_read_object(e, ipam) < 0 ||
	    cni_read_text(e, cni_member(&root, "cniVersion"), ret_version) < 0 ||
	    cni_read_text(e, cni_member(&root, "name"), &c->name) < 0 ||
	    cni_read_text(e, cni_member(&root, "type"), &c->type) < 0 ||
	    cni_read_text(e, cni_member(&ipam, "type"), &c->ipam_type) < 0 ||
	    cni_read_text(e, cni_member(&root, "socket"), &c->socket) < 0 ||
	    cni_read_text(e, cni_member(&ipam, "socket"), &c->socket) < 0) {
		e->code = CNI_CODE_DECODE;
		return -EINVAL;
	}
	return 0;
}

int cni_conf_read(const char *text, size_t len, enum cni_verb verb, struct cni_conf *ret,
		  struct cni_error *e)
{
	struct cni_conf conf = { .version = CNI_VERSION_NEWEST };
	const char *version = "";
	struct err why;
	int r;

	ret->version = CNI_VERSION_NEWEST;
	r = parse(text, len, &conf.json, e);
	if (r < 0)
		return r;
	r = read_fields(&conf, &version, e);
	if (r == 0)
		r = check_name(conf.name, e);
	if (r == 0)
		r = check_version(version, verb, &conf.version, e);
	if (r == 0 && path_check(conf.socket, &why) < 0)
		r = cni_fail(e, CNI_CODE_CONFIG, "field \"socket\": %s", why.text);
	ret->version = conf.version;
	if (r < 0)
		cni_conf_done(&conf);
	else
		*ret = conf;
	return r;
}

void cni_conf_done(struct cni_conf *conf)
{
	json_object_put(conf->json);
	conf->json = NULL;
}

/* --- GC ------------------------------------------------------------------------------------- */

static int read_attachment(struct json_at at, struct cni_attachment *ret, struct cni_error *e)
{
	struct json_at container = cni_member(&at, "containerID"),
		       ifname = cni_member(&at, "ifname");

	if (cni_read_object(e, at) < 0)
		return -EINVAL;
	container.required = ifname.required = true;
	if (cni_read_text(e, container, &ret->container) < 0 ||
	    cni_read_text(e, ifname, &ret->ifname) < 0)
		return -EINVAL;
	if (container_id_check(ret->container, NULL) < 0) {
		json_refuse(container, "is not a container id");
		return cni_wrong(e, container, json_type_string);
	}
	if (!cni_ifname_ok(ret->ifname)) {
		json_refuse(ifname, "is not an interface name");
		return cni_wrong(e, ifname, json_type_string);
	}
	return 0;
}

int cni_valid_read(const struct cni_conf *conf, struct cni_attachments *ret, struct cni_error *e)
{
	struct json_at root = cni_root(conf->json, e);
	const char *name = "cni.dev/valid-attachments";
	AUTO(free) struct cni_attachment *v = NULL;
	struct json_at list;
	size_t n = 0;

	if (!cni_has(&root, name))
		name = "cni.dev/attachments";
	if (!cni_has(&root, name))
		return cni_fail(e, CNI_CODE_CONFIG,
				"GC without \"cni.dev/valid-attachments\": nothing was released; "
				"an empty list would say that no attachment is valid");
	list = cni_member(&root, name);
	if (cni_read_array(e, list, &n) < 0)
		return -EINVAL;
	v = calloc(n ?: 1, sizeof(*v));
	if (!v)
		return cni_no_memory(e);
	for (size_t i = 0; i < n; i++)
		if (read_attachment(json_element(&list, i), &v[i], e) < 0)
			return -EINVAL;
	*ret = (struct cni_attachments){ TAKE(v), n };
	return 0;
}
