// SPDX-License-Identifier: MIT
/*
 * A mount from its beginning to its end. The source is locked first, so that no two caches
 * ever hold dirty data of the same files; the end of one daemon, which may have much to write
 * after its folder was unmounted, is waited for. Then the cache is made, then the session.
 *
 * Writers that are paced sleep in the threads that serve them, so there are many, and readers
 * find one that is free. Signals are taken by a task of their own: the first one detaches the
 * folder and lets those who have files open go on, for what shared mappings have dirtied comes
 * to us only when they close them; the second one ends the session.
 */
#include "mount/fuse_said.h"
#include "mount/mount_inner.h"
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define HZ        250
#define LOCK_S    10 /* how long the end of another daemon is waited for */
#define LOCK_POLL (50 * NSEC_PER_MSEC)

#define IDLE_FILES "idle_files=65536"

static void on_init(void *mount, struct fuse_conn_info *conn)
{
	unsigned wanted = FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK | FUSE_CAP_READDIRPLUS |
			  FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_PARALLEL_DIROPS |
			  FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_CACHE_SYMLINKS;

	(void)mount;
	conn->max_write = REQUEST_MAX;
	conn->max_background = THREADS;
	conn->congestion_threshold = THREADS / 4 * 3;
	conn->want |= conn->capable & wanted;
	/*
	 * Truncation by open is told apart from it. The kernel's own guess whether data has changed
	 * goes by mtime, which moves with every write that it has sent us itself. And what others
	 * changed is looked for when files are opened.
	 */
	conn->want &= ~(unsigned)(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA |
				  FUSE_CAP_WRITEBACK_CACHE);
}

static const struct fuse_lowlevel_ops operations = {
	.init = on_init,
	.lookup = name_lookup_op,
	.forget = name_forget,
	.forget_multi = name_forget_multi,
	.getattr = attr_get,
	.setattr = attr_set,
	.readlink = name_readlink,
	.mknod = name_mknod,
	.mkdir = name_mkdir,
	.unlink = name_unlink,
	.rmdir = name_rmdir,
	.symlink = name_symlink,
	.rename = name_rename,
	.link = name_link,
	.open = file_op_open,
	.create = file_op_create,
	.read = file_op_read,
	.write = file_op_write,
	.fsync = file_op_fsync,
	.release = file_op_release,
	.fallocate = file_op_fallocate,
	.lseek = file_op_lseek,
	.opendir = dir_open,
	.readdir = dir_read,
	.readdirplus = dir_read_plus,
	.releasedir = dir_release,
	.fsyncdir = dir_fsync,
	.statfs = attr_statfs,
	.getxattr = attr_getxattr,
	.setxattr = attr_setxattr,
	.listxattr = attr_listxattr,
	.removexattr = attr_removexattr,
	.ioctl = node_ioctl,
};

/* --- the beginning */

/* Each node and each cached file holds descriptors: as many as we may have. Returns how many. */
static u64 raise_limit(void)
{
	struct rlimit r;
	FILE *f = fopen("/proc/sys/fs/nr_open", "re");
	unsigned long most = 0;

	if (f && fscanf(f, "%lu", &most) != 1)
		most = 0;
	if (f)
		fclose(f);
	r = (struct rlimit){ most, most };
	if (most && !setrlimit(RLIMIT_NOFILE, &r)) /* only root may */
		return most;
	if (getrlimit(RLIMIT_NOFILE, &r))
		return 1024;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	return r.rlim_cur;
}

static int open_source(struct mount *m, const char *source, struct err *e)
{
	u64 deadline = world_now() + LOCK_S * NSEC_PER_SEC;
	struct statvfs fs;
	struct stat st;

	m->source_fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->source_fd < 0 || fstat(m->source_fd, &st)) {
		int rc = -errno;

		err_set(e, source, 0, "%s", strerror(-rc));
		return rc;
	}
	while (flock(m->source_fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK || world_now() >= deadline) {
			err_set(e, source, 0, "is served by another sluice mount already");
			return -EBUSY;
		}
		world_sleep_until(world_now() + LOCK_POLL);
	}
	m->root = (struct node){ .dev = st.st_dev,
				 .ino = st.st_ino,
				 .kind = S_IFDIR,
				 .fd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC),
				 .atime_ns = TIME_OF_SOURCE,
				 .mtime_ns = TIME_OF_SOURCE,
				 .ctime_ns = TIME_OF_SOURCE };
	if (m->root.fd < 0 || fstatvfs(m->root.fd, &fs))
		return -errno;
	m->source_flags = fs.f_flag;
	m->no_atime = fs.f_flag & (ST_NOATIME | ST_RDONLY);
	m->strict_atime = !(fs.f_flag & (ST_NOATIME | ST_RELATIME));
	return 0;
}

static int find_mountpoint(struct mount *m, const char *mountpoint, struct err *e)
{
	struct stat s;
	int error;

	mount_bury(mountpoint);
	error = stat(mountpoint, &s) ? errno : S_ISDIR(s.st_mode) ? 0 : ENOTDIR;

	if (!error) {
		m->mountpoint = realpath(mountpoint, NULL);
		error = m->mountpoint ? 0 : errno;
	}
	if (error)
		err_set(e, mountpoint, 0, "%s", strerror(error));
	return -error;
}

/* What nobody may do on the source, as options. */
static void as_the_source(const struct mount *m, char out[64])
{
	unsigned long flags = m->source_flags;

	snprintf(out, 64, "%s%s%s%s%s", flags & ST_RDONLY ? ",ro" : "",
		 flags & ST_NOSUID ? ",nosuid" : "", flags & ST_NODEV ? ",nodev" : "",
		 flags & ST_NOEXEC ? ",noexec" : "", flags & ST_SYNCHRONOUS ? ",sync" : "");
}

static int mount_it(struct mount *m, const struct mount_config *c, struct err *e)
{
	char options[1024], limits[64];
	char *words[] = { (char *)"sluice", (char *)"-o", options, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, words);
	int n;

	as_the_source(m, limits);
	/* others than root may not say allow_other unless fuse.conf allows it, nor dev and suid */
	n = snprintf(options, sizeof(options), "%sdefault_permissions,subtype=sluice%s%s%s,fsname=",
		     m->root_user ? "dev,suid,allow_other," : "", *c->fuse_options ? "," : "",
		     c->fuse_options, limits);

	/* a comma in a name would begin another option */
	for (const char *s = c->source; *s && n < (int)sizeof(options) - 2; s++) {
		if (*s == ',' || *s == '\\')
			options[n++] = '\\';
		options[n++] = *s;
	}
	options[min_u64((u64)n, sizeof(options) - 1)] = 0;
	fuse_said_listen();
	m->session = fuse_session_new(&args, &operations, sizeof(operations), m);
	fuse_opt_free_args(&args); /* libfuse adds to them */
	if (m->session && !fuse_session_mount(m->session, m->mountpoint))
		return mount_agree(m);
	err_set(e, m->mountpoint, 0, "cannot be mounted on: %s", fuse_said_why());
	return -EIO;
}

/*
 * To give a file up that has just been written means to write it and to wait for that, in the call
 * that closes another one: so many are kept, unless the settings say otherwise.
 */
static int make_cache(struct mount *m, const char *const *given, struct err *e)
{
	char text[sizeof(e->text)];
	const char **settings;
	size_t count = 0;
	int rc;

	while (given[count])
		count++;
	settings = calloc(count + 2, sizeof(*settings));
	if (!settings) {
		err_set(e, NULL, 0, "not enough memory");
		return -ENOMEM;
	}
	settings[0] = IDLE_FILES;
	memcpy(settings + 1, given, count * sizeof(*settings));
	rc = sluice_create(settings, text, sizeof(text), &m->cache);
	free(settings);
	if (rc)
		err_set(e, NULL, 0, "%s", text);
	return rc;
}

/* The settings are the cache's, or tenants'. */
static int make_all(struct mount *m, const struct mount_config *c, struct err *e)
{
	struct rules *rules = calloc(1, sizeof(*rules));
	const char **of_cache;
	size_t count = 0, kept = 0;
	int rc = 0;

	while (c->settings[count])
		count++;
	of_cache = calloc(count + 1, sizeof(*of_cache));
	if (!rules || !of_cache) {
		free(rules);
		free(of_cache);
		err_set(e, NULL, 0, "not enough memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < count && !rc; i++) {
		if (rules_is_setting(c->settings[i]))
			rc = rules_read(rules, c->settings[i], e);
		else
			of_cache[kept++] = c->settings[i];
	}
	rc = rc ? rc : acting_check(rules, e);
	rc = rc ? rc : make_cache(m, of_cache, e);
	rc = rc ? rc : acting_open(m, rules, e);
	rules_free(rules);
	free(rules);
	free(of_cache);
	return rc;
}

/* All tasks of the process leave them to the one that waits for them. */
static void signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
}

int mount_open(const struct mount_config *c, struct mount **out, struct err *e)
{
	struct mount *m = calloc(1, sizeof(*m));
	sigset_t set;
	u64 limit;
	int rc;

	if (!m) {
		err_set(e, NULL, 0, "not enough memory");
		return -ENOMEM;
	}
	m->root_user = !geteuid();
	m->direct = c->direct;
	m->lazy_replace = c->lazy_replace;
	m->source_fd = m->root.fd = m->farewell.fd = -1;
	mutex_init(&m->lock, RANK_NONE);
	acting_init(&m->acting);
	cond_init(&m->crowded);
	list_init(&m->lingering);
	list_init(&m->handles);
	list_init(&m->root.lingering);
	signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	limit = raise_limit();
	m->nodes_max = limit / 16 * 6; /* which may become a quarter more */
	rights_drop(m);                /* before there are other threads */
	rc = find_mountpoint(m, c->mountpoint, e);
	if (!rc)
		rc = open_source(m, c->source, e);
	if (!rc)
		rc = make_all(m, c, e);
	if (!rc)
		path_table_narrow(m->cache->paths, limit / 16 * 7 / PATH_FDS_AN_INODE);
	if (!rc)
		rc = mount_it(m, c, e);
	if (!rc)
		farewell_open(&m->farewell);
	if (rc)
		mount_close(m, NULL, NULL);
	else
		*out = m;
	return rc;
}

void mount_recovered(struct mount *m, void (*fn)(void *ctx, const struct sluice_recovered *r),
		     void *ctx)
{
	sluice_recovered(m->cache, fn, ctx);
}

/* --- serving */

struct signal_task {
	struct mount *mount;
	_Atomic bool ended; /* it did */
};

static void take_signals(void *arg)
{
	struct signal_task *t = arg;
	int number, count = 0;
	sigset_t set;

	signals(&set);
	while (!sigwait(&set, &number) && !atomic_load(&t->ended)) {
		if (!count++) {
			mount_detach(t->mount->mountpoint);
			continue;
		}
		atomic_store(&t->mount->left, true);
		fuse_session_exit(t->mount->session);
		mount_loop_stop(t->mount);
	}
}

static void interrupt(int number)
{
	(void)number;
}

int mount_serve(struct mount *m)
{
	struct signal_task t = { .mount = m };
	struct sigaction wake = { .sa_handler = interrupt };
	struct world world, *before = world_current;
	struct task *task, *trimmer;
	int rc = -ENOMEM;

	sigaction(SIGUSR1, &wake, NULL); /* without SA_RESTART */
	world_init_real(&world, HZ);
	world_bind(&world);
	if (mount_loop_begin(m)) {
		world_bind(before);
		return -ENOMEM;
	}
	trimmer = world_spawn("trimmer", nodes_trim, m);
	task = world_spawn("signals", take_signals, &t);
	if (task && trimmer)
		rc = mount_loop(m);
	nodes_end(m);
	if (trimmer)
		world_join(trimmer);
	atomic_store(&t.ended, true);
	if (task) {
		kill(getpid(), SIGTERM);
		world_join(task);
	}
	mount_loop_end(m);
	world_bind(before);
	return rc;
}

/* --- the end */

struct losing {
	void (*lost)(void *ctx, const char *path, u64 bytes, int error);
	void *ctx;
	FILE *farewell;      /* in which the same is said; NULL: no memory for it */
	char path[PATH_MAX]; /* of the file that is being told of */
	u64 bytes;
	int error;
};

static void tell(struct losing *l)
{
	if (l->bytes && l->lost)
		l->lost(l->ctx, l->path, l->bytes, l->error);
	if (l->bytes && l->farewell)
		fprintf(l->farewell, "%s: %" PRIu64 " bytes could not be written: %s\n", l->path,
			l->bytes, strerror(-l->error));
	l->bytes = 0;
}

/* Pieces of a file come one after the other. */
static void lose(void *ctx, const struct sluice_loss *loss)
{
	struct losing *l = ctx;

	if (strcmp(l->path, loss->path) != 0)
		tell(l);
	snprintf(l->path, sizeof(l->path), "%s", loss->path);
	l->error = loss->error;
	l->bytes += loss->length;
}

int mount_close(struct mount *m, void (*lost)(void *ctx, const char *path, u64 bytes, int error),
		void *ctx)
{
	char *text = NULL;
	size_t length;
	struct losing losing = { .lost = lost,
				 .ctx = ctx,
				 .farewell = open_memstream(&text, &length) };
	int rc = 0;

	if (m->session && !atomic_load(&m->left))
		fuse_session_unmount(m->session);
	handles_close(m);
	if (m->cache)
		rc = sluice_destroy(m->cache, lose, &losing);
	tell(&losing);
	m->cache = NULL;
	nodes_close(m);
	if (m->session)
		fuse_session_destroy(m->session);
	if (m->source_fd >= 0)
		close(m->source_fd); /* with it the lock goes */
	if (losing.farewell) {
		fputs(rc ? "not all could be written\n" : FAREWELL_SAFE, losing.farewell);
		fclose(losing.farewell);
	}
	farewell_say(&m->farewell, text ? text : "");
	free(text);
	acting_free(&m->acting);
	free(m->mountpoint);
	free(m);
	return rc;
}
