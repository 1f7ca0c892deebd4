/* SPDX-License-Identifier: MIT */
/* The task of a simulated machine that gives up cold memory; see cache/page_out.c. */
#ifndef SLUICE_LAB_PAGE_OUT_H
#define SLUICE_LAB_PAGE_OUT_H

#include "file/engine.h"

struct page_out;

/* Starts it: so many bytes of memory a second are looked at. 0 or -ENOMEM. */
int page_out_start(struct engine *e, u64 bytes_per_s, struct page_out **out);
void page_out_stop(struct page_out *p);

#endif
