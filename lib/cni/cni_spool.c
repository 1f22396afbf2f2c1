/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_spool.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/json_out.h"
#include "lib/cni/cni_place.h"

static int note_text(const struct cni_conf *conf, const struct cni_env *env, uint64_t boottime,
		     char **ret)
{
	struct json_out out = { 0 };

	json_out_open(&out, NULL, '{');
	json_out_text(&out, "network", conf->name);
	json_out_text(&out, "container", env->container);
	json_out_text(&out, "interface", env->ifname);
	json_out_number(&out, "boottime", (int64_t)boottime);
	json_out_close(&out, '}');
	return json_out_take(&out, ret);
}

int cni_spool_release(const struct cni_conf *conf, const struct cni_env *env, int *ret_folder,
		      char ret_name[CNI_NOTE_NAME], struct err *err)
{
	int length = (int)(strrchr(conf->socket, '/') - conf->socket), folder, r;
	uint64_t boottime = clock_boottime_ns();
	AUTO(free) char *text = NULL;
	char path[1040]; /* a checked path has at most 1023 bytes */

	r = cni_place_check(conf->socket, err);
	if (r < 0)
		return r;
	r = note_text(conf, env, boottime, &text);
	if (r < 0)
		return err_set(err, r, "out of memory");
	snprintf(path, sizeof(path), "%.*s/spool", length, conf->socket);
	folder = dir_open(path);
	if (folder < 0)
		return err_set(err, folder, "cannot open %s: %s", path, strerror(-folder));
	snprintf(ret_name, CNI_NOTE_NAME, "%" PRIu64 "-%d.json", boottime, (int)getpid());
	r = file_publish(folder, ret_name, 0600, text, strlen(text));
	if (r < 0) {
		close(folder);
		return err_set(err, r, "cannot write %s/%s: %s", path, ret_name, strerror(-r));
	}
	*ret_folder = folder;
	return 0;
}
