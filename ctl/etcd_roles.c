/* SPDX-License-Identifier: Apache-2.0 */
/* etcd roles: least right for each program, as commands of etcdctl, or set with --apply. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "ctl/etcd_ask.h"
#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "lib/base/base64.h"
#include "lib/base/files.h"
#include "lib/json/json.h"
#include "lib/json/tree.h"
#include "lib/model/etcd_roles.h"
#include "lib/model/lease_holder.h"

/* One role, and the user of the same name who has it. */
struct grantee {
	char name[ETCD_ROLE_TEXT];
	struct etcd_permission permissions[ETCD_PERMISSIONS_MAX];
	size_t n;
};

typedef int grantee_fn(struct ctl *ctl, const struct grantee *g, void *arg, struct err *err);

static int grantee_of(enum etcd_role role, const char *node, struct grantee *ret, struct err *err)
{
	int n = etcd_role_permissions(role, node, ret->permissions);

	if (n < 0 || etcd_role_name(role, node, ret->name) < 0)
		return err_set(err, CTL_USAGE, "\"%s\" is not a valid node name", node);
	ret->n = (size_t)n;
	return 0;
}

/* The nodes that are named, or else all that etcd knows, then the roles that are there once. */
static int each_grantee(struct ctl *ctl, grantee_fn *fn, void *arg, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs nodes = { 0 };
	struct grantee g = { 0 };
	int r = ctl->n_args ? 0 : ctl_read(ctl, KEYS_NODE, &nodes, err);

	for (size_t i = 0; r == 0 && i < (ctl->n_args ?: nodes.n); i++) {
		const char *node = ctl->n_args ? ctl->args[i] : nodes.v[i].key + strlen(KEYS_NODE);

		/* A holder of a lease has no credentials for etcd. */
		if (lease_holder_is(node))
			continue;
		r = grantee_of(ETCD_ROLE_NODE, node, &g, err);
		r = r ?: fn(ctl, &g, arg, err);
	}
	for (int role = ETCD_ROLE_NODE + 1; r == 0 && role < ETCD_ROLES; role++) {
		r = grantee_of((enum etcd_role)role, NULL, &g, err);
		r = r ?: fn(ctl, &g, arg, err);
	}
	return r;
}

/* --- as commands ---------------------------------------------------------------------------- */

static int print_grantee(struct ctl *ctl, const struct grantee *g, void *arg, struct err *err)
{
	FILE *to = ctl->out.to;

	fprintf(to, "etcdctl role add %s\n", g->name);
	for (size_t i = 0; i < g->n; i++)
		fprintf(to, "etcdctl role grant-permission%s %s %s %s%s\n",
			g->permissions[i].prefix ? " --prefix" : "", g->name,
			g->permissions[i].write ? "readwrite" : "read", ctl->settings->etcd.prefix,
			g->permissions[i].key);
	/* It asks for the password: no secret stands in a history of commands. */
	fprintf(to, "etcdctl user add %s\netcdctl user grant-role %s %s\n", g->name, g->name,
		g->name);
	return 0;
}

static int print_json(struct ctl *ctl, const struct grantee *g, void *arg, struct err *err)
{
	struct tree *t = arg;

	tree_open(t, NULL, '{');
	tree_text(t, "user", g->name);
	tree_text(t, "role", g->name);
	tree_open(t, "permissions", '[');
	for (size_t i = 0; i < g->n; i++) {
		tree_open(t, NULL, '{');
		tree_text(t, "permission", g->permissions[i].write ? "readwrite" : "read");
		tree_printf(t, g->permissions[i].prefix ? "prefix" : "key", "%s%s",
			    ctl->settings->etcd.prefix, g->permissions[i].key);
		tree_close(t);
	}
	tree_close(t);
	tree_close(t);
	return 0;
}

/* --- set ------------------------------------------------------------------------------------ */

/* {"role": name}, {"user": name}, ... */
static int ask_about(struct ctl *ctl, const char *path, const char *member, const char *name,
		     struct json_object **ret, struct err *err)
{
	struct tree t = tree_new();

	tree_text(&t, member, name);
	return etcd_ask(ctl, path, &t, ret, err);
}

static void add_base64(struct tree *t, const char *member, const char *text)
{
	char coded[BASE64_LENGTH(KEY_FULL_TEXT) + 1];

	base64_encode(text, strlen(text), coded);
	tree_text(t, member, coded);
}

/* etcd's words for it, as its gateway spells and sorts them. */
static int permission_fields(struct ctl *ctl, const struct etcd_permission *p,
			     char key[KEY_FULL_TEXT], char **ret_end)
{
	snprintf(key, KEY_FULL_TEXT, "%s%s", ctl->settings->etcd.prefix, p->key);
	*ret_end = p->prefix ? store_prefix_end(key) : NULL;
	return p->prefix && !*ret_end ? -ENOMEM : 0;
}

static int grant(struct ctl *ctl, const char *role, const struct etcd_permission *p,
		 struct err *err)
{
	AUTO(free) char *end = NULL;
	char key[KEY_FULL_TEXT];
	struct tree t;
	int r = permission_fields(ctl, p, key, &end);

	if (r < 0)
		return r;
	t = tree_new();
	tree_text(&t, "name", role);
	tree_open(&t, "perm", '{');
	tree_text(&t, "permType", p->write ? "READWRITE" : "READ");
	add_base64(&t, "key", key);
	if (end)
		add_base64(&t, "range_end", end);
	tree_close(&t);
	return etcd_ask(ctl, "/v3/auth/role/grant", &t, NULL, err);
}

/* Whether etcd's permission is this one; type absent is READ, the first of its enum. */
static bool is_same(struct ctl *ctl, struct json_object *has, const struct etcd_permission *p)
{
	AUTO(free) char *end = NULL;
	char key[KEY_FULL_TEXT], coded[2][BASE64_LENGTH(KEY_FULL_TEXT) + 1] = { "", "" };
	const char *type = out_text(has, "permType");

	if (permission_fields(ctl, p, key, &end) < 0)
		return false;
	base64_encode(key, strlen(key), coded[0]);
	if (end)
		base64_encode(end, strlen(end), coded[1]);
	return strcmp(out_text(has, "key"), coded[0]) == 0 &&
	       strcmp(out_text(has, "range_end"), coded[1]) == 0 &&
	       strcmp(*type ? type : "READ", p->write ? "READWRITE" : "READ") == 0;
}

static int revoke_one(struct ctl *ctl, const char *role, struct json_object *has, struct err *err)
{
	struct tree t = tree_new();

	tree_text(&t, "role", role);
	tree_text(&t, "key", out_text(has, "key"));
	tree_some_text(&t, "range_end", out_text(has, "range_end"));
	return etcd_ask(ctl, "/v3/auth/role/revoke", &t, NULL, err);
}

/*
 * What is missing is granted before what is too much is revoked, so that a program that runs loses
 * nothing that it needs. A grant replaces the permission of the same keys.
 */
static int set_permissions(struct ctl *ctl, const struct grantee *g, unsigned *ret_changes,
			   struct err *err)
{
	AUTO(json_put) struct json_object *role = NULL;
	struct json_object *has;
	int r = ask_about(ctl, "/v3/auth/role/get", "role", g->name, &role, err);
	size_t n = 0;

	has = r == 0 ? out_at(role, "perm") : NULL;
	n = has ? json_object_array_length(has) : 0;
	for (size_t i = 0; r == 0 && i < g->n; i++) {
		bool found = false;

		for (size_t j = 0; j < n && !found; j++)
			found = is_same(ctl, json_object_array_get_idx(has, j), &g->permissions[i]);
		if (!found) {
			r = grant(ctl, g->name, &g->permissions[i], err);
			++*ret_changes;
		}
	}
	for (size_t j = 0; r == 0 && j < n; j++) {
		struct json_object *one = json_object_array_get_idx(has, j);
		bool wanted = false;

		for (size_t i = 0; i < g->n && !wanted; i++) {
			struct etcd_permission p = g->permissions[i];

			wanted = is_same(ctl, one, &p);
			p.write = !p.write;
			/* The grant of the same keys has replaced it. */
			wanted = wanted || is_same(ctl, one, &p);
		}
		if (!wanted) {
			r = revoke_one(ctl, g->name, one, err);
			++*ret_changes;
		}
	}
	return r;
}

/* A new user's password: made here, and kept in a file that root alone reads. */
static int new_password(struct ctl *ctl, const char *user, char text[BASE64_LENGTH(24) + 1],
			struct err *err)
{
	unsigned char random[24];
	AUTO(close) int dir = -1;
	int r;

	if (!*ctl->settings->password_dir)
		return err_set(err, CTL_USAGE,
			       "user %s does not exist: --password-dir DIR says where roostctl "
			       "writes the password of each new user",
			       user);
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_set(err, -EIO, "no random numbers for a password");
	base64_encode(random, sizeof(random), text);
	dir = dir_open(ctl->settings->password_dir);
	if (dir < 0)
		return err_set(err, dir, "%s: %s", ctl->settings->password_dir, strerror(-dir));
	r = file_publish(dir, user, 0600, text, strlen(text));
	return r < 0 ? err_set(err, r, "%s/%s: %s", ctl->settings->password_dir, user, strerror(-r))
		     : 0;
}

static int has_user(struct ctl *ctl, const char *name, struct err *err)
{
	AUTO(json_put) struct json_object *answer = NULL;
	struct tree t = tree_new();
	int r = etcd_ask(ctl, "/v3/auth/user/list", &t, &answer, err);
	struct json_object *users = r == 0 ? out_at(answer, "users") : NULL;

	for (size_t i = 0; users && i < json_object_array_length(users); i++)
		if (strcmp(json_object_get_string(json_object_array_get_idx(users, i)), name) == 0)
			return 1;
	return r;
}

/* 1: it is new. The password is on disk before etcd knows it. */
static int add_user(struct ctl *ctl, const char *name, struct err *err)
{
	char password[BASE64_LENGTH(24) + 1];
	struct tree t;
	int r = has_user(ctl, name, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = new_password(ctl, name, password, err);
	if (r < 0)
		return r;
	t = tree_new();
	tree_text(&t, "name", name);
	tree_text(&t, "password", password);
	r = etcd_ask(ctl, "/v3/auth/user/add", &t, NULL, err);
	explicit_bzero(password, sizeof(password));
	return r < 0 ? r : 1;
}

static int set_grantee(struct ctl *ctl, const struct grantee *g, void *arg, struct err *err)
{
	struct tree *rows = arg, t;
	unsigned changes = 0;
	int made, user, r = ask_about(ctl, "/v3/auth/role/add", "name", g->name, NULL, err);

	made = r == 0;
	r = r == -EEXIST ? 0 : r;
	r = r ?: set_permissions(ctl, g, &changes, err);
	user = r ?: add_user(ctl, g->name, err);
	if (user < 0)
		return user;
	t = tree_new();
	tree_text(&t, "user", g->name);
	tree_text(&t, "role", g->name);
	r = etcd_ask(ctl, "/v3/auth/user/grant", &t, NULL, err);
	if (r < 0)
		return r;
	tree_open(rows, NULL, '{');
	tree_text(rows, "user", g->name);
	tree_text(rows, "role", made ? "created" : changes ? "changed" : "unchanged");
	tree_number(rows, "permissions", (int64_t)g->n);
	if (user)
		tree_printf(rows, "passwordFile", "%s/%s", ctl->settings->password_dir, g->name);
	tree_close(rows);
	return 0;
}

static const struct out_column columns[] = {
	COLUMN("USER", "user"),
	COLUMN("ROLE", "role"),
	COLUMN("PERMISSIONS", "permissions"),
	COLUMN("PASSWORD", "passwordFile"),
	COLUMNS_END,
};

int etcd_roles_run(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	bool apply = ctl->settings->apply && !ctl->settings->dry_run;
	struct tree t;
	int r, e;

	if (!apply && ctl->out.format != OUT_JSON) {
		r = each_grantee(ctl, print_grantee, NULL, err);
		if (r == 0)
			out_say(&ctl->out, "# Then, with a user root that has the role root: "
					   "etcdctl auth enable");
		return r;
	}
	t = tree_new();
	tree_open(&t, "rows", '[');
	r = each_grantee(ctl, apply ? set_grantee : print_json, &t, err);
	tree_close(&t);
	e = tree_end(&t, &object);
	r = r ?: e;
	if (r < 0)
		return r;
	return apply ? out_list(&ctl->out, out_at(object, "rows"), columns, NULL)
		     : out_json(&ctl->out, out_at(object, "rows"));
}
