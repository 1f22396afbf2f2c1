/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/kube/kube_config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "controller/kube/kube_yaml.h"
#include "lib/base/base64.h"
#include "lib/base/names.h"
#include "lib/base/prefix.h"
#include "lib/base/secret.h"
#include "lib/json/json.h"

#define CONFIG_MAX (1024 * 1024)
/* Tokens of clusters with long issuers reach a few kilobytes; a request's header ends at some 8. */
#define TOKEN_MAX 8000
#define TEXT_MAX  4095U
#define DATA_MAX  (1024U * 1024U)

void kube_config_free(struct kube_config *c)
{
	if (!c)
		return;
	free(c->source);
	free(c->server);
	free(c->server_name);
	free(c->ca_file);
	free(c->ca_pem);
	free(c->cert_file);
	free(c->cert_pem);
	free(c->key_file);
	secret_free(c->key_pem);
	free(c->token_file);
	secret_free(c->token);
	free(c);
}

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory");
}

static char *join(const char *a, const char *b, const char *c, const char *d)
{
	char *text = malloc(strlen(a) + strlen(b) + strlen(c) + strlen(d) + 1);

	if (text)
		stpcpy(stpcpy(stpcpy(stpcpy(text, a), b), c), d);
	return text;
}

/* --- fields of a kubeconfig ----------------------------------------------------------------- */

/* What all readers of one file need. */
struct file {
	const char *path;
	struct json_at root;
};

static int copy_text(struct json_at at, char **ret)
{
	const char *text = "";
	int r = json_read_text(at, TEXT_MAX, &text);

	if (r <= 0 || !*text)
		return r < 0 ? r : 0;
	*ret = strdup(text);
	return *ret ? 0 : no_memory(at.err);
}

/* A path in a kubeconfig starts from the folder of that file. */
static int copy_path(const struct file *f, struct json_at at, char **ret)
{
	const char *slash = strrchr(f->path, '/');
	AUTO(free) char *text = NULL, *folder = NULL;
	int r = copy_text(at, &text);

	if (r < 0 || !text)
		return r;
	if (text[0] == '/' || !slash) {
		*ret = TAKE(text);
		return 0;
	}
	folder = strndup(f->path, (size_t)(slash - f->path));
	*ret = folder ? join(folder, "/", text, "") : NULL;
	return *ret ? 0 : no_memory(at.err);
}

/* The texts that base64 made of PEM files; what is wrong with them must not be shown. */
static int copy_data(struct json_at at, char **ret)
{
	AUTO(secret_free) char *pem = NULL;
	const char *text = "";
	ssize_t n;
	int r = json_read_text(at, DATA_MAX, &text);

	if (r <= 0 || !*text)
		return r < 0 ? r : 0;
	pem = calloc(1, strlen(text) + 1);
	if (!pem)
		return no_memory(at.err);
	n = base64_decode(text, strlen(text), pem);
	if (n < 0)
		return json_wrong(at, "is not base64");
	if (strlen(pem) != (size_t)n || !strstr(pem, "-----BEGIN "))
		return json_wrong(at, "is not base64 of a PEM file");
	*ret = TAKE(pem);
	return 0;
}

/* Data goes before a file, as kubectl has it. */
static int copy_either(const struct file *f, const struct json_at *in, const char *file_name,
		       const char *data_name, char **ret_file, char **ret_pem)
{
	int r = copy_data(json_member(in, data_name), ret_pem);

	if (r < 0 || *ret_pem)
		return r;
	return copy_path(f, json_member(in, file_name), ret_file);
}

/* --- clusters, users, contexts: lists of {name, <kind>: {...}} ------------------------------ */

static int find(struct json_at list, const char *name, size_t *ret)
{
	size_t n = 0;
	int r = json_read_array(list, &n);

	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct json_at entry = json_element(&list, i);
		const char *text = "";

		r = json_read_object(entry);
		if (r > 0)
			r = json_read_text(json_member(&entry, "name"), TEXT_MAX, &text);
		if (r > 0 && name && strcmp(text, name) == 0) {
			*ret = i;
			return 1;
		}
	}
	return r < 0 ? r : 0;
}

/* An error that names the entry rather than its number. */
static int in_entry(int r, struct err *err, const char *kind, const char *name)
{
	char shown[SHOW_TEXT];

	return r < 0 && r != -ENOMEM ? err_wrap(err, r, "%s \"%s\"", kind, text_show(name, shown))
				     : r;
}

/* What the entry of this name holds. */
static int entry(const struct file *f, const char *list_name, const char *kind, const char *name,
		 struct json_at *ret)
{
	struct json_at list = json_member(&f->root, list_name), found, named;
	char shown[SHOW_TEXT];
	size_t i = 0;
	int r = find(list, name, &i);

	if (r == 0)
		return err_set(f->root.err, -ENOENT, "there is no %s \"%s\" in \"%s\"", kind,
			       text_show(name, shown), list_name);
	if (r < 0)
		return r;
	/* Shown by name, not by number: whatever is wrong inside starts from here. */
	found = json_root(json_element(&list, i).value, f->root.err);
	named = json_need(&found, kind);
	r = json_read_object(named);
	if (r <= 0)
		return in_entry(r, f->root.err, kind, name);
	*ret = json_root(named.value, f->root.err);
	return 0;
}

static int refuse_if_there(const struct json_at *in, const char *name, const char *why)
{
	struct json_at at = json_member(in, name);

	return at.value ? json_wrong(at, "%s", why) : 0;
}

static int check_server(struct json_at at, char *server)
{
	size_t n = server ? strlen(server) : 0;

	if (!server)
		return json_wrong(at, "is missing");
	while (n && server[n - 1] == '/')
		server[--n] = '\0';
	if ((strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0) ||
	    strpbrk(server, "?#@ \t\r\n\"") || !strstr(server, "//")[2])
		return json_refuse(at, "is not https://HOST:PORT");
	return 0;
}

static int take_cluster(const struct file *f, const struct json_at *in, bool allow_insecure,
			struct kube_config *c)
{
	struct json_at server = json_member(in, "server");
	int r = copy_text(server, &c->server);

	r = r ?: check_server(server, c->server);
	r = r ?: refuse_if_there(in, "proxy-url", "proxies are not supported: remove it");
	r = r ?: copy_text(json_member(in, "tls-server-name"), &c->server_name);
	if (r == 0)
		r = copy_either(f, in, "certificate-authority", "certificate-authority-data",
				&c->ca_file, &c->ca_pem);
	if (r == 0)
		r = json_read_bool(json_member(in, "insecure-skip-tls-verify"), &c->insecure);
	if (r < 0)
		return r;
	if (c->insecure && !allow_insecure)
		return json_wrong(json_member(in, "insecure-skip-tls-verify"),
				  "would accept any server and is refused: use "
				  "certificate-authority, or start with --kubernetes-insecure");
	return 0;
}

static int check_user(const struct json_at *in, const struct kube_config *c)
{
	if ((c->cert_file || c->cert_pem) && !c->key_file && !c->key_pem)
		return json_wrong(json_member(in, "client-key"),
				  "is missing, while there is a client-certificate");
	if ((c->key_file || c->key_pem) && !c->cert_file && !c->cert_pem)
		return json_wrong(json_member(in, "client-certificate"),
				  "is missing, while there is a client-key");
	if (c->token && !kube_token_valid(c->token))
		return json_wrong(json_member(in, "token"),
				  "is not a token: printable ASCII without blanks");
	return 0;
}

static int take_user(const struct file *f, const struct json_at *in, struct kube_config *c)
{
	int r = refuse_if_there(in, "exec",
				"programs that fetch credentials are not run: use a token, a "
				"tokenFile or a client certificate");

	if (r == 0)
		r = refuse_if_there(in, "auth-provider",
				    "auth providers are not supported: use a token, a tokenFile "
				    "or a client certificate");
	if (r == 0)
		r = refuse_if_there(in, "username",
				    "Kubernetes no longer accepts passwords: use a token or a "
				    "client certificate");
	r = r ?: refuse_if_there(in, "as", "impersonation is not supported: remove it");
	if (r == 0)
		r = copy_either(f, in, "client-certificate", "client-certificate-data",
				&c->cert_file, &c->cert_pem);
	r = r ?: copy_either(f, in, "client-key", "client-key-data", &c->key_file, &c->key_pem);
	/* As kubectl has it: the file, which is read again and again, goes before the text. */
	r = r ?: copy_path(f, json_member(in, "tokenFile"), &c->token_file);
	if (r == 0 && !c->token_file)
		r = copy_text(json_member(in, "token"), &c->token);
	return r ?: check_user(in, c);
}

/* --- a kubeconfig --------------------------------------------------------------------------- */

static int take_all(const struct file *f, const char *context, bool allow_insecure,
		    struct kube_config *c)
{
	AUTO(free) char *cluster = NULL, *user = NULL;
	struct err *err = f->root.err;
	struct json_at in;
	int r = entry(f, "contexts", "context", context, &in);

	if (r < 0)
		return r;
	r = copy_text(json_member(&in, "cluster"), &cluster);
	r = r ?: copy_text(json_member(&in, "user"), &user);
	if (r == 0 && !cluster)
		r = json_wrong(json_member(&in, "cluster"), "is missing");
	if (r < 0)
		return in_entry(r, err, "context", context);
	r = entry(f, "clusters", "cluster", cluster, &in);
	if (r < 0)
		return r;
	r = take_cluster(f, &in, allow_insecure, c);
	if (r < 0)
		return in_entry(r, err, "cluster", cluster);
	/* Some API servers let anybody read Nodes; then there is no user. */
	r = user ? entry(f, "users", "user", user, &in) : 0;
	if (r < 0 || !user)
		return r;
	return in_entry(take_user(f, &in, c), err, "user", user);
}

static int parse_tree(const char *text, size_t len, struct json_object **ret, struct err *err)
{
	return text[strspn(text, " \t\r\n")] == '{' ? json_parse(text, len, ret, err)
						    : kube_yaml_parse(text, len, ret, err);
}

static int choose(const struct file *f, const char *given, const char **ret)
{
	struct json_at current = json_member(&f->root, "current-context");
	const char *text = "";
	int r = 0;

	if (given && *given)
		text = given;
	else
		r = json_read_text(current, TEXT_MAX, &text);
	if (r < 0)
		return r;
	/* The code is spelt out for the static analyser, which sees one file at a time. */
	if (!*text) {
		json_wrong(current, "is missing, and --kube-context is not set");
		return -EINVAL;
	}
	*ret = text;
	return 0;
}

int kube_config_parse(const char *path, const char *text, size_t len, const char *context,
		      bool allow_insecure, struct kube_config **ret, struct err *err)
{
	AUTO(kube_config_free) struct kube_config *c = calloc(1, sizeof(*c));
	AUTO(json_put) struct json_object *tree = NULL;
	struct file f = { .path = path };
	const char *chosen = NULL;
	char shown[SHOW_TEXT];
	int r;

	if (!c)
		return no_memory(err);
	r = parse_tree(text, len, &tree, err);
	if (r < 0)
		return err_wrap(err, r, "%s", path);
	f.root = json_root(tree, err);
	r = choose(&f, context, &chosen);
	if (r < 0)
		return err_wrap(err, r, "%s", path);
	c->source = join(path, ", context \"", text_show(chosen, shown), "\"");
	if (!c->source)
		return no_memory(err);
	r = take_all(&f, chosen, allow_insecure, c);
	if (r < 0)
		return err_wrap(err, r, "%s", c->source);
	*ret = TAKE(c);
	return 0;
}

bool kube_token_valid(const char *token)
{
	size_t n = 0;

	while (token[n] > 0x20 && token[n] < 0x7f)
		n++;
	return n && !token[n];
}

/* --- in a cluster --------------------------------------------------------------------------- */

int kube_config_in_cluster(const char *folder, const char *host, const char *port,
			   struct kube_config **ret, struct err *err)
{
	AUTO(kube_config_free) struct kube_config *c = calloc(1, sizeof(*c));
	struct address address;
	bool six;

	if (!host || !*host || !port || !*port)
		return err_set(err, -ENOENT,
			       "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, "
			       "so this is not a pod: use --kubeconfig");
	if (strspn(port, "0123456789") != strlen(port) || strlen(port) > 5)
		return err_set(err, -EINVAL, "KUBERNETES_SERVICE_PORT is not a port");
	six = address_parse(host, &address) == 0 && address.family == AF_INET6;
	if (!six && strpbrk(host, "/?#@:[] \t\r\n\""))
		return err_set(err, -EINVAL,
			       "KUBERNETES_SERVICE_HOST is neither an address nor a name");
	if (!c)
		return no_memory(err);
	c->source = strdup(folder);
	c->server = join(six ? "https://[" : "https://", host, six ? "]:" : ":", port);
	c->ca_file = join(folder, "/ca.crt", "", "");
	c->token_file = join(folder, "/token", "", "");
	if (!c->source || !c->server || !c->ca_file || !c->token_file)
		return no_memory(err);
	*ret = TAKE(c);
	return 0;
}

/* --- files ---------------------------------------------------------------------------------- */

/* NONBLOCK: a pipe put in its place must not hold us up. Links are followed: the kubelet's are. */
static int read_whole(const char *path, size_t max, char **ret, size_t *ret_len,
		      struct stat *ret_st, struct err *err)
{
	AUTO(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO(secret_free) char *text = NULL;
	size_t len = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, ret_st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(ret_st->st_mode))
		return err_set(err, -EINVAL, "%s is not a file", path);
	text = calloc(1, max + 2);
	if (!text)
		return err_set(err, -ENOMEM, "out of memory");
	do {
		n = read(fd, text + len, max + 1 - len);
		if (n < 0 && errno != EINTR)
			return err_set(err, -errno, "%s: %s", path, strerror(errno));
		len += n > 0 ? (size_t)n : 0;
	} while (n != 0 && len <= max);
	if (len > max)
		return err_set(err, -EFBIG, "%s holds more than %zu bytes", path, max);
	*ret = TAKE(text);
	*ret_len = len;
	return 0;
}

int kube_config_read(const char *path, const char *context, bool allow_insecure,
		     struct kube_config **ret, struct err *err)
{
	AUTO(kube_config_free) struct kube_config *c = NULL;
	AUTO(secret_free) char *text = NULL;
	struct stat st;
	size_t len = 0;
	int r = read_whole(path, CONFIG_MAX, &text, &len, &st, err);

	if (r < 0)
		return r;
	r = kube_config_parse(path, text, len, context, allow_insecure, &c, err);
	explicit_bzero(text, len);
	if (r == 0 && c && (c->key_pem || c->token))
		r = secret_mode_check(path, &st, geteuid(), err);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}

int kube_token_read(const char *path, char **ret, struct err *err)
{
	AUTO(secret_free) char *text = NULL;
	struct stat st;
	size_t len = 0;
	int r = read_whole(path, TOKEN_MAX, &text, &len, &st, err);

	if (r < 0)
		return r;
	while (len && strchr(" \t\r\n", text[len - 1]))
		text[--len] = '\0';
	if (!len)
		return err_set(err, -EINVAL, "%s is empty: a token is expected there", path);
	if (strlen(text) != len || !kube_token_valid(text))
		return err_set(err, -EINVAL,
			       "%s does not hold a token: printable ASCII without blanks", path);
	*ret = TAKE(text);
	return 0;
}

/* --- the address for libcurl ---------------------------------------------------------------- */

void kube_url_done(struct kube_url *u)
{
	free(u->base);
	free(u->connect_to);
	free(u->host);
	*u = (struct kube_url){ 0 };
}

/* asprintf() leaves its result undefined when it fails. */
#define PRINTED(...)                                                                               \
	({                                                                                         \
		char *printed_;                                                                    \
		asprintf(&printed_, __VA_ARGS__) < 0 ? NULL : printed_;                            \
	})

int kube_url_make(const char *server, const char *server_name, struct kube_url *ret)
{
	const char *authority = strstr(server, "//");
	int scheme = authority ? (int)(authority + 2 - server) : 0;
	const char *from = server + scheme, *path = from + strcspn(from, "/");
	const char *bracket = *from == '[' ? memchr(from, ']', (size_t)(path - from)) : NULL;
	const char *colon = memchr(bracket ?: from, ':', (size_t)(path - (bracket ?: from)));
	int host = (int)((colon ?: path) - from);
	const char *usual = strncmp(server, "https", 5) == 0 ? ":443" : ":80";
	AUTO(free) char *port = colon ? strndup(colon, (size_t)(path - colon)) : strdup(usual);
	struct kube_url u = { 0 };

	if (!port)
		return -ENOMEM;
	if (server_name && *server_name) {
		const char *open = strchr(server_name, ':') ? "[" : "", *close = *open ? "]" : "";

		u.base = PRINTED("%.*s%s%s%s%s%s", scheme, server, open, server_name, close, port,
				 path);
		u.connect_to = PRINTED("%s%s%s%s:%.*s%s", open, server_name, close, port, host,
				       from, port);
		u.host = PRINTED("Host: %.*s%s", host, from, port);
	} else {
		u.base = strdup(server);
	}
	if (!u.base || (server_name && *server_name && (!u.connect_to || !u.host))) {
		kube_url_done(&u);
		return -ENOMEM;
	}
	*ret = u;
	return 0;
}
