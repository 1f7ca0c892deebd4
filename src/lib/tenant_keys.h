/* SPDX-License-Identifier: MIT */
/*
 * The figures of a tenant as people write them, each optional:
 *
 *	dirty_ratio, dirty_background_ratio	percent
 *	dirty_bytes, dirty_background_bytes	instead of these
 *	memory					what counts as its memory (memory.max)
 *	floor					below that it is never throttled
 *
 * What a ratio is of, and what memory does, is the policy's choice tenant_limits.
 */
#ifndef SLUICE_LIB_TENANT_KEYS_H
#define SLUICE_LIB_TENANT_KEYS_H

#include "base/types.h"
#include "file/tenant.h"

/* The i-th key, or NULL. */
const char *tenant_key(size_t i);
/*
 * 0; -ENOENT: there is no such key; -EINVAL: the key cannot be that, only *values (which is for
 * people).
 */
int tenant_key_set(struct tenant_settings *to, const char *key, const char *value,
		   const char **values);

#endif
