/* SPDX-License-Identifier: MIT */
/* What stands in every report: the files of page/ and dygraphs, put in when this is built. */
#ifndef SLUICE_LAB_PAGE_H
#define SLUICE_LAB_PAGE_H

extern const char page_css[], page_js[];
extern const char dygraphs_css[], dygraphs_js[], dygraphs_licence[];

#endif
