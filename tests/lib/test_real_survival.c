// SPDX-License-Identifier: MIT
/*
 * What a cache with persist=PATH finds when the one before it was killed, case by case. The first
 * one lives in a child, which kills itself.
 */
#include "rig.h"

#include "cache/persist.h"
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define NOBODY 65534

static char arena[64], persist[96], aside[96];

/* Nothing is written unless somebody asks for it. */
#define LAZY                                                                 \
	"memory=16M", "vm.dirty_writeback_centisecs=0", "vm.dirty_ratio=90", \
		"vm.dirty_background_ratio=80", persist

/* Runs fn in a child, which is killed at the end of it. */
static void in_a_life(void (*fn)(struct sluice *c))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		struct sluice *c;
		char why[SLUICE_ERROR_MAX];

		if (sluice_create(GIVEN(LAZY), why, sizeof(why), &c)) {
			fprintf(stderr, "# %s\n", why);
			_exit(1);
		}
		fn(c);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static struct {
	unsigned calls;
	int how;
	uint64_t bytes;
	char path[256], why[128], where[256];
} told; /* of the last file */

static void note(void *ctx, const struct sluice_recovered *r)
{
	(void)ctx;
	assert_int_equal(r->size, sizeof(*r));
	told.calls++;
	told.how = r->how;
	told.bytes = r->bytes;
	snprintf(told.path, sizeof(told.path), "%s", r->path);
	snprintf(told.why, sizeof(told.why), "%s", r->why ? r->why : "");
	snprintf(told.where, sizeof(told.where), "%s", r->where ? r->where : "");
}

/* The next life: what became of one file. */
static struct sluice *next_life(void)
{
	struct sluice *c = rig_cache(GIVEN(LAZY));

	memset(&told, 0, sizeof(told));
	sluice_recovered(c, note, NULL);
	return c;
}

static void refused(const char *const *settings, int wanted, const char *part)
{
	char why[SLUICE_ERROR_MAX];
	struct sluice *c;

	assert_int_equal(sluice_create(settings, why, sizeof(why), &c), wanted);
	if (!strstr(why, part))
		fail_msg("\"%s\" does not say \"%s\"", why, part);
}

/* --- files that are there */

#define OWED (3 * 4096 + 925) /* whole blocks of what is written next, cut at the size */

static void write_some(struct sluice *c)
{
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT);

	rig_write(f, 0, 10000, 1);
	rig_write(f, 50000, 77, 2);
	assert_int_equal(sluice_close(f), 0); /* idle files are owed, too */
	if (rig_file_size("f"))
		_exit(1); /* nothing is written as yet */
}

static void its_bytes_come_back(void **state)
{
	struct sluice *c;
	struct sluice_stats s;

	(void)state;
	in_a_life(write_some);
	c = next_life();
	assert_int_equal(told.calls, 1);
	assert_int_equal(told.how, SLUICE_RECOVERED_WRITTEN);
	assert_int_equal(told.bytes, OWED);
	assert_string_equal(told.path, rig_path("f"));
	s = rig_stats(c);
	assert_int_equal(s.recovered_files, 1);
	assert_int_equal(s.recovered_bytes, OWED);
	assert_int_equal(s.aside_files + s.dropped_files, 0);
	rig_expect_file("f", 0, 10000, 1);
	rig_expect_file("f", 10000, 40000, 0);
	rig_expect_file("f", 50000, 77, 2);
	assert_int_equal(rig_file_size("f"), 50077);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	assert_int_equal(access(arena, F_OK), -1);
	c = next_life();
	assert_int_equal(told.calls, 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void write_and_sync(struct sluice *c)
{
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT);

	rig_write(f, 0, 30000, 1);
	if (sluice_fsync(f))
		_exit(1);
	rig_write(f, 8192, 100, 2);
}

static void what_is_safe_is_not_owed(void **state)
{
	struct sluice *c;

	(void)state;
	in_a_life(write_and_sync);
	c = next_life();
	assert_int_equal(told.bytes, 4096); /* a block */
	rig_expect_file("f", 0, 8192, 1);
	rig_expect_file("f", 8192, 100, 2);
	rig_expect_file("f", 8292, 21708, 1);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void cut_and_punch(struct sluice *c)
{
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT);
	int rc;

	rig_write(f, 0, 40000, 1);
	rc = sluice_truncate(f, 20000);
	rc |= sluice_truncate(f, 30000);
	rc |= sluice_fallocate(f, SLUICE_PUNCH_HOLE | SLUICE_KEEP_SIZE, 5000, 10000);
	if (rc)
		_exit(1);
}

static void what_was_cut_off_stays_so(void **state)
{
	struct sluice *c;

	(void)state;
	in_a_life(cut_and_punch);
	c = next_life();
	assert_int_equal(rig_file_size("f"), 30000);
	rig_expect_file("f", 0, 5000, 1);
	rig_expect_file("f", 5000, 10000, 0);
	rig_expect_file("f", 15000, 5000, 1);
	rig_expect_file("f", 20000, 10000, 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void count_loss(void *ctx, const struct sluice_loss *loss)
{
	*(uint64_t *)ctx += loss->length;
}

/* A limit on the size of files comes over the process, and so nothing can be written past it. */
static void end_in_need(struct sluice *c)
{
	struct rlimit limit = { 4096, RLIM_INFINITY };
	uint64_t lost = 0;
	int rc;

	write_some(c);
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit))
		_exit(1);
	rc = sluice_destroy(c, count_loss, &lost);
	if (rc != -EFBIG || lost != OWED) {
		fprintf(stderr, "# %d, %llu bytes\n", rc, (unsigned long long)lost);
		_exit(1);
	}
}

static void what_an_end_could_not_write_stays(void **state)
{
	struct sluice *c;

	(void)state;
	in_a_life(end_in_need);
	c = next_life();
	assert_int_equal(told.how, SLUICE_RECOVERED_WRITTEN);
	rig_expect_file("f", 0, 10000, 1);
	rig_expect_file("f", 50000, 77, 2);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

/* --- files that are not */

static size_t files_aside(void)
{
	DIR *folder = opendir(aside);
	struct dirent *e;
	size_t count = 0;

	while (folder && (e = readdir(folder)))
		count += e->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return count;
}

static void another_file_of_its_name_gets_nothing(void **state)
{
	struct sluice *c;
	char buf[100];
	int fd;

	(void)state;
	in_a_life(write_some);
	/* on most file systems it gets the same number, too */
	assert_int_equal(unlink(rig_path("f")), 0);
	fd = open(rig_path("f"), O_RDWR | O_CREAT, 0644);
	assert_int_equal(write(fd, "other", 5), 5);
	c = next_life();
	assert_int_equal(told.how, SLUICE_RECOVERED_ASIDE);
	assert_string_equal(told.why, "another file has its name");
	assert_int_equal(rig_stats(c).aside_bytes, OWED);
	assert_int_equal(pread(fd, buf, sizeof(buf), 0), 5);
	close(fd);
	fd = open(told.where, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, buf, 77, 50000), 77);
	rig_compare(buf, 50000, 77, 2);
	close(fd);
	assert_int_equal(files_aside(), 2);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	assert_int_equal(files_aside(), 2);
}

static void write_to_a_store(struct sluice *c)
{
	rig_write(bucket_open(c, bucket_new(), O_RDWR), 0, 5000, 3);
}

static void a_store_of_the_programs_is_set_aside(void **state)
{
	struct sluice *c;

	(void)state;
	in_a_life(write_to_a_store);
	c = next_life();
	assert_int_equal(told.how, SLUICE_RECOVERED_ASIDE);
	assert_string_equal(told.why, "only the program could find it");
	assert_int_equal(told.bytes, 5000);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

/* --- without rights */

static void write_renamed(struct sluice *c)
{
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT);
	struct sluice_file *g = rig_open(c, "g", O_RDWR | O_CREAT);

	rig_write(f, 0, 3000, 1);
	rig_write(g, 0, 4000, 2);
	if (rename(rig_path("f"), rig_path("h")) || unlink(rig_path("g")))
		_exit(1);
}

static void run_as_nobody(void)
{
	struct sluice *c;

	if (setgid(NOBODY) || setuid(NOBODY))
		_exit(1);
	in_a_life(write_renamed);
	c = rig_cache(GIVEN(LAZY));
	if (rig_stats(c).recovered_files != 1 || rig_stats(c).recovered_bytes != 3000 ||
	    rig_stats(c).aside_bytes != 4000)
		_exit(2);
	rig_expect_file("h", 0, 3000, 1);
	_exit(sluice_destroy(c, NULL, NULL) ? 3 : 0);
}

static void nobody_finds_files_by_their_names(void **state)
{
	pid_t child;
	int status;

	(void)state;
	if (geteuid()) {
		print_message("# skip: only root can become somebody else\n");
		skip();
	}
	assert_int_equal(chmod(rig_folder, 0777), 0);
	child = fork();
	if (!child)
		run_as_nobody();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	unlink(rig_path("h"));
}

/* --- what is refused */

/* Holds a lease on the file until it is killed: whoever opens it to write without waiting can't. */
static pid_t hold(void)
{
	pid_t child = fork();

	if (!child) {
		int fd = open(rig_path("f"), O_RDONLY);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGIO, SIG_IGN); /* that it should let go */
		if (fd < 0 || fcntl(fd, F_SETLEASE, F_RDLCK))
			_exit(1);
		pause();
	}
	return child;
}

static bool is_held(void)
{
	int fd = open(rig_path("f"), O_RDWR | O_NONBLOCK);

	if (fd >= 0)
		close(fd);
	return fd < 0;
}

static void a_file_that_does_not_take_its_bytes(void **state)
{
	struct sluice *c;
	struct stat before, after;
	pid_t child;

	(void)state;
	in_a_life(write_some);
	child = hold();
	for (unsigned i = 0; i < 1000 && !is_held(); i++)
		usleep(1000);
	if (!is_held()) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		print_message("# skip: there are no leases here\n");
		skip();
	}
	assert_int_equal(stat(arena, &before), 0);
	refused(GIVEN(LAZY), -EAGAIN, "unavailable; what is owed to it stays there");
	refused(GIVEN(LAZY), -EAGAIN, "recovery=set_aside");
	assert_int_equal(stat(arena, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(files_aside(), 0);
	c = rig_cache(GIVEN(LAZY, "recovery=set_aside"));
	assert_int_equal(rig_stats(c).aside_bytes, OWED);
	assert_int_equal(files_aside(), 2);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void settings_that_cannot_be(void **state)
{
	struct sluice *c = rig_cache(GIVEN(LAZY));

	(void)state;
	refused(GIVEN(LAZY), -EBUSY, "is in use by process");
	refused(GIVEN("huge_pages=always", persist), -EINVAL, "exclude each other");
	refused(GIVEN("persist=/nonexistent/a"), -ENOENT, "persist=/nonexistent/a");
	refused(GIVEN("persist="), -EINVAL, "only the path of a file");
	refused(GIVEN("recovery=yes"), -EINVAL, "only refuse|set_aside");
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static uint32_t fnv(const void *bytes, size_t count)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 16777619u;
	return hash;
}

static void an_arena_of_another_boot(void **state)
{
	struct persist_header h;
	int fd;

	(void)state;
	in_a_life(write_some);
	fd = open(arena, O_RDWR);
	assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
	h.boot[0] ^= 1;
	h.check = fnv(&h, offsetof(struct persist_header, check));
	assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	close(fd);
	refused(GIVEN(LAZY), -EINVAL, "is of before the machine was started");
	assert_int_equal(access(arena, F_OK), 0);
}

static int begin(void **state)
{
	snprintf(arena, sizeof(arena), "/dev/shm/sluice-survival-%ld", (long)getpid());
	snprintf(persist, sizeof(persist), "persist=%s", arena);
	snprintf(aside, sizeof(aside), "%s.recovered", arena);
	return rig_begin(state);
}

static int end(void **state)
{
	char command[256];

	unlink(arena);
	snprintf(command, sizeof(command), "rm -rf %s", aside);
	return system(command) || rig_end(state);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

static int need_memory(void **state)
{
	(void)state;
	if (access("/dev/shm", W_OK)) {
		puts("# skip: there is no /dev/shm");
		exit(77);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(its_bytes_come_back),
		CASE(what_is_safe_is_not_owed),
		CASE(what_was_cut_off_stays_so),
		CASE(what_an_end_could_not_write_stays),
		CASE(another_file_of_its_name_gets_nothing),
		CASE(a_store_of_the_programs_is_set_aside),
		CASE(nobody_finds_files_by_their_names),
		CASE(a_file_that_does_not_take_its_bytes),
		CASE(settings_that_cannot_be),
		CASE(an_arena_of_another_boot),
	};

	return cmocka_run_group_tests(tests, need_memory, NULL);
}
