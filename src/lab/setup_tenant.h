/* SPDX-License-Identifier: MIT */
/* The tenants of a machine: sections [tenant NAME] of an experiment or a machine file. */
#ifndef SLUICE_LAB_SETUP_TENANT_H
#define SLUICE_LAB_SETUP_TENANT_H

#include "lab/setup.h"

/* The name in "tenant NAME", or NULL: another section. */
const char *setup_tenant_of(const char *section);
/* -EINVAL: there cannot be one of that name. */
int setup_check_tenant(const char *section, const struct origin *at, struct err *e);
/* Applies a setting of such a section. */
int setup_apply_tenant(struct setup *to, const struct setting *s, struct err *e);

#endif
