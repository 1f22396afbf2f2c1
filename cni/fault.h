/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place where a test can make an ADD fail: behind everything that must be undone then.
 *
 * In the product it does nothing. integration-tests/tools/fault.c takes its place in a
 * plugin of the tests' own.
 */
#pragma once

#include "lib/cni/cni_error.h"

/* 0, or negative with e filled. */
int fault(struct cni_error *e);
