/* SPDX-License-Identifier: MIT */
/*
 * Experiments: INI files that say which machine, which phases of jobs, and which
 * cases of policy and settings to compare, with published figures beside them. The
 * format is sluice-experiment(5).
 *
 * An experiment is read and checked whole, its job files included, before anything
 * runs: every case, with everything it overrides, is known to make sense.
 */
#ifndef SLUICE_LAB_EXPERIMENT_H
#define SLUICE_LAB_EXPERIMENT_H

#include "base/ini.h"
#include "job/job.h"
#include "lab/metric.h"
#include "lab/setup.h"
#include "writeback/policy.h"

#define PHASES_MAX 16
#define AFTER_MAX  8 /* cases that a case comes after */

struct phase {
	const char *name;
	struct origin at;
	const struct jobs *jobs;
	struct origin job_at; /* where its jobs were named */
	bool measure, sync_after, drop_caches_after;
	const char *close_tenant; /* who goes away after the jobs; or NULL */
	u64 linger_ns;            /* after the jobs, until what the device did is read */
	struct settings settings; /* of the device and vm, while this phase lasts */
};

/* Figures somebody published for a case. */
struct reference {
	const char *case_name, *source;
	struct origin at;
	struct metrics values;
	/* those of single devices that have some, by the names in [device NAME] */
	struct reference_device {
		char name[32];
		struct metrics values;
	} device[ENGINE_DEVICES_MAX];
	size_t device_count;
};

/* How far a prediction may be from a reference. */
struct tolerance {
	enum {
		TOLERANCE_NONE,
		TOLERANCE_PERCENT,
		TOLERANCE_FACTOR,
		TOLERANCE_ABSOLUTE,
		TOLERANCE_LEAST, /* percent of the reference, or more */
		TOLERANCE_MOST,
	} kind;
	double amount;
	double above; /* FACTOR: a reference below it only wants a prediction below it */
};

struct experiment_case {
	const char *name, *title; /* title may be NULL */
	struct origin at;
	struct policy policy;
	struct settings settings; /* of the case and the command line */
	bool skip[PHASES_MAX];
	/* cases whose phases run first, by their indices: what they leave, this one begins with */
	const char *after_list; /* as written, or NULL */
	int after_line;
	size_t after[AFTER_MAX], after_count;
	/* what stands in a phase's place here, or NULL */
	const struct jobs *jobs[PHASES_MAX];
	struct origin job_at[PHASES_MAX];
	struct settings phase_settings[PHASES_MAX];
	struct setup setup; /* read from all layers */
	/* the devices as they are during a phase, where that differs, or NULL: as in setup */
	struct setup_device *phase_devices[PHASES_MAX];
	struct vm_settings phase_vm[PHASES_MAX]; /* the vm settings of each phase */
	const struct reference *reference;       /* or NULL */
};

struct loaded_jobs {
	char *path;
	struct jobs *jobs;
};

struct comparison;

struct experiment {
	const char *path, *name, *title, *source; /* title and source may be NULL */
	struct policy policy;                     /* of cases that name none */
	struct phase phases[PHASES_MAX];
	size_t phase_count, measured;
	struct experiment_case *cases;
	size_t case_count;
	struct reference *references;
	size_t reference_count;
	struct tolerance tolerance[METRIC_MAX];
	struct comparison *comparisons; /* see compare.h */
	size_t comparison_count;
	/* private: what the pointers above point into */
	struct ini ini, machine;
	struct settings settings; /* of the machine file and the experiment's own sections */
	struct loaded_jobs *loaded;
	size_t loaded_count;
	char **strings;
	size_t string_count;
	const char *notes[ENGINE_DEVICES_MAX];
	size_t note_count;
};

/* 0, or a negative errno with `e` saying what is wrong where. */
int experiment_load(struct experiment *x, const char *path, struct err *e);
void experiment_finish(struct experiment *x);
/* Remark i on the experiment or its job files, for people; NULL: there are i of them. */
const char *experiment_note(const struct experiment *x, size_t i);
/* The case of that name, or NULL. */
struct experiment_case *experiment_find(const struct experiment *x, const char *name);
/* The jobs that phase i of the case runs, or NULL if it skips the phase. */
const struct jobs *experiment_jobs(const struct experiment *x, const struct experiment_case *c,
				   size_t i);

/* What to run of an experiment: strings of the command line, which outlive the plan. */
struct selection {
	const char *const *cases; /* none: all */
	size_t case_count;
	const char *const *policies; /* presets in place of the cases' own policies */
	size_t policy_count;
	const char *const *settings; /* "KEY=VALUE", over everything */
	size_t setting_count;
};

struct plan {
	const struct experiment *experiment;
	struct experiment_case *cases;
	size_t count;
};

/*
 * Selects: every selected case under every policy. A case run under another policy
 * than its own has no reference. `x` may gain job files that settings name.
 */
int plan_make(struct plan *p, struct experiment *x, const struct selection *s, struct err *e);
void plan_finish(struct plan *p);

/*
 * Reads a machine file and adds its settings, whose strings are the ini's: finish that after them.
 * 0, or a negative errno with `e` set.
 */
int machine_read(struct settings *to, struct ini *ini, const char *path, struct err *e);

/* --- shared by the files of this folder that read experiments */

/* Keeps a string of malloc's for the experiment's life; NULL when it or the room for it is
 * missing. */
const char *experiment_keep(struct experiment *x, char *string);
/* Loads a job file, once; a relative path starts at the folder of `beside` (NULL: as it is). */
int experiment_load_jobs(struct experiment *x, const char *path, const char *beside,
			 const struct origin *at, const struct jobs **out, struct err *e);
/* The index of a phase, or -1. */
int experiment_phase(const struct experiment *x, const char *name);
int experiment_no_memory(struct err *e);
/*
 * 1 and the setting in *out if `key` is one that a phase can change while it lasts: "device.KEY",
 * "device.NAME.KEY", "vm.KEY"; 0 if not; or a negative errno with `e` set.
 */
int experiment_phase_key(struct experiment *x, const char *key, const char *value,
			 const struct origin *at, struct setting *out, struct err *e);
/* Adds such a setting; what a device is, and where, is not for a phase to change. */
int experiment_phase_setting(struct settings *to, const struct setting *new, struct err *e);
int origin_error(struct err *e, const struct origin *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* case.c: frees what a case has of its own; reads one [case] section; sets one key of a case; reads
 * and checks its setup. */
const struct policy *case_policy(const char *name, const struct origin *at, struct err *e);
void case_finish(struct experiment_case *c);
int case_read(struct experiment *x, struct experiment_case *c, struct ini_section *section,
	      struct err *e);
int case_set(struct experiment *x, struct experiment_case *c, const char *key, const char *value,
	     const struct origin *at, struct err *e);
/* Finds the cases that the case comes after, once all are known. */
int case_find_after(const struct experiment *x, struct experiment_case *c, struct err *e);
/* notes.c: finds what is to be remarked of an experiment that has been read. */
int experiment_take_notes(struct experiment *x, struct err *e);
/* Marks the devices that a job of the case has a file on. */
void case_mark_devices(const struct experiment *x, const struct experiment_case *c, bool *used);
int case_check(const struct experiment *x, struct experiment_case *c, struct err *e);

/* reference.c: [reference NAME] and [tolerance]. */
int reference_read(const struct experiment *x, struct reference *r, struct ini_section *section,
		   struct err *e);
int tolerance_read(struct experiment *x, struct ini_section *section, struct err *e);
/* True if a prediction is within the tolerance of a reference; if not, `why` says by what. */
bool tolerance_holds(const struct tolerance *t, double reference, double prediction, char *why,
		     size_t why_size);

#endif
