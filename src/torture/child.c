// SPDX-License-Identifier: MIT
/*
 * Runs live in child processes, so that one may end in any way: by a check of ours, by an
 * assertion of the engine, by a fault of the processor, by never coming to an end (a limit on CPU
 * time ends that). What is known of it then is in memory that it shares with its parent.
 *
 * Several children take the seeds in turn, each every so-manieth. When one fails the others go
 * on to its seed and no further: so the failure that is told is the first one, however the
 * children were scheduled.
 */
#include "torture/child.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPU_SECONDS 60 /* of one run */

void *child_share(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void child_unshare(void *memory, size_t bytes)
{
	munmap(memory, bytes);
}

void child_limit_cpu(void)
{
	struct itimerval limit = { .it_value.tv_sec = CPU_SECONDS };

	setitimer(ITIMER_PROF, &limit, NULL);
}

static void silence(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
}

/* Waits for a child that worked on *report. 0, 1 or a negative errno. */
static int reap(pid_t pid, struct torture_report *report)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (!report->failed && WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
		snprintf(report->why, sizeof(report->why), "no end after %d s of CPU time",
			 CPU_SECONDS);
	else if (!report->failed && WIFSIGNALED(status))
		snprintf(report->why, sizeof(report->why), "ended by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (!report->failed)
		snprintf(report->why, sizeof(report->why), "ended with status %d",
			 WEXITSTATUS(status));
	report->failed = true;
	return 1;
}

int child_try(const struct torture_config *c, bool quiet, struct torture_report *report)
{
	pid_t pid;

	*report = (struct torture_report){ 0 };
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		child_limit_cpu();
		if (quiet)
			silence();
		torture_run(c, report);
		exit(0);
	}
	return reap(pid, report);
}

/* --- many */

struct share {
	_Atomic u64 stop; /* no run past this one */
	_Atomic u64 done;
	struct torture_report report[];
};

static void run_share(const struct torture_config *config, u64 runs, unsigned jobs, unsigned number,
		      struct share *s)
{
	struct torture_config c = *config;

	for (u64 i = number; i < runs && i <= s->stop; i += jobs) {
		c.seed = config->seed + i;
		s->report[number].runs = i;
		child_limit_cpu();
		torture_run(&c, &s->report[number]);
		s->done++;
	}
}

static void lower(_Atomic u64 *stop, u64 to)
{
	u64 now = *stop;

	while (to < now && !atomic_compare_exchange_weak(stop, &now, to))
		;
}

/* Tells how far they are, and takes the children as they end. 0, 1 or a negative errno. */
static int wait_for_all(pid_t *pid, unsigned jobs, struct share *s,
			void (*progress)(void *ctx, u64 done), void *ctx)
{
	unsigned left = jobs;
	int rc = 0;

	while (left) {
		siginfo_t info = { 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) && errno != EINTR)
			return -errno;
		for (unsigned i = 0; i < jobs; i++) {
			int end;

			if (!pid[i] || pid[i] != info.si_pid)
				continue;
			end = reap(pid[i], &s->report[i]);
			pid[i] = 0;
			left--;
			if (end == 1)
				lower(&s->stop, s->report[i].runs);
			rc = rc ? rc : end;
			if (progress)
				progress(ctx, s->done);
		}
	}
	return rc;
}

int torture_runs(const struct torture_config *c, u64 runs, unsigned jobs,
		 void (*progress)(void *ctx, u64 done), void *ctx, struct torture_report *report)
{
	size_t bytes = sizeof(struct share) + jobs * sizeof(struct torture_report);
	struct share *s = child_share(bytes);
	pid_t *pid = calloc(jobs, sizeof(*pid));
	int rc = s && pid ? 0 : -ENOMEM;

	fflush(NULL);
	for (unsigned i = 0; !rc && i < jobs; i++) {
		s->stop = i ? s->stop : ~0ull;
		pid[i] = fork();
		if (pid[i] < 0)
			rc = -errno;
		if (pid[i])
			continue;
		free(pid);
		run_share(c, runs, jobs, i, s);
		exit(0);
	}
	if (!rc)
		rc = wait_for_all(pid, jobs, s, progress, ctx);
	for (unsigned i = 0; rc == 1 && i < jobs; i++)
		if (s->report[i].failed && s->report[i].runs == s->stop)
			*report = s->report[i];
	free(pid);
	if (s)
		child_unshare(s, bytes);
	return rc;
}
