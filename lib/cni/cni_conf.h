/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network configuration on stdin: what every verb of every plugin needs of it.
 *
 *   stdin -> [cni_conf] -> cni_want, cni_ipam, cni_result: what only some verbs need
 *
 * Pure. The rest is left in the document and read by who needs it, so that a DEL
 * never fails because of a field that only an ADD looks at. Told in this order: not
 * JSON or of a wrong type, the name, the version. Unknown fields are ignored.
 */
#pragma once

#include "lib/cni/cni_fields.h"

#define CNI_SOCKET_DEFAULT "/run/roost/agent.sock"

struct cni_conf {
	struct json_object *json; /* owns the texts here and in all that is read from it */
	enum cni_version version;
	const char *version_text; /* "" if absent */
	const char *name;         /* of the network */
	const char *type;         /* "" if absent */
	const char *ipam_type;    /* likewise */
	const char *socket;       /* of the agent: in "ipam", else at the top, else the default */
};

/*
 * 0, release it with cni_conf_done(); -EINVAL or -ENOMEM with e filled. On failure only
 * ret->version is set, to what the error should be reported in.
 */
int cni_conf_read(const char *text, size_t len, enum cni_verb verb, struct cni_conf *ret,
		  struct cni_error *e);
void cni_conf_done(struct cni_conf *conf);

/* An attachment of this network that the runtime says is alive. */
struct cni_attachment {
	const char *container, *ifname;
};
struct cni_attachments {
	struct cni_attachment *v; /* free() it: AUTO(cni_attachments) does */
	size_t n;
};
static inline void cni_attachments_auto(struct cni_attachments *a)
{
	free(a->v);
}

/*
 * For GC. "cni.dev/valid-attachments", or "cni.dev/attachments" as a draft called it. An absent
 * list is CNI_CODE_CONFIG: taking it for an empty one would release everything; null, Go's
 * empty list, and [] say that nothing is valid. One bad entry spoils the list for the same reason.
 */
int cni_valid_read(const struct cni_conf *conf, struct cni_attachments *ret, struct cni_error *e);
