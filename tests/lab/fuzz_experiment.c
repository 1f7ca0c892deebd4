/* SPDX-License-Identifier: MIT */
/*
 * Machines and experiments under libFuzzer: what their sections and keys say is understood, or
 * refused in words. The first letter says which it is. They are read as files, since they name
 * other files; one in memory will do.
 */
#include "lab/experiment.h"
#include "lab/machine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void read_machine(const char *path)
{
	struct err e = { "" };
	struct machine m;
	int rc = machine_load(&m, path, policy_preset(0), NULL, 0, &e);

	assert(!rc == !e.text[0]);
	if (rc)
		return;
	assert(m.setup.device_count >= 1);
	machine_finish(&m);
}

static void read_experiment(const char *path)
{
	struct selection all = { 0 };
	struct err e = { "" };
	struct experiment x;
	struct plan plan;
	int rc = experiment_load(&x, path, &e);

	assert(!rc == !e.text[0]);
	if (rc)
		return;
	assert(x.phase_count && x.measured < x.phase_count && x.case_count);
	for (size_t i = 0; experiment_note(&x, i); i++)
		assert(experiment_note(&x, i)[0]);
	for (size_t i = 0; i < x.case_count; i++)
		assert(experiment_find(&x, x.cases[i].name) == &x.cases[i]);
	rc = plan_make(&plan, &x, &all, &e);
	assert(!rc == !e.text[0]);
	if (!rc) {
		assert(plan.count == x.case_count);
		plan_finish(&plan);
	}
	experiment_finish(&x);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char path[64];
	int fd;

	if (!size)
		return 0;
	fd = memfd_create("fuzz.ini", MFD_CLOEXEC);
	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data + 1, size - 1) == (ssize_t)(size - 1)) {
		if (data[0] == 'm')
			read_machine(path);
		else
			read_experiment(path);
	}
	close(fd);
	return 0;
}
