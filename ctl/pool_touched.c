/* SPDX-License-Identifier: Apache-2.0 */
/* What hangs on a pool: read from the keys, not from what agents say, some of which may be down. */
#include <errno.h>
#include <string.h>

#include "ctl/pool_use.h"
#include "ctl/records/record_verbs.h"
#include "lib/model/model.h"

static bool is_of(const struct ctl_kv *kv, const char *pool)
{
	AUTO_DONE(address_record_done) struct address_record address = { 0 };
	struct err ignored;

	return address_record_decode(kv->key, kv->value, kv->value_len, &address, &ignored) == 0 &&
	       strcmp(address.pool, pool) == 0;
}

static const char *plural(int64_t n, const char *one, const char *more)
{
	return n == 1 ? one : more;
}

int pool_touched(struct ctl *ctl, const char *pool, char **ret, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs blocks = { 0 }, hosts = { 0 };
	AUTO(json_put) struct json_object *all = NULL;
	const struct ctl_kvs no_status = { 0 };
	struct json_object *use = NULL;
	int64_t n_blocks, n_nodes, addresses = 0;
	int r = ctl_read(ctl, KEYS_BLOCK, &blocks, err);

	r = r < 0 ? r : ctl_read(ctl, KEYS_HOST, &hosts, err);
	if (r < 0)
		return r;
	all = pool_use(&blocks, &no_status);
	if (!all)
		return err_set(err, -ENOMEM, "out of memory");
	json_object_object_get_ex(all, pool, &use);
	n_blocks = json_object_get_int64(out_at(use, "blocks"));
	n_nodes = use ? json_object_object_length(out_at(use, "nodes")) : 0;
	for (size_t i = 0; i < hosts.n; i++)
		addresses += is_of(&hosts.v[i], pool);
	if (asprintf(ret,
		     "pool %s: %lld %s on %lld %s, %lld %s in use; running pods keep theirs, "
		     "nothing "
		     "more is given from it",
		     pool, (long long)n_blocks, plural(n_blocks, "block", "blocks"),
		     (long long)n_nodes, plural(n_nodes, "node", "nodes"), (long long)addresses,
		     plural(addresses, "address", "addresses")) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}
