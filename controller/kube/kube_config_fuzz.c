/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig of any bytes: refused with a sentence, or usable. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/kube/kube_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(kube_config_free) struct kube_config *c = NULL;
	AUTO(free) char *text = malloc(size + 1);
	struct err err = { "" };
	struct kube_url url;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (kube_config_parse("f", text, size, size % 2 ? "c" : NULL, size % 3 == 0, &c, &err) <
	    0) {
		if (!err.text[0])
			abort();
		return 0;
	}
	if (!c->server || !c->source || (c->token && c->token_file) || (c->ca_file && c->ca_pem) ||
	    (c->token && !kube_token_valid(c->token)))
		abort();
	if (kube_url_make(c->server, c->server_name, &url) == 0)
		kube_url_done(&url);
	return 0;
}
