/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/program.h"

#include "lib/base/endpoint.h"
#include "lib/base/log_journal.h"
#include "lib/base/secret.h"
#include "lib/etcd/store_etcd.h"

void program_choose_log(enum log_level level, enum log_format format)
{
	log_set_level(level);
	if (format == LOG_FORMAT_JSON)
		log_set_sink(log_to_stderr_json);
	else if (log_journal_connected())
		log_set_sink(log_to_journal);
}

int program_tell(char *text)
{
	if (!text)
		return 1;
	fputs(text, stdout);
	free(text);
	return 0;
}

int store_open(sd_event *event, const struct etcd_settings *s, const char *name, struct store **ret,
	       struct err *ret_warning, struct err *err)
{
	AUTO(secret_free) char *password = NULL;
	bool group_reads = false;
	struct store_etcd_options o = {
		.endpoints = s->endpoints,
		.tls = { .cacert = s->cacert, .cert = s->cert, .key = s->key },
		.user = s->user,
		.name = name,
	};
	int r = 0;

	if (s->user[0])
		r = secret_read(s->password_file, &password, &group_reads, err);
	if (r < 0)
		return r;
	o.password = password;
	r = store_etcd_new(event, &o, ret, err);
	if (r < 0)
		return r;
	ret_warning->text[0] = '\0';
	if (group_reads)
		err_set(ret_warning, 0, "%s can be read by its group", s->password_file);
	return 0;
}

void store_check_transport(const struct etcd_settings *s, struct health *health)
{
	size_t len;
	const char *plain = s->insecure ? NULL : endpoints_plain(s->endpoints, &len);

	if (plain)
		health_set(
			health, "etcd-transport", LOG_LEVEL_WARNING,
			"%.*s is used without TLS: other machines on the way can read and change "
			"every record; use https:// (docs/SECURITY.md), or --etcd-insecure to "
			"accept that",
			(int)len, plain);
}
