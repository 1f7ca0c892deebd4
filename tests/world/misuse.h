/* SPDX-License-Identifier: MIT */
/*
 * Misuse is found out: a body does one thing that is forbidden, in a child process that
 * must die of an assertion; and its twin, without the misuse, must not.
 */
#ifndef SLUICE_TESTS_MISUSE_H
#define SLUICE_TESTS_MISUSE_H

#include "worlds.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static bool misuse; /* or the harmless twin */

static inline int status_of_child(void (*fn)(void *arg), bool sim)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		signal(SIGABRT, SIG_DFL);
		if (sim) {
			struct world *w = make_sim(2, 250, 1);

			if (sim_run(w, fn, NULL, NULL, 0))
				_exit(2);
		} else {
			fn(NULL);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static inline void expect_found_out(void (*fn)(void *arg), bool sim)
{
	int status;

	misuse = false;
	assert_int_equal(status_of_child(fn, sim), 0);
	misuse = true;
	status = status_of_child(fn, sim);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static struct spinlock spin, inner_spin;
static struct mutex mutex, inner_mutex;
static struct rwsem rwsem;

static inline void init_locks(void)
{
	spin_init(&spin, RANK_TREE);
	spin_init(&inner_spin, RANK_LRU);
	mutex_init(&mutex, RANK_INODE);
	mutex_init(&inner_mutex, RANK_INVALIDATE);
	rwsem_init(&rwsem, RANK_NAMESPACE);
}

/* A whole test program that this build cannot run. */
static inline int skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 0;
}

#endif
