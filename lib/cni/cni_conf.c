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
			return cni_fail(e, CNI_CODE_DECODE, "cniVersion \"%s\" is not a version",
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

static const struct field ipam_fields[] = {
	{ FIELD(cni_conf, ipam_type, "type", borrowed) },
	{ FIELD(cni_conf, socket, "socket", borrowed) },
};

/* The section's own socket goes before the one at the top. */
static const struct field conf_fields[] = {
	{ FIELD(cni_conf, version_text, "cniVersion", borrowed) },
	{ FIELD(cni_conf, name, "name", borrowed) },
	{ FIELD(cni_conf, type, "type", borrowed) },
	{ FIELD(cni_conf, socket, "socket", borrowed) },
	{ .name = "ipam",
	  .type = &field_object,
	  .fields = ipam_fields,
	  .n_fields = ARRAY_SIZE(ipam_fields) },
};

/* Types first, in one go, as Go decodes; then the values. */
static int read_fields(struct cni_conf *c, struct cni_error *e)
{
	struct json_at root = cni_root(c->json, e);

	c->name = c->type = c->ipam_type = c->version_text = "";
	c->socket = CNI_SOCKET_DEFAULT;
	if (fields_read(conf_fields, ARRAY_SIZE(conf_fields), &root, c) == 0)
		return 0;
	e->code = CNI_CODE_DECODE;
	return -EINVAL;
}

int cni_conf_read(const char *text, size_t len, enum cni_verb verb, struct cni_conf *ret,
		  struct cni_error *e)
{
	struct cni_conf conf = { .version = CNI_VERSION_NEWEST };
	struct err why;
	int r;

	ret->version = CNI_VERSION_NEWEST;
	r = parse(text, len, &conf.json, e);
	if (r < 0)
		return r;
	r = read_fields(&conf, e);
	if (r == 0)
		r = check_name(conf.name, e);
	if (r == 0)
		r = check_version(conf.version_text, verb, &conf.version, e);
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

static const struct field attachment_fields[] = {
	{ FIELD(cni_attachment, container, "containerID", borrowed), .required = true,
	  .check = container_id_check },
	{ FIELD(cni_attachment, ifname, "ifname", borrowed), .required = true,
	  .check = pod_interface_check },
};
static const struct field attachment = { ELEMENT_OBJECT(cni_attachment, attachment_fields) };
int cni_valid_read(const struct cni_conf *conf, struct cni_attachments *ret, struct cni_error *e)
{
	struct field list = { .name = "cni.dev/valid-attachments",
			      .type = &field_list,
			      .fields = &attachment,
			      .size = sizeof(struct cni_attachment) };
	struct json_at root = cni_root(conf->json, e);

	if (!cni_has(conf->json, list.name))
		list.name = "cni.dev/attachments";
	if (!cni_has(conf->json, list.name))
		return cni_fail(e, CNI_CODE_CONFIG,
				"GC without \"cni.dev/valid-attachments\": nothing was released; "
				"an empty list would say that no attachment is valid");
	*ret = (struct cni_attachments){ 0 };
	return cni_read(e, fields_read(&list, 1, &root, ret));
}
