/* SPDX-License-Identifier: MIT */
/*
 * Ranks by MPI. Messages are sent without waiting and kept in a list until MPI is
 * done with them: a rank that died never takes its message, and nobody may wait for
 * it. Receiving asks first whether something is there (MPI_Iprobe): MPI's own
 * waiting would keep a CPU busy that the simulations need.
 *
 * MPI is started only by its launcher: alone, this program is like one built without.
 *
 * What happens when a rank dies is the launcher's choice. Open MPI's mpirun kills the
 * others too, unless it was told --enable-recovery; then they go on, and messages to
 * the dead one are silently lost.
 */
#include "lab/sweep_peers.h"
#include "world/world.h"
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define TAG         1
#define FINALIZE_NS (5 * NSEC_PER_SEC)

struct peer_message {
	struct peer_message *next;
	MPI_Request request;
	char text[];
};

/* Open MPI's mpirun, other launchers that speak PMI, Slurm's. */
static bool launched(void)
{
	return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") || getenv("PMI_RANK");
}

static int no_mpi(struct err *e, const char *what)
{
	err_set(e, NULL, 0, "MPI cannot be started: %s", what);
	return -EIO;
}

int peers_open(struct peers *p, struct err *e)
{
	int rank, size, here, level;
	MPI_Comm machine;

	*p = (struct peers){ .size = 1, .here = 1 };
	if (!launched())
		return 0;
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level))
		return no_mpi(e, "it does not say why");
	if (level < MPI_THREAD_FUNNELED)
		return no_mpi(e, "it was built for programs without threads");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine))
		return no_mpi(e, "the ranks of a machine do not find each other");
	MPI_Comm_size(machine, &here);
	MPI_Comm_free(&machine);
	p->rank = (unsigned)rank;
	p->size = (unsigned)size;
	p->here = (unsigned)here;
	return 0;
}

bool peers_receive(struct peers *p, unsigned *from, char **text)
{
	MPI_Status status;
	int there, len;

	*text = NULL;
	if (p->size == 1 || MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, &status) ||
	    !there || MPI_Get_count(&status, MPI_CHAR, &len) || len < 0)
		return false;
	*text = malloc((size_t)len + 1);
	if (!*text)
		return false; /* it stays where it is */
	if (MPI_Recv(*text, len, MPI_CHAR, status.MPI_SOURCE, TAG, MPI_COMM_WORLD, &status)) {
		free(*text);
		*text = NULL;
		return false;
	}
	(*text)[len] = 0;
	*from = (unsigned)status.MPI_SOURCE;
	return true;
}

bool peers_sending(struct peers *p)
{
	struct peer_message **link = &p->sent;

	while (*link) {
		struct peer_message *m = *link;
		int done = 0;

		if (MPI_Test(&m->request, &done, MPI_STATUS_IGNORE) || done) {
			*link = m->next;
			free(m);
		} else {
			link = &m->next;
		}
	}
	return p->sent != NULL;
}

int peers_send(struct peers *p, unsigned to, const char *text)
{
	size_t len = strlen(text);
	struct peer_message *m = malloc(sizeof(*m) + len);

	assert(to < p->size && to != p->rank);
	if (!m)
		return -ENOMEM;
	memcpy(m->text, text, len);
	if (MPI_Isend(m->text, (int)len, MPI_CHAR, (int)to, TAG, MPI_COMM_WORLD, &m->request)) {
		free(m);
		return -EIO;
	}
	m->next = p->sent;
	p->sent = m;
	peers_sending(p);
	return 0;
}

/*
 * Finalizing waits for all ranks that the launcher does not know to be dead, so for one that
 * hangs it has no end; then this ends all.
 */
struct watchdog {
	_Atomic u32 over;
	int status;
};

static void watch(void *arg)
{
	struct watchdog *w = arg;
	u64 until_ns = world_now() + FINALIZE_NS;

	while (!w->over)
		if (world_park(&w->over, 0, until_ns) == -ETIMEDOUT)
			MPI_Abort(MPI_COMM_WORLD, w->status);
}

static void finalize_watched(int status)
{
	struct watchdog w = { .status = status };
	struct task *task = world_spawn("watchdog", watch, &w);

	if (!task)
		MPI_Abort(MPI_COMM_WORLD, status);
	MPI_Finalize();
	w.over = 1;
	world_unpark(&w.over, 1);
	world_join(task);
}

void peers_close(struct peers *p, int status)
{
	int started;

	if (MPI_Initialized(&started) || !started)
		return;
	if (p->lost)
		finalize_watched(status);
	else
		MPI_Finalize();
	while (p->sent) {
		struct peer_message *m = p->sent;

		p->sent = m->next;
		free(m);
	}
}
