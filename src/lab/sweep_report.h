/* SPDX-License-Identifier: MIT */
/* The columns of a sweep's table, for the files that write it as text and as a page. */
#ifndef SLUICE_LAB_SWEEP_REPORT_H
#define SLUICE_LAB_SWEEP_REPORT_H

#include "lab/sweep.h"

#define SWEEP_COLUMNS_MAX (SWEEP_AXES_MAX + 3 + SWEEP_GOALS_MAX)
#define SWEEP_CELL_MAX    256

enum sweep_column_kind { COLUMN_AXIS, COLUMN_CASE, COLUMN_POLICY, COLUMN_GOAL, COLUMN_KNEE };

struct sweep_column {
	enum sweep_column_kind kind;
	size_t index; /* of the axis or goal */
	size_t width;
};

struct sweep_table {
	const struct sweep *s;
	const struct sweep_curve **curve_of; /* each point's, or NULL; free() it */
	struct sweep_column columns[SWEEP_COLUMNS_MAX];
	size_t count;
};

/* 0 or -ENOMEM. */
int sweep_lay_out(struct sweep_table *t, const struct sweep *s, const struct sweep_curves *c);
const char *sweep_head(const struct sweep_table *t, const struct sweep_column *col);
/* A figure has a star or a blank behind it. */
void sweep_cell(const struct sweep_table *t, const struct sweep_column *col, size_t point,
		char buf[SWEEP_CELL_MAX]);
bool sweep_known(const struct sweep *s, size_t point, enum metric m);

#endif
