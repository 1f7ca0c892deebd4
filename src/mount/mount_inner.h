/* SPDX-License-Identifier: MIT */
/* What the files of the mount share. Inside src/mount/ only. */
#ifndef SLUICE_MOUNT_MOUNT_INNER_H
#define SLUICE_MOUNT_MOUNT_INNER_H

#define FUSE_USE_VERSION 312
#include "lib/inner.h"
#include "mount/farewell.h"
#include "mount/mount.h"
#include "mount/rules.h"
#include "world/lock.h"
#include <errno.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TIMEOUT_S      1.0 /* seconds that the kernel may keep names and attributes */
#define REQUEST_MAX    (1u << 20)
#define THREADS        256
#define NODE_BUCKETS   16384
#define TIME_OF_SOURCE INT64_MIN

/*
 * A file, folder, link... of the source that the kernel knows. Its address is the number by which
 * the kernel names it.
 */
struct node {
	struct node *next; /* in its bucket; this and the next two under mount.lock */
	struct list_node lingering;
	u64 lookups; /* that the kernel has not forgotten */
	dev_t dev;   /* immutable, as are the next three */
	ino_t ino;
	mode_t kind;    /* S_IFMT of the mode */
	int fd;         /* O_PATH */
	u32 generation; /* immutable: tells it from others that had its address */
	/*
	 * Nanoseconds since 1970, or TIME_OF_SOURCE: what the source says. Once mtime_ns is that,
	 * ctime_ns holds as long as the source's is hidden_ns.
	 */
	_Atomic s64 atime_ns, mtime_ns, ctime_ns, hidden_ns;
	_Atomic u32 changes;       /* of it, counted: see node_accessed() */
	_Atomic bool emptied;      /* cut off, to be written anew: see file_write_out() */
	_Atomic bool plain;        /* known to have no set-user-id and no capabilities */
	_Atomic pid_t uncapped_by; /* whose call took its capabilities: see set_nothing() */
	_Atomic bool frozen;       /* made immutable here: who has it open may not write either */
	/* of a folder: when the kernel last asked for its names, and the ctime it had, or 0 */
	_Atomic u64 listed_at_ns;
	_Atomic s64 listed_ctime_ns;
};

/* One open of a regular file. */
struct handle {
	struct file *file;
	struct node *node;
	struct list_node link;    /* of mount.handles, under mount.lock */
	_Atomic u32 seen_changes; /* of the node when the handle last read from it, and 1 */
	/* rules that the path meets, and of which generation they are: see mount_tenant.c */
	_Atomic u64 met;
	_Atomic u32 generation;
	/* the same of who opened it for writing; immutable once it is open */
	u32 opener_generation;
	u64 opener_met;
};

/* Whose calls are. */
struct acting {
	_Atomic bool any;      /* there are rules */
	struct mutex changing; /* one change at a time; taken before the lock */
	struct rwsem lock;     /* protects the rest; held for a look, never over I/O but of /proc */
	u32 generation;        /* of the rules: 1, 2, ... */
	struct rules rules;
	struct tenant *tenant[RULES_TENANTS_MAX]; /* in the order of the rules' */
};

struct mount {
	struct sluice *cache; /* immutable, as are the next five */
	struct fuse_session *session;
	struct crew *crew; /* while it serves */
	char *mountpoint;  /* absolute */
	int source_fd;     /* locked: one daemon a source */
	bool root_user;    /* may act in the name of callers */
	bool direct;       /* reads=direct */
	bool lazy_replace;
	struct node root;
	struct acting acting;
	/* as agreed with the kernel, by the one thread that does it: mount_init.c */
	struct farewell farewell;
	u64 init_unique;
	bool drops_privileges, maps_direct, extends_setxattr;
	bool no_atime, strict_atime; /* as the source has been mounted; immutable, as is the next */
	unsigned long source_flags;  /* ST_RDONLY, ... */
	_Atomic s64 clock_ns; /* the latest ctime that the source has told: see mount_inode.c */
	_Atomic bool
		left; /* it was unmounted, but the session did not end: libfuse would complain */
	struct mutex lock; /* protects the nodes and the lists; not held over I/O of data */
	struct list_node lingering, handles;
	u64 nodes, nodes_max;
	_Atomic u64 nodes_freed; /* ever; changed under the lock */
	u32 generation;          /* of the last node */
	struct cond crowded;     /* nodes are more than nodes_max, or `ended` */
	bool ended;
	u32 hand; /* the bucket to look for nodes that can go */
	struct node *bucket[NODE_BUCKETS];
};

#define PROC_PATH_MAX 32
/* The name of a descriptor: to use a node by calls that want a path. */
static inline const char *proc_path(char buf[PROC_PATH_MAX], int fd)
{
	snprintf(buf, PROC_PATH_MAX, "/proc/self/fd/%d", fd);
	return buf;
}

static inline struct mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static inline struct node *node_of(fuse_req_t req, fuse_ino_t number)
{
	return number == FUSE_ROOT_ID ? &mount_of(req)->root : (struct node *)number;
}

static inline void reply_result(fuse_req_t req, int rc)
{
	fuse_reply_err(req, rc < 0 ? -rc : 0);
}

/* 0, or -errno, of a call that gives -1. */
static inline int result(int rc)
{
	return rc < 0 ? -errno : 0;
}

/* --- mount_inode.c: the table of nodes */

/*
 * The number of a file, as told: files of other file systems that are mounted within the source are
 * of the same device as all others, and only the source's own keep theirs.
 */
u64 shown_number(const struct mount *m, dev_t device, u64 number);
/* What the source, and what is cached of it, say. 0 or a negative errno. */
int node_stat(struct mount *m, struct node *n, struct stat *st);
/* Finds or makes the node of an O_PATH descriptor, which it takes, and counts a lookup. */
int node_get(struct mount *m, int fd, struct node **out, struct stat *st);
/* The node of a file, if the kernel knows it, with a lookup counted; or NULL. */
struct node *node_find(struct mount *m, const struct stat *st);
void node_forget(struct mount *m, struct node *n, u64 lookups);
/* Data was accepted: the times move. */
void node_modified(struct mount *m, struct node *n);
/* An attribute was set: ctime moves, if it is ours, to the source's `after` it, or NULL. */
void node_changed(struct mount *m, struct node *n, const struct stat *after);
/* Data was read, by the handle if it is not NULL: atime moves, if the source has it move. */
void node_accessed(struct mount *m, struct node *n, struct handle *h);
/*
 * The ctime by which a later change can be told from now: nanoseconds, or 0: it is so young that a
 * change may get the same.
 */
s64 node_settled_ctime(const struct stat *st);
/* The source was given an mtime: `t`, or NULL: one that it is to be asked for. */
void node_mtime_set(struct node *n, const struct timespec *t);
/* Whether nanoseconds since 1970 do not fit into a word: before 1678, or after 2262. */
static inline bool time_is_far(const struct timespec *t)
{
	return t->tv_sec <= INT64_MIN / (s64)NSEC_PER_SEC ||
	       t->tv_sec >= INT64_MAX / (s64)NSEC_PER_SEC;
}
/*
 * Before an open: gives the source its times if the table of paths has given the file up, which
 * means that it was written.
 */
void node_settle(struct mount *m, struct node *n);
/* Gives the source the times of what is written by now. */
void nodes_settle(struct mount *m, bool all);
/* A task that keeps the number of nodes down, until nodes_end(). */
void nodes_trim(void *mount);
void nodes_end(struct mount *m);
bool nodes_crowded(struct mount *m);
/* Closes all. The files are closed and written. */
void nodes_close(struct mount *m);

/* --- mount_init.c: to be called once it is mounted */

int mount_agree(struct mount *m);

/* --- mount_stale.c */

/* Unmounts it for those who come; who is in there stays. */
void mount_detach(const char *mountpoint);
/* The same if it is one of ours whose daemon is dead. */
void mount_bury(const char *mountpoint);
/* --- mount_loop.c */

int mount_loop_begin(struct mount *m);
/* Serves until the session ends, or until it is stopped. 0 or a negative errno. */
int mount_loop(struct mount *m);
/* Also while it has not yet begun. The session was told to exit. */
void mount_loop_stop(struct mount *m);
void mount_loop_end(struct mount *m);

/* --- mount_young.c: what libfuse has no words for */

#define XATTR_KILLS_SGID (1 << 30) /* beside the flags of setxattr(2) */
/*
 * A request as it came, of `length` bytes: what is to be made of it. Its new length, or 0: it was
 * answered here.
 */
size_t young_request(struct mount *m, int fd, void *request, size_t length);

/* --- mount_rights.c */

/* To be called before other threads begin. */
void rights_drop(const struct mount *m);

/* --- mount_name.c */

int name_lookup(struct mount *m, struct node *parent, const char *name,
		struct fuse_entry_param *out);
/*
 * What is created between these two is the caller's, and has his umask: *before is to be given to
 * the second.
 */
void caller_begin(fuse_req_t req);
void caller_end(fuse_req_t req);
/* Whether the caller is in the group, which he may be by his other groups. */
bool caller_in_group(fuse_req_t req, gid_t gid);
/* Runs around a change of a file's attributes, so that the cache does not take it for others'. */
void change_begin(struct node *n, struct stat *before);
void change_end(struct mount *m, struct node *n, const struct stat *before);

void name_lookup_op(fuse_req_t req, fuse_ino_t parent, const char *name);
void name_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void name_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void name_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name);
void name_link(fuse_req_t req, fuse_ino_t number, fuse_ino_t parent, const char *name);
void name_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void name_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void name_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		 const char *new_name, unsigned flags);
void name_readlink(fuse_req_t req, fuse_ino_t number);
void name_forget(fuse_req_t req, fuse_ino_t number, uint64_t lookups);
void name_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *all);

/* --- mount_dir.c */

void dir_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void dir_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
	      struct fuse_file_info *fi);
void dir_read_plus(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
		   struct fuse_file_info *fi);
void dir_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void dir_fsync(fuse_req_t req, fuse_ino_t number, int data_only, struct fuse_file_info *fi);

/* --- mount_attr.c */

/* Before a file is written to: takes away what a write takes away. */
void attr_drop_privileges(fuse_req_t req, struct node *n);

void attr_get(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void attr_set(fuse_req_t req, fuse_ino_t number, struct stat *attr, int to_set,
	      struct fuse_file_info *fi);
void attr_statfs(fuse_req_t req, fuse_ino_t number);
void attr_getxattr(fuse_req_t req, fuse_ino_t number, const char *name, size_t size);
void attr_setxattr(fuse_req_t req, fuse_ino_t number, const char *name, const char *value,
		   size_t size, int flags);
void attr_listxattr(fuse_req_t req, fuse_ino_t number, size_t size);
void attr_removexattr(fuse_req_t req, fuse_ino_t number, const char *name);

/* --- mount_ioctl.c */

void node_ioctl(fuse_req_t req, fuse_ino_t number, unsigned command, void *arg,
		struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
		size_t out_size);

/* --- mount_file.c */

void file_op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void file_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		    struct fuse_file_info *fi);
void file_op_read(fuse_req_t req, fuse_ino_t number, size_t length, off_t offset,
		  struct fuse_file_info *fi);
void file_op_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t length, off_t offset,
		   struct fuse_file_info *fi);
void file_op_fsync(fuse_req_t req, fuse_ino_t number, int data_only, struct fuse_file_info *fi);
void file_op_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void file_op_fallocate(fuse_req_t req, fuse_ino_t number, int mode, off_t offset, off_t length,
		       struct fuse_file_info *fi);
void file_op_lseek(fuse_req_t req, fuse_ino_t number, off_t offset, int whence,
		   struct fuse_file_info *fi);
/* Sets the size of a file that is open as `h`, or of none (NULL). */
int file_set_size(struct mount *m, struct node *n, struct handle *h, u64 size);
/* Has the data of a file written; `wait`: until it is. An error is told to who syncs it. */
void file_write_out(struct mount *m, struct node *n, bool wait);
/* Closes what is still open: nobody will. */
void handles_close(struct mount *m);

/* --- mount_tenant.c */

void acting_init(struct acting *a);
/* Whether the rules can be: 0 or -EINVAL. */
int acting_check(const struct rules *r, struct err *e);
/* Takes the rules, and makes their tenants. 0 or a negative errno with `e` set. */
int acting_open(struct mount *m, struct rules *r, struct err *e);
void acting_free(struct acting *a);
/*
 * Sets one of the root's attributes that say who is a tenant: true, with *rc the answer; false: it
 * is another one.
 */
bool acting_set(fuse_req_t req, const char *name, const char *value, size_t size, int *rc);
/* A file was opened for writing. */
void acting_opened(fuse_req_t req, struct handle *h);
/*
 * What the thread reads and writes is the caller's until acting_end(), which may come after the
 * reply. The file is open as `h`, or not (NULL). `callerless`: the kernel writes what a mapping has
 * dirtied, and h is not NULL.
 */
void acting_begin(fuse_req_t req, struct node *n, struct handle *h, bool callerless);
void acting_end(const struct mount *m);

/* --- mount_stats.c */

/* The statistics as JSON, to be freed; NULL without memory. */
char *mount_stats_json(struct mount *m);
/* All data and names safe: 0 or a negative errno. */
int mount_sync(struct mount *m);

#endif
