/* SPDX-License-Identifier: MIT */
/* sluice sweep: runs an experiment with every combination of some settings. */
#include "lab/sweep.h"
#include "cli/cli.h"
#include "lab/sweep_peers.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
	const char *path, *json, *report, *resume;
	struct words cases, policies, settings;
	u64 seed, jobs, patience_s;
	bool quiet;
};

static const struct option options[] = {
	OPTION_SET(struct request, "KEY=A,B,...",
		   "values of a setting, as of sluice lab (may be repeated)"),
	OPTION_CASE(struct request),
	OPTION_POLICIES(struct request),
	OPTION_SEED(struct request),
	OPTION_JOBS(struct request, "points to run at a time (default: one per CPU)"),
	OPTION_JSON(struct request),
	OPTION_REPORT(struct request),
	OPTION(struct request, resume, FILE, "resume", 0, "FILE",
	       "keep finished points in FILE; do not run those it has"),
	OPTION_IN(struct request, patience_s, NUMBER, "patience", 0, "S",
		  "a rank not heard of for S seconds is lost (default 30)", 2, 86400),
	OPTION_QUIET(struct request, "no progress"),
	{ 0 },
};

/* A signal ends the program in the middle of its points; these words are made before. */
static char last_words[1024];

static void stop(int signal)
{
	ssize_t ignored = write(STDERR_FILENO, last_words, strlen(last_words));

	(void)ignored;
	_exit(128 + signal);
}

static void prepare_last_words(const struct request *r, const struct sweep *s, bool clear)
{
	struct sigaction action = { .sa_handler = stop };

	snprintf(last_words, sizeof(last_words),
		 "%ssluice sweep: stopped before all %zu points were run%s%s%s\n",
		 clear ? "\r\033[K" : "", s->count,
		 r->resume ? "; the same command with --resume "
			   : "; with --resume FILE it could go on where it was",
		 r->resume ? r->resume : "", r->resume ? " runs the rest" : "");
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static void show_progress(void *ctx, const struct sweep_progress *p)
{
	char ranks[48] = "", left[48] = "";

	(void)ctx;
	if (p->ranks > 1)
		snprintf(ranks, sizeof(ranks), " on %u ranks", p->ranks);
	if (p->left_s >= 0)
		snprintf(left, sizeof(left), ", %.0f s left", p->left_s);
	fprintf(stderr, "\r\033[K%zu of %zu points done%s%s", p->done, p->total, ranks, left);
	fflush(stderr);
}

static void show_note(void *ctx, const char *text)
{
	bool clear = *(bool *)ctx;

	fprintf(stderr, "%ssluice sweep: %s\n", clear ? "\r\033[K" : "", text);
}

static int print_results(const struct request *r, const struct sweep *s)
{
	struct sweep_curves curves;
	struct err e = { "" };
	size_t failures = 0;
	bool bad;

	for (size_t i = 0; i < s->count; i++) {
		if (!s->results[i].error)
			continue;
		fprintf(stderr, "sluice sweep: point %zu: %s\n", i, s->results[i].text);
		failures++;
	}
	bad = failures > 0;
	if (sweep_curves(s, &curves)) {
		fprintf(stderr, "sluice sweep: not enough memory\n");
		return EXIT_FAILED;
	}
	if (is_stdout(r->json))
		bad |= sweep_json(stdout, s, &curves) != 0;
	else if (is_stdout(r->report))
		bad |= sweep_html(stdout, s, &curves) != 0;
	else if (failures < s->count)
		sweep_table(stdout, s, &curves);
	if (r->json && !is_stdout(r->json) && sweep_json_file(r->json, s, &curves, &e)) {
		fprintf(stderr, "sluice sweep: %s\n", e.text);
		bad = true;
	}
	if (r->report && !is_stdout(r->report) && sweep_html_file(r->report, s, &curves, &e)) {
		fprintf(stderr, "sluice sweep: %s\n", e.text);
		bad = true;
	}
	sweep_curves_finish(&curves);
	return bad ? EXIT_FAILED : EXIT_OK;
}

static int run_sweep(const struct request *r, struct sweep *s, struct peers *peers)
{
	bool chief = peers->rank == 0, show = chief && !r->quiet && isatty(STDERR_FILENO);
	struct sweep_journal journal = { .fd = -1 };
	struct sweep_options o = {
		.jobs = (unsigned)r->jobs,
		.patience_ns = r->patience_s * NSEC_PER_SEC,
		.journal = &journal,
		.progress = show ? show_progress : NULL,
		.note = show_note,
		.ctx = &show,
	};
	struct err e = { "" };
	int error;

	if (chief && r->resume && sweep_journal_open(&journal, s, r->resume, &e)) {
		fprintf(stderr, "sluice sweep: %s\n", e.text);
		sweep_dismiss(peers);
		return EXIT_USAGE;
	}
	if (chief)
		prepare_last_words(r, s, show);
	error = sweep_run(s, peers, &o);
	sweep_journal_close(&journal);
	if (show)
		fprintf(stderr, "\r\033[K");
	if (error == -ETIMEDOUT)
		fprintf(stderr, "sluice sweep: rank %u: rank 0 does not answer any more\n",
			peers->rank);
	else if (error)
		fprintf(stderr, "sluice sweep: rank %u: %s\n", peers->rank, strerror(-error));
	if (error)
		return EXIT_FAILED;
	return chief ? print_results(r, s) : EXIT_OK;
}

/* What is wrong with the request is said once, by rank 0; the others tell it only what is wrong
 * where they are. */
static int refuse(const struct command *self, const struct request *r, struct peers *peers,
		  const struct err *e)
{
	if (peers->rank)
		return sweep_excuse(peers, e->text, r->patience_s * NSEC_PER_SEC) ? EXIT_FAILED
										  : EXIT_OK;
	sweep_dismiss(peers);
	return usage_error(self, "%s", e->text);
}

static void print_remarks(const struct experiment *x, const struct sweep *s)
{
	size_t a, b;

	print_experiment_notes(x);
	if (sweep_rivals(s, &a, &b))
		fprintf(stderr,
			"note: %s and %s override each other: of each point only the later "
			"counts\n",
			s->axes[a].key, s->axes[b].key);
}

static int run_request(const struct command *self, const struct request *r, struct peers *peers)
{
	struct selection selection = { r->cases.word,     r->cases.count,   r->policies.word,
				       r->policies.count, r->settings.word, r->settings.count };
	struct experiment x;
	struct sweep s;
	struct err e = { "" };
	int status;

	if (experiment_load(&x, r->path, &e))
		return refuse(self, r, peers, &e);
	if (sweep_make(&s, &x, &selection, r->seed, &e)) {
		status = refuse(self, r, peers, &e);
	} else {
		if (!peers->rank)
			print_remarks(&x, &s);
		status = run_sweep(r, &s, peers);
		sweep_finish(&s);
	}
	experiment_finish(&x);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct request r = { .seed = 1, .patience_s = 30 };
	struct words plain = { 0 };
	struct peers peers;
	struct err e = { "" };
	int status;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	if (words_one(self, &plain, "experiment", &r.path))
		return EXIT_USAGE;
	if (check_outputs(self, r.json, r.report, r.path))
		return EXIT_USAGE;
	if (peers_open(&peers, &e)) {
		fprintf(stderr, "sluice sweep: %s\n", e.text);
		return EXIT_FAILED;
	}
	status = run_request(self, &r, &peers);
	fflush(stdout); /* closing may end the program */
	peers_close(&peers, status);
	return status;
}

const struct command command_sweep = {
	.name = "sweep",
	.arguments = "EXPERIMENT.ini",
	.about = "run an experiment over ranges of settings",
	.text = "Runs an experiment at every combination of the values of some settings, and\n"
		"prints what came out with the knees of its curves marked: where going on begins\n"
		"to cost more than it brings. Started by mpirun, several machines share the work;\n"
		"the results are the same.",
	.examples =
		"  sluice sweep experiments/p2.ini -c baseline -s vm.dirty_ratio=5,10,20,40\n"
		"  sluice sweep experiments/p2.ini -p linux-7.4 -p sluice -s device.iops=1000,3000 "
		"\\\n"
		"    -s vm.dirty_bytes=256M,1G,4G,16G --report p2-sweep.html\n"
		"  mpirun --enable-recovery --hostfile hosts sluice sweep experiments/p2.ini \\\n"
		"    -s vm.dirty_bytes=256M,1G,4G,16G --resume p2-sweep.journal\n",
	.options = options,
	.run = run,
};
