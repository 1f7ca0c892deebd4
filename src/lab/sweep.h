/* SPDX-License-Identifier: MIT */
/*
 * Sweeps: an experiment at every point of a product of settings. Settings given with
 * several values are the axes; every selected case runs, under every selected policy,
 * with every combination of their values. The points of a row (a case and a policy)
 * stand together, the last axis changing fastest.
 */
#ifndef SLUICE_LAB_SWEEP_H
#define SLUICE_LAB_SWEEP_H

#include "lab/lab.h"

#define SWEEP_AXES_MAX   16
#define SWEEP_POINTS_MAX 16384

struct sweep_axis {
	char *key;
	const char **values; /* each points into its setting, behind "KEY=" */
	char **settings;     /* "KEY=VALUE" */
	size_t count;
	bool numeric; /* all values are numbers or sizes, all different: in numbers[] */
	double *numbers;
};

struct sweep {
	struct experiment *x;
	u64 seed;
	struct sweep_axis axes[SWEEP_AXES_MAX];
	size_t axis_count;
	size_t rows, steps; /* cases times policies; the product of the axes */
	size_t count;       /* points: rows * steps */
	struct plan plan;   /* a case for each point */
	struct lab_result *results;
	bool *done;      /* results[i] is there */
	char *code_name; /* what two sweeps share if all that goes into their points is the same */
};

/*
 * Makes a sweep of what is selected; each of the selection's settings is "KEY=A,B,...".
 * Every point is checked. 0, or a negative errno with `e` set.
 */
int sweep_make(struct sweep *s, struct experiment *x, const struct selection *selection, u64 seed,
	       struct err *e);
void sweep_finish(struct sweep *s);

/* Which of the axis's values a point has. */
size_t sweep_value(const struct sweep *s, size_t point, size_t axis);
/* The point that differs from this one in having that value on the axis. */
size_t sweep_moved(const struct sweep *s, size_t point, size_t axis, size_t value);

/* --- records: the result of a point as one line of JSON, exact to the last bit */

/* A string of malloc's, without a newline; NULL when memory is short. */
char *sweep_record(const struct sweep *s, size_t point);
/* Enters a record into the results. The point, or -1 when it is not a record of this sweep. */
long sweep_enter(struct sweep *s, const char *record);

/* --- journals: the records of a sweep in a file, so that it can be resumed */

struct sweep_journal {
	const char *path;
	int fd; /* -1: none */
};

/*
 * Opens or begins the journal of a sweep, and enters what is in it but failed points.
 * -EINVAL if it is another sweep's.
 */
int sweep_journal_open(struct sweep_journal *j, struct sweep *s, const char *path, struct err *e);
/* Adds a point; it is on the disk when this returns 0. */
int sweep_journal_add(const struct sweep_journal *j, const struct sweep *s, size_t point);
void sweep_journal_close(struct sweep_journal *j);

/* --- running */

struct sweep_progress {
	size_t done, total;
	unsigned ranks; /* that work, this one included */
	double wall_s;
	double left_s; /* < 0: no idea yet */
};

struct sweep_options {
	unsigned jobs;   /* points at a time on this rank; 0: as many as there are CPUs for it */
	u64 patience_ns; /* a rank silent for so long is lost */
	const struct sweep_journal *journal;
	/* all called on the thread that called sweep_run(); may be NULL */
	void (*progress)(void *ctx, const struct sweep_progress *p);
	void (*note)(void *ctx, const char *text); /* a line about a rank or the journal */
	void *ctx;
};

struct peers;

/*
 * Runs the points that are not done. Rank 0 returns when all are, with 0 (points that failed say so
 * in their results), or a negative errno. Other ranks work for rank 0 and return when it needs
 * them no more: 0, or -ETIMEDOUT when it was not heard of any more.
 */
int sweep_run(struct sweep *s, struct peers *peers, const struct sweep_options *o);
/* Another rank says why it cannot work, and waits until rank 0 has understood. */
int sweep_excuse(struct peers *peers, const char *why, u64 patience_ns);
/* Rank 0 sends all others home: there is nothing to do. */
void sweep_dismiss(struct peers *peers);

/* --- knees */

/*
 * The index of the knee of costs y over x, which grows; -1: there is none. x is taken by its
 * logarithm if `log_x`.
 */
int knee_find(const double *x, const double *y, size_t count, bool log_x);
/* Whether an axis spans so much that its logarithm is meant. */
bool knee_log(const double *x, size_t count);

/* What a sweep is about: what gets worse on one side of an axis or on the other. */
#define SWEEP_GOALS_MAX 5
struct sweep_goal {
	enum metric metric;
	const char *title;
	bool more_is_better;
};
extern const struct sweep_goal sweep_goals[SWEEP_GOALS_MAX];

/* A line of points along one axis, all else being the same. */
struct sweep_curve {
	size_t *points; /* in the order of the axis's numbers */
	size_t count;
	long knees[SWEEP_GOALS_MAX]; /* the point of each goal's knee, or -1 */
	long knee;                   /* of all goals together, or -1 */
};

struct sweep_curves {
	long axis; /* -1: no axis has three numbers: no curves */
	struct sweep_curve *curves;
	size_t count;
};

/* The curves along the first axis that has three numbers or more. 0 or -ENOMEM. */
int sweep_curves(const struct sweep *s, struct sweep_curves *out);
void sweep_curves_finish(struct sweep_curves *c);

/* --- reports */

void sweep_table(FILE *out, const struct sweep *s, const struct sweep_curves *c);
int sweep_json(FILE *out, const struct sweep *s, const struct sweep_curves *c);
int sweep_json_file(const char *path, const struct sweep *s, const struct sweep_curves *c,
		    struct err *e);
/* A page for a browser. */
/* Two axes of which, at each point, only the later counts, as vm.dirty_ratio and vm.dirty_bytes. */
bool sweep_rivals(const struct sweep *s, size_t *a, size_t *b);
int sweep_html(FILE *out, const struct sweep *s, const struct sweep_curves *c);
int sweep_html_file(const char *path, const struct sweep *s, const struct sweep_curves *c,
		    struct err *e);

#endif
