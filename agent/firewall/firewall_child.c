/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/firewall/firewall_child.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <nftables/libnftables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/firewall/firewall_netlink.h"

/* So often another program's transaction may come between ours and our listing. */
#define TRIES 5

#define LIST "list table inet " FIREWALL_TABLE
#define DROP "delete table inet " FIREWALL_TABLE

/* --- the library ---------------------------------------------------------------------------- */

struct nft {
	struct nft_ctx *ctx;
	__typeof__(&nft_ctx_new) make;
	__typeof__(&nft_ctx_free) drop;
	__typeof__(&nft_ctx_buffer_output) keep_output;
	__typeof__(&nft_ctx_buffer_error) keep_error;
	__typeof__(&nft_ctx_output_set_flags) set_flags;
	__typeof__(&nft_ctx_get_output_buffer) output;
	__typeof__(&nft_ctx_get_error_buffer) error;
	__typeof__(&nft_run_cmd_from_buffer) run;
};

#define FIND(member, name) ret->member = (__typeof__(&(name)))dlsym(library, #name)

static int load(const char *name, struct nft *ret, struct err *err)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		err_set(err, -ENOENT, "%s; install Debian's package libnftables1", dlerror());
		return -ENOENT;
	}
	FIND(make, nft_ctx_new);
	FIND(drop, nft_ctx_free);
	FIND(keep_output, nft_ctx_buffer_output);
	FIND(keep_error, nft_ctx_buffer_error);
	FIND(set_flags, nft_ctx_output_set_flags);
	FIND(output, nft_ctx_get_output_buffer);
	FIND(error, nft_ctx_get_error_buffer);
	FIND(run, nft_run_cmd_from_buffer);
	if (!ret->make || !ret->drop || !ret->keep_output || !ret->keep_error || !ret->set_flags ||
	    !ret->output || !ret->error || !ret->run) {
		err_set(err, -ENOENT, "%s is not libnftables", name);
		return -ENOENT;
	}
	ret->ctx = ret->make(NFT_CTX_DEFAULT);
	if (!ret->ctx || ret->keep_output(ret->ctx) != 0 || ret->keep_error(ret->ctx) != 0)
		return err_set(err, -ENOMEM, "libnftables: out of memory");
	ret->set_flags(ret->ctx, NFT_CTX_OUTPUT_STATELESS);
	return 0;
}

/* The first line of what it says; the others show the place in a text that nobody typed. */
static int run(const struct nft *nft, const char *text, struct err *err)
{
	static const char start[] = "Error: ";
	const char *why;

	if (nft->run(nft->ctx, text) == 0)
		return 0;
	why = nft->error(nft->ctx);
	if (strncmp(why, start, strlen(start)) == 0)
		why += strlen(start);
	return err_set(err, -EIO, "%.*s", (int)strcspn(why, "\n"), why);
}

/* --- the work ------------------------------------------------------------------------------- */

static int list(const struct nft *nft, struct hash *ret, struct err *err)
{
	int r = run(nft, LIST, err);

	if (r == 0)
		*ret = HASH_TEXTS(nft->output(nft->ctx));
	return r;
}

/* The whole, or what the kernel takes of it; in refused why not all. */
static int set(const struct nft *nft, const struct firewall_job *j, struct firewall_verdict *v)
{
	struct err err = { "" };
	int r = -EIO;

	for (size_t i = 0; r < 0 && i < j->n; i++) {
		r = run(nft, j->texts[i], i ? &err : &v->refused);
		if (r == 0)
			v->parts = j->parts[i];
	}
	return r;
}

static int set_and_list(const struct nft *nft, struct netlink *k, const struct firewall_job *j,
			struct firewall_verdict *v, struct err *err)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t before = 0;
		int r = firewall_generation(k, &before, err);

		v->refused.text[0] = '\0';
		if (r == 0 && set(nft, j, v) < 0)
			return err_set(err, -EIO, "%s", v->refused.text);
		r = r ?: list(nft, &v->digest, err);
		r = r ?: firewall_generation(k, &v->generation, err);
		v->did = FIREWALL_SET;
		if (r < 0 || v->generation == before + 1)
			return r;
	}
	v->did = FIREWALL_BUSY;
	return 0;
}

static int look(const struct nft *nft, struct netlink *k, const struct firewall_job *j,
		struct firewall_verdict *v, struct err *err)
{
	struct err none = { "" };
	int r;

	if (!j->compare)
		return 0;
	/* Before the listing: what comes after it is news. */
	r = firewall_generation(k, &v->generation, err);
	if (r < 0 || list(nft, &v->digest, &none) < 0)
		return r;
	v->parts = j->parts[0];
	return v->digest.low == j->expect.low && v->digest.high == j->expect.high;
}

static void nft_done_auto(const struct nft *nft)
{
	if (nft->ctx)
		nft->drop(nft->ctx);
}

static int work(const struct firewall_job *j, struct firewall_verdict *v, struct err *err)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	AUTO(nft_done) struct nft nft = { 0 };
	int r = load(j->library, &nft, err);

	if (r == 0) {
		r = netlink_open(NETLINK_NETFILTER, &k);
		if (r < 0)
			return err_set(err, r, "netlink of netfilter: %s", strerror(-r));
	}
	if (r == 0 && !j->n) {
		v->did = FIREWALL_GONE;
		return run(&nft, DROP, err);
	}
	r = r ?: look(&nft, k, j, v, err);
	return r > 0 ? 0 : r ?: set_and_list(&nft, k, j, v, err);
}

int firewall_child(void *arg)
{
	struct firewall_verdict v = { .did = FIREWALL_SAME };
	struct err err = { "" };
	int r;

	prctl(PR_SET_NAME, "roostd-firewall");
	r = work(arg, &v, &err);
	if (r < 0) {
		dprintf(STDOUT_FILENO, "%s\n", err.text[0] ? err.text : strerror(-r));
		return 1;
	}
	dprintf(STDOUT_FILENO, "%s %u %" PRIu32 " %" PRIx64 " %" PRIx64 "\n%s\n",
		firewall_did_name(v.did), v.parts, v.generation, v.digest.high, v.digest.low,
		v.refused.text);
	return 0;
}

int firewall_drop(const char *library, struct err *err)
{
	const struct firewall_job j = { .library = library };
	struct firewall_verdict v = { 0 };
	int r = work(&j, &v, err);

	return r < 0 ? r : 1;
}

/* --- what it said --------------------------------------------------------------------------- */

void firewall_job_done(struct firewall_job *j)
{
	for (size_t i = 0; i < FIREWALL_TEXTS; i++)
		free(j->texts[i]);
	*j = (struct firewall_job){ 0 };
}

const char *firewall_did_name(enum firewall_did did)
{
	static const char *const names[] = { "same", "set", "gone", "busy" };

	return did <= FIREWALL_BUSY ? names[did] : "?";
}

int firewall_verdict(const struct child_result *result, struct firewall_verdict *ret,
		     struct err *err)
{
	struct firewall_verdict v = { 0 };
	const char *line = strchr(result->output, '\n');
	char word[8];
	int r;

	if (result->end == CHILD_EXITED && result->number == 1) {
		char text[sizeof(err->text)];

		return err_set(err, -EINVAL, "%s", child_words(result, text, sizeof(text)));
	}
	r = child_verdict(result, err);
	if (r < 0)
		return r;
	if (!line || sscanf(result->output, "%7s %u %" SCNu32 " %" SCNx64 " %" SCNx64, word,
			    &v.parts, &v.generation, &v.digest.high, &v.digest.low) != 5)
		return err_set(err, -EINVAL, "invalid answer of the child process");
	while (v.did < FIREWALL_BUSY && strcmp(firewall_did_name(v.did), word) != 0)
		v.did++;
	err_set(&v.refused, 0, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
	*ret = v;
	return 0;
}
