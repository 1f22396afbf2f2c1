/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Released addresses that etcd may still list. A DEL unlinks the attachment's
 * file at once and tells etcd later; an agent that is killed in between would
 * find a key of this boot without a file, which else means "in use by somebody
 * unknown". So each released address leaves a note, the empty file
 * released/<network>_<address>, until etcd has heard of it. While it is there,
 * what etcd says of that address is old, and only a file makes it one in use.
 *
 * The note stays for a minute more: a write that was repeated may lie in a
 * stopped member of etcd, and bring the key back after its deletion.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/addresses/ipam_parts.h"
#include "lib/base/files.h"

#define NAME_ROOM    (NAME_TEXT + ADDRESS_TEXT + 1)
#define KEEP_SECONDS 60

static const char *name_of(const char *network, const struct address *address, char *text)
{
	char a[ADDRESS_TEXT];

	snprintf(text, NAME_ROOM, "%s_%s", network, address_print(address, a));
	return text;
}

int ipam_released_open(struct ipam *m)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/released", m->o.run_dir);
	fd = dir_open(path);
	if (fd < 0)
		return fd;
	ipam_released_close(m);
	m->released_dir = fd;
	return 0;
}

void ipam_released_close(struct ipam *m)
{
	if (m->released_dir >= 0)
		close(m->released_dir);
	m->released_dir = -1;
}

/* Without a note the address may be held for nobody after a crash, but is never given twice. */
void ipam_released_note(struct ipam *m, const struct attachment *a)
{
	char name[NAME_ROOM];
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->addresses.n; i++)
		if (a->addresses.v[i].network[0])
			r = file_publish(m->released_dir,
					 name_of(a->addresses.v[i].network,
						 &a->addresses.v[i].address, name),
					 0600, "", 0);
	if (r < 0)
		log_warning("ipam", "%s/released cannot be written: %s", m->o.run_dir,
			    strerror(-r));
}

bool ipam_released(const struct ipam *m, const char *network, const struct address *address)
{
	char name[NAME_ROOM];

	return faccessat(m->released_dir, name_of(network, address, name), F_OK, 0) == 0;
}

/* Whether etcd has heard of it, and long enough ago. */
static bool is_over(const struct ipam *m, int dir, const char *name, const char *network,
		    const struct address *address)
{
	char relative[KEY_TEXT], key[KEY_FULL_TEXT];
	struct stat st;

	if (fstatat(dir, name, &st, 0) < 0 || time(NULL) - st.st_mtim.tv_sec < KEEP_SECONDS)
		return false;
	return key_address(relative, m->o.node, network, address) < 0 ||
	       key_full(m->o.prefix, relative, key) < 0 || behind_told(m->behind, key);
}

static int look_at_note(int dir, const char *name, void *arg)
{
	const char *middle = strchr(name, '_');
	const struct ipam *m = arg;
	char network[NAME_TEXT];
	struct address address;

	if (!middle || middle - name >= NAME_TEXT || address_parse(middle + 1, &address) < 0)
		return file_remove(dir, name);
	snprintf(network, sizeof(network), "%.*s", (int)(middle - name), name);
	return is_over(m, dir, name, network, &address) ? file_remove(dir, name) : 0;
}

void ipam_released_sweep(struct ipam *m)
{
	int r = dir_each(m->released_dir, look_at_note, m);

	if (r < 0)
		log_warning("ipam", "%s/released: %s", m->o.run_dir, strerror(-r));
}
